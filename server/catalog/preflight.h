// What tuning a problem would try, and what stands in its way; compiles and runs nothing.
#ifndef ATTUNE_SERVER_CATALOG_PREFLIGHT_H_
#define ATTUNE_SERVER_CATALOG_PREFLIGHT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/lookup.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::catalog {

// The problem is normalised. device_id may be "profile:<name>" (base/device_profile.h) or empty: the first device here,
// or the L4's profile on a host without one. NotFound when it is neither, Cancelled when `stopped`. Spaces that are too
// large for an exhaustive tuning are counted as far as that is done in a second, and a warning says so.
absl::StatusOr<v1::PreflightResponse> Preflight(const v1::PreflightRequest& request, const World& world,
                                                store::Store* store, const space::Stopped& stopped = nullptr);

// What a trial took on this device lately, from end to end; zero when unknown.
absl::Duration RecentTrialTime(const v1::Device& device, store::Store* store);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_PREFLIGHT_H_
