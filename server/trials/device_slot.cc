#include "server/trials/device_slot.h"

#include <utility>

#include "absl/status/status.h"
#include "server/base/sha256.h"

namespace attune::trials {
namespace {

bool Always() { return true; }

}  // namespace

DeviceSlot::DeviceSlot(supervisor::DeviceWorker* worker, absl::Duration idle_release, Clock clock)
    : worker_(worker), clock_(std::move(clock)), idle_([this, idle_release](const std::stop_token& stop) {
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

DeviceUse::DeviceUse(DeviceSlot& slot, Priority priority, std::stop_token stop, Waiter waiter, std::stop_token abort)
    : slot_(slot), stop_(std::move(stop)), abort_(std::move(abort)), ticket_(slot.turn_, priority, std::move(waiter)) {}

void DeviceUse::Use(worker::v1::PrepareRequest request) {
  name_ = Sha256(request.SerializeAsString());
  request_ = std::move(request);
}

template <typename Call>
auto DeviceUse::InTurn(bool prepared, absl::FunctionRef<bool()> wanted, Call call) -> decltype(call()) {
  const absl::Duration asked = slot_.clock_();
  if (!ticket_.Begin(stop_)) return absl::CancelledError("stopped before its turn on the device");
  const absl::Duration begun = slot_.clock_();
  waited_ += begun - asked;
  slot_.worker_->AbortWith(abort_);
  absl::Status ready = wanted() ? absl::OkStatus() : absl::AbortedError("not wanted any more");
  if (ready.ok() && prepared && slot_.prepared_ != name_) {
    slot_.prepared_.clear();
    ready = slot_.worker_->Prepare(request_).status();
    if (ready.ok()) slot_.prepared_ = name_;
  }
  using Result = decltype(call());
  Result result = ready.ok() ? call() : Result(ready);
  ticket_.End();
  busy_ += slot_.clock_() - begun;
  return result;
}

absl::Status DeviceUse::OpenIfFree() {
  if (!ticket_.TryBegin()) return absl::OkStatus();
  slot_.worker_->AbortWith(abort_);
  const absl::Status open = slot_.worker_->Open();
  ticket_.End();
  return open;
}

absl::Status DeviceUse::Await() {
  return InTurn(false, Always, [] { return absl::OkStatus(); });
}

absl::Status DeviceUse::Prepare() {
  return InTurn(true, Always, [] { return absl::OkStatus(); });
}

absl::StatusOr<worker::v1::TrialResponse> DeviceUse::Trial(const worker::v1::TrialRequest& request,
                                                           absl::FunctionRef<bool()> wanted) {
  return InTurn(true, wanted, [&] { return slot_.worker_->Trial(request); });
}

absl::StatusOr<worker::v1::PlayOffResponse> DeviceUse::PlayOff(const worker::v1::PlayOffRequest& request) {
  return InTurn(true, Always, [&] { return slot_.worker_->PlayOff(request); });
}

absl::StatusOr<worker::v1::FloorResponse> DeviceUse::Floor(const worker::v1::FloorRequest& request) {
  return InTurn(false, Always, [&] { return slot_.worker_->Floor(request); });
}

absl::Status DeviceUse::Lend(absl::FunctionRef<absl::Status()> work) {
  return InTurn(false, Always, [&]() -> absl::Status {
    if (absl::Status open = slot_.worker_->Open(); !open.ok()) return open;
    slot_.worker_->Release();
    slot_.prepared_.clear();
    return work();
  });
}

}  // namespace attune::trials
