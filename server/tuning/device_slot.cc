#include "server/tuning/device_slot.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "server/base/sha256.h"

namespace attune::tuning {

DeviceSlot::DeviceSlot(workers::DeviceWorker* worker, absl::Duration idle_release)
    : worker_(worker), idle_([this, idle_release](const std::stop_token& stop) {
        while (turn_.BeginIdle(idle_release, stop)) {
          worker_->Release();
          prepared_.clear();
          turn_.EndIdle();
        }
      }) {}

DeviceSlot::~DeviceSlot() {
  idle_.request_stop();
  idle_.join();
}

DeviceSession::DeviceSession(DeviceSlot& slot, Priority priority, std::stop_token stop)
    : slot_(slot), stop_(std::move(stop)), ticket_(slot.turn_, priority) {}

void DeviceSession::Use(worker::v1::PrepareRequest request) {
  name_ = Sha256(request.SerializeAsString());
  request_ = std::move(request);
}

template <typename Call>
auto DeviceSession::InTurn(bool prepared, Call call) -> decltype(call()) {
  const absl::Time asked = absl::Now();
  if (!ticket_.Begin(stop_)) return absl::CancelledError("stopped before its turn on the device");
  const absl::Time begun = absl::Now();
  waited_ += begun - asked;
  absl::Status ready;
  if (prepared && slot_.prepared_ != name_) {
    slot_.prepared_.clear();
    ready = slot_.worker_->Prepare(request_).status();
    if (ready.ok()) slot_.prepared_ = name_;
  }
  using Result = decltype(call());
  Result result = ready.ok() ? call() : Result(ready);
  ticket_.End();
  busy_ += absl::Now() - begun;
  return result;
}

absl::Status DeviceSession::Prepare() {
  return InTurn(true, [] { return absl::OkStatus(); });
}

absl::StatusOr<worker::v1::TrialResponse> DeviceSession::Trial(const worker::v1::TrialRequest& request) {
  return InTurn(true, [&] { return slot_.worker_->Trial(request); });
}

absl::StatusOr<worker::v1::PlayOffResponse> DeviceSession::PlayOff(const worker::v1::PlayOffRequest& request) {
  return InTurn(true, [&] { return slot_.worker_->PlayOff(request); });
}

absl::StatusOr<worker::v1::FloorResponse> DeviceSession::Floor(const worker::v1::FloorRequest& request) {
  return InTurn(false, [&] { return slot_.worker_->Floor(request); });
}

}  // namespace attune::tuning
