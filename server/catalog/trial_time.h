// How long a trial takes on a device, from end to end.
#ifndef ATTUNE_SERVER_CATALOG_TRIAL_TIME_H_
#define ATTUNE_SERVER_CATALOG_TRIAL_TIME_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/device.pb.h"
#include "server/store/store.h"

namespace attune::catalog {

// From the times that the last trials of the newest job ended at; zero when unknown.
absl::StatusOr<absl::Duration> RecentTrialTime(const v1::Device& device, store::Store& store);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_TRIAL_TIME_H_
