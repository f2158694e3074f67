#include "server/service/watch.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "server/service/calls.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace attune::service {
namespace {

// States that come while one is being written replace each other: a slow reader skips states, it does not queue them.
class WatchReactor final : public grpc::ServerWriteReactor<v1::Operation> {
 public:
  WatchReactor(const grpc::CallbackServerContext& context, jobs::Tuner* tuner, Executor* executor,
               const v1::WatchOperationRequest& request)
      : context_(context), executor_(executor) {
    executor_->Run([this, tuner, request] { Subscribe(tuner, request); });
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) {
      FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the client went away"));
    } else {
      Advance();
    }
  }

  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (!writing_) FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled"));
  }

  // Unsubscribing waits for a running watcher, so it happens on the executor, after Subscribe has returned.
  void OnDone() override {
    executor_->Run([this] {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return subscribed_; });
      }
      if (unsubscribe_) unsubscribe_();
      delete this;
    });
  }

 private:
  void Subscribe(jobs::Tuner* tuner, const v1::WatchOperationRequest& request) {
    const auto watcher = [this](const v1::Operation& operation) {
      const std::lock_guard lock(mutex_);
      next_ = operation;
      if (!writing_) Advance();
    };
    const absl::Status limits = CheckLimits(request);
    const absl::StatusOr<std::function<void()>> unsubscribe =
        limits.ok() ? tuner->Watch(request.name(), watcher) : limits;
    const std::lock_guard lock(mutex_);
    if (unsubscribe.ok()) {
      unsubscribe_ = *unsubscribe;
    } else {
      FinishOnce(ToGrpc(unsubscribe.status(), "WatchOperation"));
    }
    subscribed_ = true;
    changed_.notify_all();
  }

  // Both are called with mutex_ held.
  void Advance() {
    if (finished_) return;
    if (cancelled_) {
      FinishOnce(grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled"));
    } else if (next_) {
      current_ = *std::exchange(next_, std::nullopt);
      writing_ = true;
      StartWrite(&current_);
    } else if (current_.done()) {
      FinishOnce(grpc::Status::OK);
    }
  }

  void FinishOnce(const grpc::Status& status) {
    if (std::exchange(finished_, true)) return;
    CountEnd(context_, "WatchOperation", status.error_code());
    Finish(status);
  }

  const grpc::CallbackServerContext& context_;
  Executor* const executor_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::function<void()> unsubscribe_;
  bool subscribed_ = false;
  bool writing_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
  std::optional<v1::Operation> next_;
  v1::Operation current_;  // not changed while it is being written
};

class RefusedWatch final : public grpc::ServerWriteReactor<v1::Operation> {
 public:
  RefusedWatch(const grpc::CallbackServerContext& context, const absl::Status& why) {
    Finish(End(context, "WatchOperation", why));
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerWriteReactor<v1::Operation>* RefuseWatch(const grpc::CallbackServerContext& context,
                                                     const absl::Status& why) {
  return new RefusedWatch(context, why);
}

grpc::ServerWriteReactor<v1::Operation>* StartWatch(const grpc::CallbackServerContext& context, jobs::Tuner* tuner,
                                                    Executor* executor, const v1::WatchOperationRequest& request) {
  return new WatchReactor(context, tuner, executor, request);
}

}  // namespace attune::service
