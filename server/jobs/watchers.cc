#include "server/jobs/watchers.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <utility>

namespace attune::jobs {
namespace {

using Steady = std::chrono::steady_clock;
constexpr Steady::duration kInterval = std::chrono::milliseconds(100);

}  // namespace

struct Watchers::State {
  struct Subscription {
    std::shared_ptr<const LiveOperation> operation;
    Watchers::Watcher watcher;
    uint64_t sent = 0;  // version
    Steady::time_point due = Steady::time_point::min();
    bool calling = false;
    bool removed = false;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::list<std::shared_ptr<Subscription>> subscriptions;
  std::thread::id thread;
  bool dirty = false;
  bool ending = false;
};

Watchers::Watchers() : state_(std::make_shared<State>()) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  thread_ = std::thread([this] { Run(*state_); });
  state_->thread = thread_.get_id();
}

Watchers::~Watchers() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  thread_.join();
}

std::function<void()> Watchers::Add(std::shared_ptr<const LiveOperation> operation, Watcher watcher) {
  auto subscription = std::make_shared<State::Subscription>();
  subscription->operation = std::move(operation);
  subscription->watcher = std::move(watcher);
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->subscriptions.push_back(subscription);
    state_->dirty = true;
    state_->changed.notify_all();
  }
  return [state = state_, subscription] {
    std::unique_lock<std::mutex> lock(state->mutex);
    subscription->removed = true;
    state->subscriptions.remove(subscription);
    if (std::this_thread::get_id() == state->thread) return;
    state->changed.wait(lock, [&] { return !subscription->calling; });
  };
}

void Watchers::Changed() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->dirty = true;
  state_->changed.notify_all();
}

void Watchers::Run(State& state) {
  std::unique_lock<std::mutex> lock(state.mutex);
  while (!state.ending) {
    state.dirty = false;
    Steady::time_point next = Steady::time_point::max();
    std::shared_ptr<State::Subscription> due;
    for (const std::shared_ptr<State::Subscription>& subscription : state.subscriptions) {
      if (subscription->operation->version() == subscription->sent) continue;
      if (subscription->operation->done() || Steady::now() >= subscription->due) {
        due = subscription;
        break;
      }
      next = std::min(next, subscription->due);
    }
    if (due != nullptr) {
      due->calling = true;
      lock.unlock();
      const v1::Operation operation = due->operation->Snapshot(&due->sent);
      due->watcher(operation);
      lock.lock();
      due->calling = false;
      due->due = Steady::now() + kInterval;
      // To the end of the list: nobody waits for somebody busier.
      state.subscriptions.remove(due);
      if (!operation.done() && !due->removed) state.subscriptions.push_back(due);
      state.changed.notify_all();
    } else if (next == Steady::time_point::max()) {
      state.changed.wait(lock, [&] { return state.dirty || state.ending; });
    } else {
      state.changed.wait_until(lock, next, [&] { return state.dirty || state.ending; });
    }
  }
}

}  // namespace attune::jobs
