// Which trial's code a request means.
#ifndef ATTUNE_SERVER_PROFILE_SUBJECT_H_
#define ATTUNE_SERVER_PROFILE_SUBJECT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/problem.pb.h"
#include "attune/v1/profiling.pb.h"
#include "attune/v1/submission.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::profile {

// The name of a submission's trial: of its best variant, or of what went wrong. `problem`: which of its problems,
// normalised, from the request's `field`; null where the request names none. InvalidArgument when there are several
// then, NotFound when it has no trial of that one.
absl::StatusOr<std::string> TrialOf(const v1::Submission& submission, const v1::Problem* problem,
                                    absl::string_view field);

// The trial that `code` means on the device of this name (empty: the trial's own, or the first), with its recipe.
// `code.problem` and `code.variant` are valid and normalised. `submission`: that which it names, which the caller may
// see. NotFound when nobody has tried it, or it has no code any more.
absl::StatusOr<v1::Trial> FindSubject(const v1::ProfiledCode& code, const std::string& device,
                                      const v1::Submission* submission, store::Store& store, const catalog::Host& host);

// The name of a device that can run the trial's code: `wanted` if it is of the trial's class, and where it is empty the
// trial's card, or another of its class. FailedPrecondition otherwise, and for a device that is not CUDA's.
absl::StatusOr<std::string> DeviceFor(const v1::Trial& trial, const std::string& wanted, const catalog::Host& host);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_SUBJECT_H_
