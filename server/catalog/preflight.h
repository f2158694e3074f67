// What tuning a problem would try, and what stands in its way; compiles and runs nothing.
#ifndef ATTUNE_SERVER_CATALOG_PREFLIGHT_H_
#define ATTUNE_SERVER_CATALOG_PREFLIGHT_H_

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/host.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::catalog {

// The request is normalised. device_id may be "profile:<name>" (base/device_profile.h); empty, on a host without a
// device, stands for the L4's profile. NotFound when it is neither, Cancelled when `stopped`. Spaces that are too large
// for an exhaustive tuning are counted as far as that is done in a second, and a warning says so.
absl::StatusOr<v1::PreflightResponse> Preflight(const v1::PreflightRequest& request, const Host& host,
                                                store::Store& store, const space::Stopped& stopped = nullptr);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_PREFLIGHT_H_
