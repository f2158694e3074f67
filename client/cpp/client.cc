#include "client/cpp/client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/client_impl.h"
#include "client/cpp/token.h"

namespace attune {
namespace {

using Stub = Connection::Stub;
using AccessStub = Connection::AccessStub;
using BlobStub = Connection::BlobStub;
using FleetStub = Connection::FleetStub;

absl::Status CheckAddress(absl::string_view server) {
  if (absl::StartsWith(server, "unix:") && server.size() > 5) return absl::OkStatus();
  const size_t colon = server.rfind(':');
  int port = 0;
  if (colon != absl::string_view::npos && colon > 0 && absl::SimpleAtoi(server.substr(colon + 1), &port) && port > 0 &&
      port < 65536) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("server is '", server, "'; allowed: host:port with a port of 1..65535, and unix:/path"));
}

// 128 random bits: no two requests that anybody makes share one.
std::string NewRequestId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x%08x%08x", random(), random(), random(), random());
}

template <typename Request>
Request WithRequestId(Request request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
  return request;
}

template <typename Request>
Request Named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}

}  // namespace

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(absl::string_view server, ClientOptions options) {
  if (absl::Status status = CheckAddress(server); !status.ok()) return status;
  if (absl::Status status = CheckTls(options.tls); !status.ok()) return status;
  if (!options.token_file.empty() && !IsLocal(server) && !IsEncrypted(server, options.tls)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a token would cross the network to '", server,
                     "' unencrypted; connect without insecure, or without a token file"));
  }
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(std::string(server), std::move(options))));
}

absl::StatusOr<v1::Operation> Client::Tune(v1::TuneRequest request) {
  return impl_->Call(&Stub::Tune, WithRequestId(std::move(request)));
}
absl::StatusOr<v1::Operation> Client::Sweep(v1::SweepRequest request) {
  return impl_->Call(&Stub::Sweep, WithRequestId(std::move(request)));
}
absl::StatusOr<v1::Operation> Client::Evaluate(v1::EvaluateVariantRequest request) {
  return impl_->Call(&Stub::EvaluateVariant, WithRequestId(std::move(request)));
}
absl::StatusOr<v1::Operation> Client::Submit(v1::SubmitRequest request) {
  return impl_->Call(&Stub::Submit, WithRequestId(std::move(request)));
}

absl::StatusOr<v1::Operation> Client::Profile(v1::ProfileRequest request) {
  return impl_->Call(&Stub::Profile, WithRequestId(std::move(request)));
}

absl::StatusOr<v1::Operation> Client::Sanitize(v1::SanitizeRequest request) {
  return impl_->Call(&Stub::Sanitize, WithRequestId(std::move(request)));
}
absl::StatusOr<v1::Submission> Client::GetSubmission(const std::string& submission) {
  v1::GetSubmissionRequest request;
  request.set_name(submission);
  return impl_->Call(&Stub::GetSubmission, request);
}
absl::StatusOr<v1::ListSubmissionsResponse> Client::ListSubmissions(const v1::ListSubmissionsRequest& request) {
  return impl_->Call(&Stub::ListSubmissions, request);
}
absl::StatusOr<v1::Submission> Client::Adopt(const std::string& submission) {
  v1::AdoptSubmissionRequest request;
  request.set_name(submission);
  return impl_->Call(&Stub::AdoptSubmission, request);
}
absl::StatusOr<v1::Submission> Client::Withdraw(const std::string& submission) {
  v1::WithdrawSubmissionRequest request;
  request.set_name(submission);
  return impl_->Call(&Stub::WithdrawSubmission, request);
}
absl::StatusOr<v1::PlanSweepResponse> Client::PlanSweep(const v1::SweepRequest& request) {
  return impl_->Call(&Stub::PlanSweep, request);
}

absl::StatusOr<v1::Operation> Client::GetOperation(const std::string& operation) {
  return impl_->Call(&Stub::GetOperation, Named<v1::GetOperationRequest>(operation));
}
absl::StatusOr<v1::Operation> Client::Cancel(const std::string& operation) {
  return impl_->Call(&Stub::CancelOperation, Named<v1::CancelOperationRequest>(operation));
}
absl::StatusOr<v1::ListOperationsResponse> Client::ListOperations(const v1::ListOperationsRequest& request) {
  return impl_->Call(&Stub::ListOperations, request);
}

