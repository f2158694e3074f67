// What every implementation of Queue holds its callers to.
#ifndef ATTUNE_SERVER_STORE_LEASE_RULES_H_
#define ATTUNE_SERVER_STORE_LEASE_RULES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/queue.h"

namespace attune::store {

absl::Status NoJob(absl::string_view name);

// What a job cannot be made without.
absl::Status CheckNewJob(const Job& job);
// Room for one more.
absl::Status CheckUnfinished(size_t unfinished, size_t most);

// The request itself and `terms.others`; those without identity are left out.
std::vector<JoinTerms::Same> AllTheSame(const Job& wanted, const JoinTerms& terms);
// Whether `former`, which has the request_id of `wanted`, is what `wanted` asks for. `identity`: of the request that
// the id was given to; empty when it is not known.
absl::Status CheckSameRequest(const Job& wanted, const JoinTerms& terms, const Job& former, absl::string_view identity);
// The job that has the name of `wanted` already, if it was made by the same request or both are that part of one
// parent; else AlreadyExists.
absl::StatusOr<Job> SameJobOrTaken(const Job& wanted, const Job& former);

bool CanLease(const Job& job, absl::string_view holder, absl::Time now);
// Stale when the fence does not hold the job.
absl::Status CheckHeld(const Fence& fence, const Job& now);
// Whether a write is the repetition of the one that ended the job, or gave it back.
bool EndedUnder(const Fence& fence, const Job& now);
bool GivenBackUnder(const Fence& fence, const Job& now);

// InvalidArgument unless the operation is not done, or is.
absl::Status CheckUpdate(const v1::Operation& operation);
absl::Status CheckEnd(const v1::Operation& operation);

// Whether a new part of `parent` is cancelled from the start.
bool EndsItsParts(const Job& parent);

// Names a listing of jobs in its page tokens.
std::string NameOf(const JobFilter& filter);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_LEASE_RULES_H_
