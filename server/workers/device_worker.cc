#include <signal.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/workers/connection.h"
#include "server/workers/probe.h"
#include "server/workers/task_thread.h"
#include "server/workers/workers.h"

namespace attune::workers {
namespace {

constexpr absl::Duration kFirstBackOff = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackOff = absl::Seconds(5);

worker::v1::TrialResponse Verdict(v1::Verdict verdict, absl::string_view detail) {
  worker::v1::TrialResponse response;
  response.set_verdict(verdict);
  response.set_detail(std::string(detail));
  return response;
}

// A signal that no kernel causes: somebody, or the system, ended the worker.
bool EndedFromOutside(const CallResult& result) {
  return result.failure == CallFailure::kDied &&
         (result.signal == SIGKILL || result.signal == SIGTERM || result.signal == SIGINT || result.signal == SIGHUP);
}

class DeviceWorkerImpl : public DeviceWorker {
 public:
  DeviceWorkerImpl(const WorkerOptions& options, const v1::Device& device)
      : options_(options), device_(device), arguments_(WorkerArguments("device", options)) {
    arguments_.push_back(absl::StrCat("--device=", device.id()));
    arguments_.push_back(absl::StrCat("--lock_dir=", options.lock_dir));
  }

  const v1::Device& device() const override { return device_; }

  absl::StatusOr<worker::v1::PrepareResponse> Prepare(const worker::v1::PrepareRequest& prepare) override {
    return thread_.Run([&]() -> absl::StatusOr<worker::v1::PrepareResponse> {
      // Until this one succeeds there is nothing that a trial could rightly run on.
      prepared_.reset();
      if (absl::Status status = Connect(); !status.ok()) return status;
      return DoPrepare(prepare);
    });
  }

  absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& trial) override {
    return thread_.Run([&]() -> absl::StatusOr<worker::v1::TrialResponse> {
      if (absl::Status status = ConnectPrepared(); !status.ok()) return status;
      worker::v1::Request request;
      *request.mutable_trial() = trial;
      CallResult result = Call(request, options_.trial_timeout);
      if (result.failure == CallFailure::kTimeout) return Verdict(v1::VERDICT_TIMEOUT, result.detail);
      if (result.failure == CallFailure::kDied && !EndedFromOutside(result)) {
        return Verdict(v1::VERDICT_CRASHED, absl::StrCat("the device worker was ", result.detail));
      }
      absl::Status status = StatusOf(result);
      // The device reported a fault.
      if (absl::IsAborted(status)) return Verdict(v1::VERDICT_CRASHED, status.message());
      if (!status.ok()) return status;
      return std::move(*result.response.mutable_trial());
    });
  }

  absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& play_off) override {
    return thread_.Run([&]() -> absl::StatusOr<worker::v1::PlayOffResponse> {
      if (absl::Status status = ConnectPrepared(); !status.ok()) return status;
      worker::v1::Request request;
      *request.mutable_play_off() = play_off;
      // Fresh data are another Prepare.
      const absl::Duration prepare = play_off.fresh_seed() != 0 ? options_.prepare_timeout : absl::ZeroDuration();
      CallResult result = Call(request, options_.play_off_timeout + prepare);
      if (absl::Status status = StatusOf(result); !status.ok()) return status;
      return std::move(*result.response.mutable_play_off());
    });
  }

  absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& floor) override {
    return thread_.Run([&]() -> absl::StatusOr<worker::v1::FloorResponse> {
      if (absl::Status status = Connect(); !status.ok()) return status;
      worker::v1::Request request;
      *request.mutable_floor() = floor;
      CallResult result = Call(request, options_.trial_timeout);
      if (absl::Status status = StatusOf(result); !status.ok()) return status;
      return std::move(*result.response.mutable_floor());
    });
  }

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

 private:
  absl::Status Connect() {
    if (connection_ != nullptr) return absl::OkStatus();
    absl::SleepFor(retry_at_ - absl::Now());
    absl::Status status = Start();
    if (status.ok()) {
      back_off_ = absl::ZeroDuration();
    } else if (!absl::IsFailedPrecondition(status)) {
      // Another daemon's lock may be gone at any moment; a worker that does not start is not asked to at full speed.
      back_off_ = std::clamp(2 * back_off_, kFirstBackOff, kLongestBackOff);
      retry_at_ = absl::Now() + back_off_;
    }
    return status;
  }

  absl::Status Start() {
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Start(options_.executable, arguments_);
    if (!connection.ok()) return connection.status();
    if (absl::Status status = (*connection)->Describe().status(); !status.ok()) return status;
    connection_ = *std::move(connection);
    fresh_ = true;
    return absl::OkStatus();
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
    CallResult result = Call(request, options_.prepare_timeout);
    if (absl::Status status = StatusOf(result); !status.ok()) return status;
    prepared_ = prepare;
    fresh_ = false;
    return std::move(*result.response.mutable_prepare());
  }

  // Ends the worker when it is of no more use, and waits until it is gone: two never hold the device.
  CallResult Call(const worker::v1::Request& request, absl::Duration timeout) {
    CallResult result = connection_->Call(request, timeout);
    if (result.failure != CallFailure::kNone || absl::IsAborted(ErrorOf(result.response))) Disconnect();
    return result;
  }

  void Disconnect() { connection_.reset(); }

  absl::Status StatusOf(const CallResult& result) const {
    const std::string prefix = absl::StrCat("device worker of ", device_.id(), ": ");
    switch (result.failure) {
      case CallFailure::kTimeout:
        return absl::DeadlineExceededError(absl::StrCat(prefix, result.detail));
      case CallFailure::kDied:
        return absl::UnavailableError(absl::StrCat(prefix, result.detail));
      case CallFailure::kGarbage:
        return absl::InternalError(absl::StrCat(prefix, result.detail));
      case CallFailure::kNone:
        break;
    }
    return ErrorOf(result.response);
  }

  const WorkerOptions options_;
  const v1::Device device_;
  std::vector<std::string> arguments_;

  // All below belong to the thread's tasks.
  std::unique_ptr<Connection> connection_;
  bool fresh_ = false;  // the process has not been given a problem yet
  std::optional<worker::v1::PrepareRequest> prepared_;
  absl::Duration back_off_;
  absl::Time retry_at_ = absl::InfinitePast();
  TaskThread thread_;  // last: it ends before what its tasks use
};

}  // namespace

std::unique_ptr<DeviceWorker> MakeDeviceWorker(const WorkerOptions& options, const v1::Device& device) {
  return std::make_unique<DeviceWorkerImpl>(options, device);
}

}  // namespace attune::workers
