#include "server/jobs/live_operation.h"

#include <utility>

#include "server/base/proto_time.h"

namespace attune::jobs {

LiveOperation::LiveOperation(v1::Operation operation, std::function<void()> changed, Clock clock, store::JobKind kind,
                             std::string trace)
    : name_(operation.name()),
      kind_(kind),
      trace_(std::move(trace)),
      parent_(operation.parent()),
      principal_(operation.principal()),
      title_(operation.title()),
      changed_(std::move(changed)),
      clock_(std::move(clock)),
      operation_(std::move(operation)),
      came_(clock_()),
      device_time_(DurationOf(operation_.device_time())) {}

absl::Duration LiveOperation::device_time() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return DeviceTimeLocked();
}

void LiveOperation::AddDeviceTime(absl::Duration time) {
  std::lock_guard<std::mutex> lock(mutex_);
  device_time_ += time;
}

absl::Duration LiveOperation::DeviceTimeLocked() const {
  return on_device_since_.has_value() ? device_time_ + (clock_() - *on_device_since_) : device_time_;
}

void LiveOperation::CountDeviceTimeLocked() {
  device_time_ = DeviceTimeLocked();
  on_device_since_.reset();
  const bool runs = begun_.has_value() && !device_.empty() && !operation_.done();
  if (runs && operation_.progress().queue_position() == 0) on_device_since_ = clock_();
}

std::optional<absl::Duration> LiveOperation::waited() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return waited_;
}

v1::Operation LiveOperation::Snapshot(uint64_t* version) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (version != nullptr) *version = version_;
  v1::Operation operation = operation_;
  if (!operation.done() && begun_.has_value()) {
    SetDuration(clock_() - *begun_, operation.mutable_progress()->mutable_elapsed());
    operation.mutable_progress()->set_device_id(device_);
  }
  if (const absl::Duration time = DeviceTimeLocked(); !operation.done() && time > absl::ZeroDuration()) {
    SetDuration(time, operation.mutable_device_time());
  }
  return operation;
}

uint64_t LiveOperation::version() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return version_;
}

bool LiveOperation::done() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return operation_.done();
}

bool LiveOperation::Begin(const std::string& device) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(taken_, true)) return false;
    begun_ = clock_();
    device_ = device;
    SetStateLocked();
    CountDeviceTimeLocked();
    ++version_;
  }
  changed_();
  return true;
}

bool LiveOperation::taken() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return taken_;
}

bool LiveOperation::Withdraw() {
  std::lock_guard<std::mutex> lock(mutex_);
  return !std::exchange(taken_, true);
}

trials::Waiter LiveOperation::waiter() {
  return {name_, title_, [this](const trials::QueuePlace& place) { SetPlace(place); }};
}

void LiveOperation::SetPlace(const trials::QueuePlace& place) {
  Update([&](v1::Operation& operation) {
    v1::OperationProgress& progress = *operation.mutable_progress();
    progress.set_waits_for(place.first);
    progress.set_waits_for_title(place.first_title);
    progress.set_queue_position(place.position);
    had_turn_ = had_turn_ || place.on_device;
    if (begun_.has_value()) SetStateLocked();
    CountDeviceTimeLocked();
  });
}

void LiveOperation::SetStateLocked() {
  const bool waits = operation_.progress().queue_position() > 0 && !had_turn_;
  operation_.set_state(waits ? v1::Operation::STATE_QUEUED : v1::Operation::STATE_RUNNING);
  if (!waits && !waited_.has_value()) waited_ = clock_() - came_;
}

void LiveOperation::Update(absl::FunctionRef<void(v1::Operation&)> change) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (operation_.done()) return;
    change(operation_);
    if (operation_.done()) CountDeviceTimeLocked();
    if (operation_.done() && begun_.has_value()) {
      SetDuration(clock_() - *begun_, operation_.mutable_progress()->mutable_elapsed());
    }
    ++version_;
  }
  changed_();
}

void LiveOperation::Change(absl::FunctionRef<void(v1::OperationProgress&)> change) {
  Update([&](v1::Operation& operation) { change(*operation.mutable_progress()); });
}

void LiveOperation::RequestStop(bool cancel) {
  std::stop_source stop(std::nostopstate);
  std::stop_source abort(std::nostopstate);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = cancelled_ || cancel;
    stop = stop_;
    abort = abort_;
  }
  stop.request_stop();
  if (cancel) abort.request_stop();
}

std::stop_token LiveOperation::abort_token() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return abort_.get_token();
}

std::stop_token LiveOperation::stop_token() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stop_.get_token();
}

void LiveOperation::SetEpoch(int64_t epoch) {
  std::lock_guard<std::mutex> lock(mutex_);
  epoch_ = epoch;
}

int64_t LiveOperation::epoch() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return epoch_;
}

void LiveOperation::Lose() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    lost_ = true;
  }
  RequestStop(/*cancel=*/false);
}

bool LiveOperation::lost() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return lost_;
}

void LiveOperation::Reopen(const v1::Operation& operation) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    operation_ = operation;
    ++version_;
    taken_ = false;
    cancelled_ = false;
    lost_ = false;
    epoch_ = 0;
    begun_.reset();
    device_.clear();
    had_turn_ = false;
    device_time_ = DurationOf(operation.device_time());
    on_device_since_.reset();
    stop_ = std::stop_source();
    abort_ = std::stop_source();
  }
  changed_();
}

bool LiveOperation::cancelled() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

}  // namespace attune::jobs
