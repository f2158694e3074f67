// A trial's stored code as what a tool launches.
#ifndef ATTUNE_SERVER_PROFILE_TRIAL_CODE_H_
#define ATTUNE_SERVER_PROFILE_TRIAL_CODE_H_

#include <string>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/profile/tools.h"
#include "server/store/store.h"
#include "server/trials/job.h"

namespace attune::profile {

absl::StatusOr<v1::Trial> ReadTrial(const std::string& name, store::Store& store, const trials::Job& job);

// NotFound when the code is no longer stored.
absl::StatusOr<Target> TargetOf(const v1::Trial& trial, const v1::Device& device, store::Store& store,
                                const trials::Job& job);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_TRIAL_CODE_H_
