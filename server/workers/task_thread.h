// A thread that runs what it is given, one task at a time, while the caller waits.
//
// Worker processes ask the kernel to be killed when the thread that started them ends (PR_SET_PDEATHSIG is about
// threads, not processes), so they must be started by a thread that lives as long as they may.
#ifndef ATTUNE_SERVER_WORKERS_TASK_THREAD_H_
#define ATTUNE_SERVER_WORKERS_TASK_THREAD_H_

#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attune::workers {

class TaskThread {
 public:
  TaskThread() : thread_([this] { Loop(); }) {}
  ~TaskThread() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Runs `task` on the thread and returns its result. Callers take turns.
  template <typename Task>
  auto Run(Task&& task) {
    std::optional<decltype(task())> result;
    std::function<void()> wrapped = [&] { result.emplace(task()); };
    absl::MutexLock turn(&turn_);
    absl::MutexLock lock(&mutex_);
    task_ = &wrapped;
    mutex_.Await(absl::Condition(
        +[](std::function<void()>** task) { return *task == nullptr; }, &task_));
    return *std::move(result);
  }

 private:
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return task_ != nullptr || stopping_; }

  void Loop() {
    absl::MutexLock lock(&mutex_);
    while (true) {
      mutex_.Await(absl::Condition(this, &TaskThread::HasWork));
      if (task_ == nullptr) return;
      std::function<void()>* task = task_;
      mutex_.Unlock();
      (*task)();
      mutex_.Lock();
      task_ = nullptr;
    }
  }

  absl::Mutex turn_;
  absl::Mutex mutex_;
  std::function<void()>* task_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attune::workers

#endif  // ATTUNE_SERVER_WORKERS_TASK_THREAD_H_
