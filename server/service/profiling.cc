// The calls that run a trial's code under NVIDIA's tools.
#include <utility>

#include "server/profile/subject.h"
#include "server/service/attune_service.h"
#include "server/service/calls.h"
#include "server/service/validate.h"

namespace attune::service {
namespace {

// The request as one that names its trial, and a device that can run it: equal requests are then the same, however they
// were spelled.
template <typename Request>
absl::Status NameTrial(const ServiceOptions& options, const submit::Reader& reader, Request& request) {
  if (absl::Status status = Validate(request, *options.host); !status.ok()) return status;
  absl::StatusOr<v1::Submission> submission;
  const bool submitted = !request.code().submission().empty();
  if (submitted) {
    submission = options.submissions->Get(request.code().submission(), reader);
    if (!submission.ok()) return submission.status();
  }
  const absl::StatusOr<v1::Trial> trial = profile::FindSubject(
      request.code(), request.device_id(), submitted ? &*submission : nullptr, *options.store, *options.host);
  if (!trial.ok()) return trial.status();
  absl::StatusOr<std::string> device = profile::DeviceFor(*trial, request.device_id(), *options.host);
  if (!device.ok()) return device.status();
  request.clear_code();
  request.mutable_code()->set_trial(trial->name());
  request.set_device_id(*std::move(device));
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* AttuneServiceImpl::Profile(grpc::CallbackServerContext* context,
                                                     const v1::ProfileRequest* request, v1::Operation* response) {
  return Later(
      context, "Profile", *request,
      [this, context, request, response]() -> absl::Status {
        v1::ProfileRequest valid = *request;
        if (absl::Status status = NameTrial(options_, ReaderOf(*context), valid); !status.ok()) return status;
        return Fill(options_.tuner->Profile(valid, AskerOf(*context)), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Sanitize(grpc::CallbackServerContext* context,
                                                      const v1::SanitizeRequest* request, v1::Operation* response) {
  return Later(
      context, "Sanitize", *request,
      [this, context, request, response]() -> absl::Status {
        v1::SanitizeRequest valid = *request;
        if (absl::Status status = NameTrial(options_, ReaderOf(*context), valid); !status.ok()) return status;
        return Fill(options_.tuner->Sanitize(valid, AskerOf(*context)), response);
      },
      &writing_);
}

}  // namespace attune::service
