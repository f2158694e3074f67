#include "server/supervisor/device_worker.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "server/base/clock.h"
#include "server/base/lock_directory.h"
#include "server/base/log.h"
#include "server/supervisor/back_off.h"
#include "server/supervisor/connection.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/task_thread.h"
#include "server/supervisor/tries.h"
#include "server/supervisor/worker_options.h"

namespace attune::supervisor {
namespace {

constexpr absl::Duration kLongestBackOffOfDevice = absl::Seconds(5);

worker::v1::TrialResponse TrialOf(v1::Verdict verdict, absl::string_view detail) {
  worker::v1::TrialResponse response;
  response.set_verdict(verdict);
  response.set_detail(std::string(detail));
  return response;
}

// "trial" of a TrialRequest.
std::string CallOf(const worker::v1::Request& request) {
  const auto* field = request.GetReflection()->GetOneofFieldDescriptor(
      request, worker::v1::Request::descriptor()->FindOneofByName("kind"));
  return field == nullptr ? "none" : field->name();
}

class DeviceWorkerImpl : public DeviceWorker {
 public:
  DeviceWorkerImpl(const WorkerOptions& options, const v1::Device& device)
      : options_(options),
        device_(device),
        caged_(options.cage && RunsOnCpu(device)),
        arguments_(WorkerArguments("device", options)) {
    if (caged_) arguments_.emplace_back("--cage");
    if (options.verify_on_host) arguments_.emplace_back("--verify=host");
    arguments_.push_back(absl::StrCat("--device=", device.id()));
    arguments_.push_back(absl::StrCat("--lock_dir=", options.lock_dir));
  }
  // The process dies with the thread that started it: it is ended before, which is no loss.
  ~DeviceWorkerImpl() override { DeviceWorkerImpl::Shutdown(); }

  const v1::Device& device() const override { return device_; }

  absl::Status Open() override {
    return InTurn([&]() -> absl::Status { return Connect(); });
  }

  absl::Status Available() override {
    const std::lock_guard lock(mutex_);
    if (connection_ != nullptr) return absl::OkStatus();
    return CheckUnlocked(options_.lock_dir, device_.uuid(), device_.id(), device_.model());
  }

  absl::StatusOr<worker::v1::PrepareResponse> Prepare(const worker::v1::PrepareRequest& prepare) override {
    return InTurn([&]() -> absl::StatusOr<worker::v1::PrepareResponse> {
      // Until this one succeeds there is nothing that a trial could rightly run on.
      prepared_.reset();
      return DoPrepare(prepare);
    });
  }

  absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& trial) override {
    return InTurn([&]() -> absl::StatusOr<worker::v1::TrialResponse> {
      worker::v1::Request request;
      *request.mutable_trial() = trial;
      absl::StatusOr<CallResult> result =
          CallWithRetries(request, AtMost(trial.most_seconds(), options_.trial_timeout), Needs::kProblem);
      if (!result.ok()) return result.status();
      if (std::optional<worker::v1::TrialResponse> verdict = Blame(*result)) return *std::move(verdict);
      if (absl::Status status = StatusOf(*result); !status.ok()) return status;
      return std::move(*result->response.mutable_trial());
    });
  }

  absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& play_off) override {
    return InTurn([&]() -> absl::StatusOr<worker::v1::PlayOffResponse> {
      worker::v1::Request request;
      *request.mutable_play_off() = play_off;
      absl::StatusOr<CallResult> result = CallWithRetries(request, PlayOffTimeout(play_off), Needs::kProblem);
      if (!result.ok()) return result.status();
      if (play_off.candidates_size() == 1) {
        if (std::optional<worker::v1::TrialResponse> verdict = Blame(*result)) {
          worker::v1::PlayOffResponse response;
          *response.add_results() = *std::move(verdict);
          return response;
        }
      }
      if (absl::Status status = StatusOf(*result); !status.ok()) return status;
      return std::move(*result->response.mutable_play_off());
    });
  }

  absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& floor) override {
    return InTurn([&]() -> absl::StatusOr<worker::v1::FloorResponse> {
      worker::v1::Request request;
      *request.mutable_floor() = floor;
      absl::StatusOr<CallResult> result = CallWithRetries(request, options_.trial_timeout, Needs::kProcess);
      if (!result.ok()) return result.status();
      if (absl::Status status = StatusOf(*result); !status.ok()) return status;
      return std::move(*result->response.mutable_floor());
    });
  }

  void AbortWith(std::stop_token abort) override { abort_ = std::move(abort); }

  void Release() override {
    thread_.Run([&] {
      if (connection_ == nullptr) return true;
      worker::v1::Request request;
      request.mutable_release();
      // A worker that cannot give its memory back is ended, which does.
      if (!StatusOf(Call(request, options_.trial_timeout)).ok()) Disconnect();
      return true;
    });
  }

  void Shutdown() override {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    EndLocked();
  }

 private:
  // On fresh data it is another Prepare and a check of each candidate; many runs are four times as many as a trial has,
  // all within what a trial may take for its own, and so are those of an energy.
  absl::Duration PlayOffTimeout(const worker::v1::PlayOffRequest& play_off) const {
    const absl::Duration trials = play_off.candidates_size() * options_.trial_timeout;
    if (play_off.energy()) return options_.play_off_timeout + trials;
    if (play_off.many_runs()) return options_.play_off_timeout + 4 * trials;
    if (play_off.fresh_seed() == 0) return options_.play_off_timeout;
    return options_.play_off_timeout + options_.prepare_timeout + trials;
  }

  // A task of the thread's; what Shutdown or its caller has cut short is Cancelled, whatever it came to.
  template <typename Work>
  auto InTurn(Work work) -> decltype(work()) {
    return thread_.Run([&]() -> decltype(work()) {
      const std::stop_callback cut_short(abort_, [this] {
        const std::lock_guard lock(mutex_);
        if (connection_ != nullptr) LogInfo("device worker ended for a cancelled job", {{"device", device_.id()}});
        EndLocked();
      });
      if (absl::Status status = NotStopped(); !status.ok()) return status;
      decltype(work()) result = work();
      if (absl::Status status = NotStopped(); !status.ok()) return status;
      return result;
    });
  }

  void EndLocked() {
    if (connection_ != nullptr) connection_->Kill();
    ended_.notify_all();
  }

  absl::Status NotStopped() {
    const std::lock_guard lock(mutex_);
    return NotStoppedLocked();
  }
  absl::Status NotStoppedLocked() const {
    if (stopping_) return absl::CancelledError(absl::StrCat("the device worker of ", device_.id(), " is shut down"));
    return abort_.stop_requested() ? absl::CancelledError("the job was cancelled") : absl::OkStatus();
  }

  enum class Needs { kProcess, kProblem };

  // Makes the call, again in fresh workers as Tries says. An error: it was not made, for want of a worker that is
  // ready.
  absl::StatusOr<CallResult> CallWithRetries(const worker::v1::Request& request, absl::Duration timeout, Needs needs) {
    Tries tries;
    while (true) {
      absl::Status ready = needs == Needs::kProblem ? ConnectPrepared() : Connect();
      if (!ready.ok()) return ready;
      CallResult result = Call(request, timeout);
      if (tries.Again(result)) continue;
      result.detail += tries.Words();
      return result;
    }
  }

  // The verdict on the one variant that a call was about, when that has taken the worker or the device down.
  static std::optional<worker::v1::TrialResponse> Blame(const CallResult& result) {
    switch (result.failure) {
      case CallFailure::kTimeout:
        return TrialOf(v1::VERDICT_TIMEOUT, result.detail);
      case CallFailure::kDied:
        return TrialOf(v1::VERDICT_CRASHED, absl::StrCat("the device worker was ", result.detail));
      case CallFailure::kGarbage:
        return TrialOf(v1::VERDICT_CRASHED, absl::StrCat("the device worker's answer was ", result.detail));
      case CallFailure::kUnsent:
        return std::nullopt;
      case CallFailure::kNone:
        break;
    }
    const absl::Status status = ErrorOf(result.response);
    if (!absl::IsAborted(status)) return std::nullopt;
    return TrialOf(v1::VERDICT_CRASHED, status.message());  // the device reported a fault
  }

  absl::Status Connect() {
    if (connection_ != nullptr && connection_->Lives()) return absl::OkStatus();
    Disconnect();
    if (absl::Status status = AwaitRetry(); !status.ok()) return status;
    absl::Status status = Start();
    if (status.ok()) {
      back_off_.Started();
    } else if (!absl::IsFailedPrecondition(status) && !absl::IsCancelled(status)) {
      // Another daemon's lock may be gone at any moment; a worker that does not start is not asked to at full speed.
      back_off_.Failed();
    }
    return status;
  }

  absl::Status AwaitRetry() {
    std::unique_lock lock(mutex_);
    ended_.wait_until(lock, back_off_.retry_at(), [this] { return !NotStoppedLocked().ok(); });
    return NotStoppedLocked();
  }

  absl::Status Start() {
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Start(
        options_.executable, arguments_, caged_ ? Environment::kScrubbed : Environment::kInherited, options_.metrics);
    if (!connection.ok()) return connection.status();
    {
      const std::lock_guard lock(mutex_);
      if (absl::Status status = NotStoppedLocked(); !status.ok()) return status;
      connection_ = *std::move(connection);
    }
    fresh_ = true;
    absl::Status status = connection_->Describe().status();
    if (!status.ok()) Disconnect();
    return status;
  }

  // After a respawn the new process gets the last problem again.
  absl::Status ConnectPrepared() {
    if (absl::Status status = Connect(); !status.ok()) return status;
    if (!fresh_ || !prepared_.has_value()) return absl::OkStatus();
    return DoPrepare(worker::v1::PrepareRequest(*prepared_)).status();
  }

  absl::StatusOr<worker::v1::PrepareResponse> DoPrepare(const worker::v1::PrepareRequest& prepare) {
    worker::v1::Request request;
    *request.mutable_prepare() = prepare;
    absl::StatusOr<CallResult> result = CallWithRetries(request, options_.prepare_timeout, Needs::kProcess);
    if (!result.ok()) return result.status();
    if (absl::Status status = StatusOf(*result); !status.ok()) return status;
    prepared_ = prepare;
    fresh_ = false;
    return std::move(*result->response.mutable_prepare());
  }

  void Count(const worker::v1::Request& request, const worker::v1::Response& response, absl::Duration time,
             metrics::Workers& metrics) const {
    if (request.has_release()) return;  // works on nothing
    const worker::v1::TrialResponse& trial = response.trial();
    metrics.Called(device_.id(), CallOf(request), time);
    if (trial.check_ms() > 0) metrics.Checked(device_.id(), trial.check_ms());
    // That of an anchor is no trial's.
    if (trial.time_ms() > 0 && !request.trial().time_only()) metrics.Timed(device_.id(), trial.time_ms());
    if (trial.has_timing()) metrics.Saw(device_.id(), trial.timing());
    for (const worker::v1::TrialResponse& one : response.play_off().results()) {
      if (one.has_timing()) metrics.Saw(device_.id(), one.timing());
    }
  }

  // Ends the worker when it is of no more use, and waits until it is gone: two never hold the device.
  CallResult Call(const worker::v1::Request& request, absl::Duration timeout) {
    const absl::Duration begun = SteadyNow();
    CallResult result = connection_->Call(request, timeout);
    if (options_.metrics != nullptr) Count(request, result.response, SteadyNow() - begun, *options_.metrics);
    if (IsSpent(result)) Disconnect();
    return result;
  }

  void Disconnect() {
    std::unique_ptr<Connection> ended;
    const std::lock_guard lock(mutex_);
    ended = std::move(connection_);
  }

  absl::Status StatusOf(const CallResult& result) const {
    const std::string prefix = absl::StrCat("device worker of ", device_.id(), ": ");
    switch (result.failure) {
      case CallFailure::kTimeout:
        return absl::DeadlineExceededError(absl::StrCat(prefix, result.detail));
      case CallFailure::kDied:
        return absl::UnavailableError(absl::StrCat(prefix, result.detail));
      case CallFailure::kGarbage:
      case CallFailure::kUnsent:
        return absl::InternalError(absl::StrCat(prefix, result.detail));
      case CallFailure::kNone:
        break;
    }
    return ErrorOf(result.response);
  }

  const WorkerOptions options_;
  const v1::Device device_;
  const bool caged_;
  std::vector<std::string> arguments_;

  std::mutex mutex_;
  std::condition_variable ended_;           // by Shutdown, or abort_
  bool stopping_ = false;                   // guarded by mutex_
  std::unique_ptr<Connection> connection_;  // the tasks'; set and cleared under mutex_, so that others may kill it
  std::stop_token abort_;                   // set between two tasks

  // All below belong to the thread's tasks.
  bool fresh_ = false;  // the process has not been given a problem yet
  std::optional<worker::v1::PrepareRequest> prepared_;
  BackOff back_off_{kLongestBackOffOfDevice};
  TaskThread thread_;  // last: it ends before what its tasks use
};

}  // namespace

std::unique_ptr<DeviceWorker> MakeDeviceWorker(const WorkerOptions& options, const v1::Device& device) {
  return std::make_unique<DeviceWorkerImpl>(options, device);
}

}  // namespace attune::supervisor
