// Requests as they may reach the tuner: every field's meaning checked, defaults filled in, problems normalised. Their
// sizes, and what holds of any number or enum, are checked before (limits.h).
//
// Each function changes its request in place. InvalidArgument names the field, the value and what is allowed.
#ifndef ATTUNE_SERVER_SERVICE_VALIDATE_H_
#define ATTUNE_SERVER_SERVICE_VALIDATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/space/family.h"

namespace attune::service {

// What a request may name.
struct Known {
  std::vector<v1::Device> devices;
  std::vector<std::shared_ptr<const space::Family>> families;
};

absl::Status Validate(v1::GetBestRequest& request, const Known& known);
absl::Status Validate(v1::TuneRequest& request, const Known& known);
absl::Status Validate(v1::SweepRequest& request, const Known& known);
absl::Status Validate(v1::EvaluateVariantRequest& request, const Known& known);
absl::Status Validate(v1::PreflightRequest& request, const Known& known);
absl::Status Validate(v1::RollBackRequest& request, const Known& known);
absl::Status Validate(v1::UnpinRequest& request, const Known& known);
absl::Status Validate(v1::RetryTrialsRequest& request);
absl::Status Validate(v1::RecordBaselineRequest& request, const Known& known);
absl::Status Validate(v1::TrialFilter& filter);

// A page size of 0 is 50. InvalidArgument when negative or above 1000.
absl::StatusOr<int> PageSize(int page_size);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_VALIDATE_H_
