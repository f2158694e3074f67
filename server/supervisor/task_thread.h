// A thread that runs what it is given, one task at a time, while the caller waits.
//
// Worker processes ask the kernel to be killed when the thread that started them ends (PR_SET_PDEATHSIG is about
// threads, not processes), so they must be started by a thread that lives as long as they may.
#ifndef ATTUNE_SERVER_SUPERVISOR_TASK_THREAD_H_
#define ATTUNE_SERVER_SUPERVISOR_TASK_THREAD_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace attune::supervisor {

class TaskThread {
 public:
  TaskThread() : thread_([this] { Loop(); }) {}
  ~TaskThread() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // Runs `task` on the thread and returns its result. Callers take turns.
  template <typename Task>
  auto Run(Task&& task) {
    std::optional<decltype(task())> result;
    const std::function<void()> wrapped = [&] { result.emplace(task()); };
    std::lock_guard turn(turn_);
    std::unique_lock lock(mutex_);
    task_ = &wrapped;
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
    return *std::move(result);
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return task_ != nullptr || stopping_; });
      if (task_ == nullptr) return;
      const std::function<void()>* const task = task_;
      lock.unlock();
      (*task)();
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex turn_;   // held by the caller whose task runs
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  const std::function<void()>* task_ = nullptr;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace attune::supervisor

#endif  // ATTUNE_SERVER_SUPERVISOR_TASK_THREAD_H_
