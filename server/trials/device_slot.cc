#include "server/trials/device_slot.h"

#include <algorithm>
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
  if (!first_turn_.has_value()) {
    first_turn_ = begun;
    waited_before_ = waited_;
  }
  slot_.worker_->AbortWith(abort_);
  absl::Status ready = wanted() ? absl::OkStatus() : absl::AbortedError("not wanted any more");
  if (ready.ok() && prepared && slot_.prepared_ != name_) {
    slot_.prepared_.clear();
    const absl::Duration start = slot_.clock_();
    const absl::StatusOr<worker::v1::PrepareResponse> made = slot_.worker_->Prepare(request_);
    ready = made.status();
    slot_.prepare_time_ = slot_.clock_() - start;
    cost_.set_prepare_ms(cost_.prepare_ms() + absl::ToDoubleMilliseconds(slot_.prepare_time_));
    if (made.ok()) cost_.set_device_ms(cost_.device_ms() + made->device_ms());
    if (ready.ok()) slot_.prepared_ = name_;
  }
  if (prepared && ready.ok()) prepare_time_ = slot_.prepare_time_;
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
  return InTurn(true, wanted, [&] {
    const absl::Duration start = slot_.clock_();
    absl::StatusOr<worker::v1::TrialResponse> response = slot_.worker_->Trial(request);
    const double call_ms = absl::ToDoubleMilliseconds(slot_.clock_() - start);
    const double time_ms = response.ok() ? std::min(response->time_ms(), call_ms) : 0;
    cost_.set_time_ms(cost_.time_ms() + time_ms);
    // What a worker that hung or died did not tell, too.
    cost_.set_check_ms(cost_.check_ms() + call_ms - time_ms);
    if (!response.ok()) return response;
    cost_.set_device_ms(cost_.device_ms() + response->device_ms());
    if (response->check_ms() <= 0 && response->time_ms() <= 0) response->set_check_ms(call_ms);
    return response;
  });
}

absl::StatusOr<worker::v1::PlayOffResponse> DeviceUse::PlayOff(const worker::v1::PlayOffRequest& request) {
  return InTurn(true, Always, [&] {
    const absl::Duration start = slot_.clock_();
    absl::StatusOr<worker::v1::PlayOffResponse> response = slot_.worker_->PlayOff(request);
    cost_.set_play_off_ms(cost_.play_off_ms() + absl::ToDoubleMilliseconds(slot_.clock_() - start));
    if (response.ok()) cost_.set_device_ms(cost_.device_ms() + response->device_ms());
    return response;
  });
}

void SetCost(const v1::OperationCost& before, const v1::OperationCost& use, double compile_ms,
             v1::OperationProgress& progress) {
  v1::OperationCost& cost = *progress.mutable_cost();
  cost = SumOf(before, use);
  cost.set_compile_ms(before.compile_ms() + compile_ms);
  const double all = cost.prepare_ms() + cost.check_ms() + cost.time_ms() + cost.play_off_ms() + cost.wait_ms();
  progress.set_device_busy(all > 0 ? std::min(cost.device_ms() / all, 1.0) : 0);
}

v1::OperationCost SumOf(const v1::OperationCost& a, const v1::OperationCost& b) {
  v1::OperationCost sum;
  sum.set_prepare_ms(a.prepare_ms() + b.prepare_ms());
  sum.set_check_ms(a.check_ms() + b.check_ms());
  sum.set_time_ms(a.time_ms() + b.time_ms());
  sum.set_play_off_ms(a.play_off_ms() + b.play_off_ms());
  sum.set_wait_ms(a.wait_ms() + b.wait_ms());
  sum.set_device_ms(a.device_ms() + b.device_ms());
  sum.set_compile_ms(a.compile_ms() + b.compile_ms());
  return sum;
}

v1::OperationCost DeviceUse::cost() const {
  v1::OperationCost cost = cost_;
  if (!first_turn_.has_value()) return cost;
  const absl::Duration all = slot_.clock_() - *first_turn_ - (waited_ - waited_before_);
  const double known = cost.prepare_ms() + cost.check_ms() + cost.time_ms() + cost.play_off_ms();
  cost.set_wait_ms(std::max(absl::ToDoubleMilliseconds(all) - known, 0.0));
  return cost;
}

absl::StatusOr<worker::v1::FloorResponse> DeviceUse::Floor(const worker::v1::FloorRequest& request) {
  return InTurn(false, Always, [&] {
    const absl::Duration start = slot_.clock_();
    absl::StatusOr<worker::v1::FloorResponse> response = slot_.worker_->Floor(request);
    cost_.set_prepare_ms(cost_.prepare_ms() + absl::ToDoubleMilliseconds(slot_.clock_() - start));
    return response;
  });
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
