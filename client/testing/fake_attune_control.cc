// What tests tell a FakeAttune and ask of it, the errors that it sends, and the server that it runs in.
#include <utility>

#include "client/testing/fake_attune.h"
#include "google/rpc/rpc.pb.h"

namespace attune::testing {

grpc::Status RichError(grpc::StatusCode code, const std::string& message, const std::string& reason,
                       const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("attune.dev");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  google::rpc::Status rich;
  rich.set_code(code);
  rich.set_message(message);
  rich.add_details()->PackFrom(info);
  return {code, message, rich.SerializeAsString()};
}

void FakeAttune::FailNext(int calls, grpc::Status status) {
  const std::lock_guard lock(mutex_);
  failures_ = calls;
  failure_ = std::move(status);
}
int FakeAttune::calls(const std::string& method) const {
  const std::lock_guard lock(mutex_);
  const auto it = calls_.find(method);
  return it == calls_.end() ? 0 : it->second;
}
v1::TuneRequest FakeAttune::last_tune() const {
  const std::lock_guard lock(mutex_);
  return last_tune_;
}
v1::SweepRequest FakeAttune::last_sweep() const {
  const std::lock_guard lock(mutex_);
  return last_sweep_;
}
v1::ListTrialsRequest FakeAttune::last_list_trials() const {
  const std::lock_guard lock(mutex_);
  return last_list_trials_;
}
v1::EvaluateVariantRequest FakeAttune::last_evaluate() const {
  const std::lock_guard lock(mutex_);
  return last_evaluate_;
}
v1::ListOperationsRequest FakeAttune::last_list_operations() const {
  const std::lock_guard lock(mutex_);
  return last_list_operations_;
}
v1::RollBackRequest FakeAttune::last_roll_back() const {
  const std::lock_guard lock(mutex_);
  return last_roll_back_;
}
v1::RetryTrialsRequest FakeAttune::last_retry() const {
  const std::lock_guard lock(mutex_);
  return last_retry_;
}
void FakeAttune::EndsWith(v1::Operation done) {
  const std::lock_guard lock(mutex_);
  ends_with_ = std::move(done);
}
void FakeAttune::HasOperation(v1::Operation operation) {
  const std::lock_guard lock(mutex_);
  operation_ = std::move(operation);
}
void FakeAttune::CancelsLater() {
  const std::lock_guard lock(mutex_);
  cancels_later_ = true;
}
void FakeAttune::Answers(v1::Provenance provenance, const std::string& detail, double median_us) {
  const std::lock_guard lock(mutex_);
  provenance_ = provenance;
  provenance_detail_ = detail;
  median_us_ = median_us;
}
void FakeAttune::Pins() {
  const std::lock_guard lock(mutex_);
  pinned_ = true;
}
void FakeAttune::BreakWatches(int streams) {
  const std::lock_guard lock(mutex_);
  broken_watches_ = streams;
}
void FakeAttune::HoldWatches(std::function<void()> on_watch) {
  const std::lock_guard lock(mutex_);
  on_watch_ = std::move(on_watch);
}

void FakeAttune::HasTrials(std::vector<v1::Trial> trials) {
  const std::lock_guard lock(mutex_);
  trials_ = std::move(trials);
}
void FakeAttune::HasCode(std::vector<v1::ArtifactState> states) {
  const std::lock_guard lock(mutex_);
  code_ = {states.begin(), states.end()};
}

void FakeAttune::TimedBy(const std::string& uuid) {
  const std::lock_guard lock(mutex_);
  timed_by_ = uuid;
}

void FakeAttune::HasAnAlternative() {
  const std::lock_guard lock(mutex_);
  alternative_ = true;
}

std::string FakeAttune::authorization() const {
  const std::lock_guard lock(mutex_);
  return authorization_;
}

v1::GetBestRequest FakeAttune::last_get_best() const {
  const std::lock_guard lock(mutex_);
  return last_get_best_;
}

RunningServer::RunningServer(grpc::Service* service, const std::string& address, grpc::Service* other,
                             const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, credentials, &port);
  builder.RegisterService(service);
  if (other != nullptr) builder.RegisterService(other);
  server_ = builder.BuildAndStart();
  address_ = address.rfind("unix:", 0) == 0 ? address : "127.0.0.1:" + std::to_string(port);
}

// Calls that are still held open are cancelled.
RunningServer::~RunningServer() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

}  // namespace attune::testing
