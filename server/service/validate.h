// Requests as they may reach the tuner: every field's meaning checked, defaults filled in, problems normalised. Their
// sizes, and what holds of any number or enum, are checked before (limits.h).
//
// Each function changes its request in place. What a request may name is what `host` has. InvalidArgument names the
// field, the value and what is allowed.
#ifndef ATTUNE_SERVER_SERVICE_VALIDATE_H_
#define ATTUNE_SERVER_SERVICE_VALIDATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/host.h"

namespace attune::service {

absl::Status Validate(v1::GetBestRequest& request, const catalog::Host& host);
absl::Status Validate(v1::TuneRequest& request, const catalog::Host& host);
absl::Status Validate(v1::SweepRequest& request, const catalog::Host& host);
absl::Status Validate(v1::EvaluateVariantRequest& request, const catalog::Host& host);
// What the files say, and the device where none is named, is for submit::Submissions to check.
absl::Status Validate(v1::SubmitRequest& request, const catalog::Host& host);
// `best` is validated by itself.
absl::Status Validate(v1::ExplainRequest& request);
// Which trial is meant, and which device may run it, is for server/profile to say.
absl::Status Validate(v1::ProfileRequest& request, const catalog::Host& host);
absl::Status Validate(v1::SanitizeRequest& request, const catalog::Host& host);
absl::Status Validate(v1::PreflightRequest& request, const catalog::Host& host);
absl::Status Validate(v1::RollBackRequest& request, const catalog::Host& host);
absl::Status Validate(v1::UnpinRequest& request, const catalog::Host& host);
// Verdicts belong to a class: a device stands for its class here.
absl::Status Validate(v1::RetryTrialsRequest& request, const catalog::Host& host);
absl::Status Validate(v1::RecordBaselineRequest& request, const catalog::Host& host);
absl::Status Validate(v1::ListBaselinesRequest& request, const catalog::Host& host);
absl::Status Validate(v1::ListRetimingsRequest& request);
absl::Status Validate(v1::ListTrendsRequest& request);
absl::Status Validate(v1::CompareTimesRequest& request);
// A class's alias in device_id becomes device_class, a UUID device_uuid; an id stays, whether it is here or not.
absl::Status Validate(v1::TrialFilter& filter, const catalog::Host& host);

// A page size of 0 is 50. InvalidArgument when negative or above 1000.
absl::StatusOr<int> PageSize(int page_size);

}  // namespace attune::service

#endif  // ATTUNE_SERVER_SERVICE_VALIDATE_H_