absl::StatusOr<v1::Trial> Client::GetTrial(const std::string& trial) {
  return impl_->Call(&Stub::GetTrial, Named<v1::GetTrialRequest>(trial));
}
absl::StatusOr<v1::ListTrialsResponse> Client::ListTrials(const v1::ListTrialsRequest& request) {
  return impl_->Call(&Stub::ListTrials, request);
}
absl::StatusOr<v1::RetryTrialsResponse> Client::RetryTrials(const v1::RetryTrialsRequest& request) {
  return impl_->Call(&Stub::RetryTrials, request);
}
absl::StatusOr<v1::ListIncumbentsResponse> Client::ListIncumbents(const v1::ListIncumbentsRequest& request) {
  return impl_->Call(&Stub::ListIncumbents, request);
}
absl::StatusOr<v1::ExplainResponse> Client::Explain(const v1::ExplainRequest& request) {
  return impl_->Call(&Stub::Explain, request);
}
absl::StatusOr<v1::Incumbent> Client::RollBack(const v1::RollBackRequest& request) {
  absl::StatusOr<v1::Incumbent> served = impl_->Call(&Stub::RollBack, request, Retry::kNo);
  ClearCache();
  return served;
}
absl::StatusOr<v1::Incumbent> Client::Unpin(const v1::UnpinRequest& request) {
  absl::StatusOr<v1::Incumbent> served = impl_->Call(&Stub::Unpin, request);
  ClearCache();
  return served;
}
absl::StatusOr<v1::Baseline> Client::RecordBaseline(const v1::RecordBaselineRequest& request) {
  return impl_->Call(&Stub::RecordBaseline, request, Retry::kNo);
}
absl::StatusOr<v1::ListBaselinesResponse> Client::ListBaselines(const v1::ListBaselinesRequest& request) {
  return impl_->Call(&Stub::ListBaselines, request);
}
absl::StatusOr<v1::ListRetimingsResponse> Client::ListRetimings(const v1::ListRetimingsRequest& request) {
  return impl_->Call(&Stub::ListRetimings, request);
}
absl::StatusOr<v1::ListTrendsResponse> Client::ListTrends(const v1::ListTrendsRequest& request) {
  return impl_->Call(&Stub::ListTrends, request);
}
absl::StatusOr<v1::CompareTimesResponse> Client::CompareTimes(const v1::CompareTimesRequest& request) {
  return impl_->Call(&Stub::CompareTimes, request);
}
absl::StatusOr<v1::ListMissesResponse> Client::ListMisses(const v1::ListMissesRequest& request) {
  return impl_->Call(&Stub::ListMisses, request);
}

absl::StatusOr<v1::ListKernelFamiliesResponse> Client::ListKernelFamilies() {
  return impl_->Call(&Stub::ListKernelFamilies, v1::ListKernelFamiliesRequest());
}
absl::StatusOr<v1::ListDevicesResponse> Client::ListDevices() {
  return impl_->Call(&Stub::ListDevices, v1::ListDevicesRequest());
}
absl::StatusOr<v1::PreflightResponse> Client::Preflight(const v1::PreflightRequest& request) {
  return impl_->Call(&Stub::Preflight, request);
}
absl::StatusOr<v1::Backup> Client::CreateBackup(const v1::CreateBackupRequest& request) {
  const absl::Duration deadline = std::max(kBackupDeadline, impl_->options.deadline);
  return impl_->connection.Call(&Stub::CreateBackup, request, deadline, Retry::kNo);
}
absl::StatusOr<v1::ListBackupsResponse> Client::ListBackups(const v1::ListBackupsRequest& request) {
  return impl_->Call(&Stub::ListBackups, request);
}
absl::StatusOr<v1::ListBlobsResponse> Client::ListBlobs(const v1::ListBlobsRequest& request) {
  return impl_->Call(&BlobStub::ListBlobs, request);
}
absl::StatusOr<v1::DeleteBlobsResponse> Client::DeleteBlobs(const v1::DeleteBlobsRequest& request) {
  return impl_->Call(&BlobStub::DeleteBlobs, request);
}
absl::StatusOr<v1::ListHostsResponse> Client::ListHosts() {
  return impl_->Call(&FleetStub::ListHosts, v1::ListHostsRequest());
}
absl::StatusOr<v1::Host> Client::DrainHost(absl::string_view name) {
  v1::DrainHostRequest request;
  request.set_name(std::string(name));
  return impl_->Call(&FleetStub::DrainHost, request);
}
absl::StatusOr<v1::Host> Client::UndrainHost(absl::string_view name) {
  v1::UndrainHostRequest request;
  request.set_name(std::string(name));
  return impl_->Call(&FleetStub::UndrainHost, request);
}
absl::StatusOr<v1::Host> Client::ForgetHost(absl::string_view name) {
  v1::ForgetHostRequest request;
  request.set_name(std::string(name));
  return impl_->Call(&FleetStub::ForgetHost, request);
}

absl::StatusOr<v1::CreateTokenResponse> Client::CreateToken(const v1::CreateTokenRequest& request) {
  return impl_->Call(&AccessStub::CreateToken, request, Retry::kNo);
}
absl::StatusOr<v1::Caller> Client::GetCaller() { return impl_->Call(&AccessStub::GetCaller, v1::GetCallerRequest()); }
absl::StatusOr<v1::ListTokensResponse> Client::ListTokens() {
  return impl_->Call(&AccessStub::ListTokens, v1::ListTokensRequest());
}
absl::StatusOr<v1::Token> Client::RevokeToken(const v1::RevokeTokenRequest& request) {
  return impl_->Call(&AccessStub::RevokeToken, request);
}
absl::Status Client::Ping() { return impl_->Call(&Stub::Ping, v1::PingRequest()).status(); }

}  // namespace attune
