#include "server/store/lease_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune::store {

absl::Status NoJob(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("operation ", Quoted(name), " does not exist"));
}

absl::Status CheckNewJob(const Job& job) {
  if (!job.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("job: name is empty; it must be operations/<id>");
}

absl::Status CheckUnfinished(size_t unfinished, size_t most) {
  if (unfinished < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(unfinished, " operations are queued or running, the most that are ",
                                                   "taken; cancel some or wait for them"));
}

std::vector<JoinTerms::Same> AllTheSame(const Job& wanted, const JoinTerms& terms) {
  std::vector<JoinTerms::Same> all = {{wanted.request, wanted.identity}};
  all.insert(all.end(), terms.others.begin(), terms.others.end());
  std::erase_if(all, [](const JoinTerms::Same& same) { return same.identity.empty(); });
  return all;
}

absl::Status CheckSameRequest(const Job& wanted, const JoinTerms& terms, const Job& former,
                              absl::string_view identity) {
  const auto is_it = [&](const JoinTerms::Same& same) {
    if (!identity.empty()) return same.identity == identity;
    return wanted.kind == former.kind && same.request == former.request;
  };
  if (is_it({wanted.request, wanted.identity}) || std::any_of(terms.others.begin(), terms.others.end(), is_it)) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat("request_id is ", Quoted(wanted.operation.request_id()),
                                               ", which was given to ", former.name,
                                               ", another request; give this one an id of its own"));
}

absl::StatusOr<Job> SameJobOrTaken(const Job& wanted, const Job& former) {
  if (!wanted.parent.empty() && wanted.parent == former.parent) return former;
  if (wanted.kind == former.kind && wanted.request == former.request && wanted.request_id == former.request_id) {
    return former;
  }
  return absl::AlreadyExistsError(absl::StrCat("job: name ", wanted.name, " is taken"));
}

bool CanLease(const Job& job, absl::string_view holder, absl::Time now) {
  if (job.operation.done()) return false;
  return job.holder.empty() || job.holder == holder || job.leased_until <= now;
}

absl::Status CheckHeld(const Fence& fence, const Job& now) {
  if (now.epoch == fence.epoch && !now.holder.empty() && !now.operation.done()) return absl::OkStatus();
  return StaleError(fence, now);
}

bool EndedUnder(const Fence& fence, const Job& now) {
  return now.operation.done() && now.epoch == fence.epoch && !now.holder.empty();
}

bool GivenBackUnder(const Fence& fence, const Job& now) {
  return !now.operation.done() && now.epoch == fence.epoch && now.epoch > 0 && now.holder.empty();
}

absl::Status CheckUpdate(const v1::Operation& operation) {
  if (!operation.done()) return absl::OkStatus();
  return absl::InvalidArgumentError("operation: done is set; Finish ends a job");
}

absl::Status CheckEnd(const v1::Operation& operation) {
  if (operation.done()) return absl::OkStatus();
  return absl::InvalidArgumentError("operation: done is not set; Update keeps the state of a job that goes on");
}

bool EndsItsParts(const Job& parent) { return parent.cancelled || parent.operation.done(); }

std::string NameOf(const JobFilter& filter) {
  const absl::string_view of = filter.active_only ? "active jobs " : "all jobs ";
  return absl::StrCat(of, filter.problem_text, filter.parent.empty() ? "" : " of ", filter.parent, " kind ",
                      static_cast<int>(filter.kind.value_or(JobKind{})));
}

}  // namespace attune::store
