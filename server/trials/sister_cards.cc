#include "server/trials/sister_cards.h"

#include <chrono>
#include <utility>

namespace attune::trials {
namespace {

// What is left ends with a budget of time, too, of which nobody is told.
constexpr std::chrono::milliseconds kLookAgain{100};

}  // namespace

SisterCards::SisterCards(const Job& job, Calls calls) : job_(job), calls_(std::move(calls)) {}

SisterCards::~SisterCards() { End(); }

void SisterCards::Join(const std::vector<Sister>& sisters, const worker::v1::PrepareRequest& prepare) {
  prepare_ = prepare;
  states_.assign(sisters.size(), State::kWaiting);
  for (size_t i = 0; i < sisters.size(); ++i) {
    threads_.emplace_back([this, i, &sister = sisters[i]] { Run(i, sister); });
  }
}

void SisterCards::Wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

void SisterCards::AwaitDone() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kLookAgain, [this] { return DoneLocked(); })) {
  }
}

bool SisterCards::DoneLocked() const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == State::kWorking) return false;
    if (states_[i] == State::kIdle && calls_.more(i)) return false;
    if (states_[i] == State::kWaiting && calls_.left()) return false;
  }
  return true;
}

void SisterCards::Become(size_t index, State state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  states_[index] = state;
  changed_.notify_all();
}

void SisterCards::End() {
  stop_.request_stop();
  Wake();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void SisterCards::Run(size_t index, const Sister& sister) {
  const std::stop_callback stopped_with_job(job_.stop, [this] { stop_.request_stop(); });
  const std::stop_token stop = stop_.get_token();
  while (!stop.stop_requested()) {
    const Ending ending = WorkOnce(index, sister);
    if (ending == Ending::kGone) break;
    if (ending == Ending::kNothingLeft) {
      Become(index, State::kIdle);
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return stop.stop_requested() || calls_.more(index); });
    }
    Become(index, State::kWaiting);  // it joins again, unless it is to stop
  }
  Become(index, State::kGone);
}

SisterCards::Ending SisterCards::WorkOnce(size_t index, const Sister& sister) {
  std::stop_source away;
  const std::stop_callback stopped(stop_.get_token(), [&] { away.request_stop(); });
  bool joined = false;
  Waiter waiter = job_.waiter;  // as those behind it see the job; where the job waits is said of its first card
  waiter.moved = [&](const QueuePlace& place) {
    if (joined && place.position > 0) away.request_stop();
  };
  DeviceUse use(*sister.slot, job_.priority, away.get_token(), std::move(waiter), job_.abort);
  use.Use(prepare_);
  if (const absl::Status prepared = use.Prepare(); !prepared.ok()) {
    if (away.stop_requested()) return Ending::kAway;
    calls_.lost(index, prepared);
    return Ending::kGone;
  }
  joined = true;
  Become(index, State::kWorking);
  const absl::Status worked = calls_.work(index, use);
  if (worked.ok()) return Ending::kNothingLeft;
  return away.stop_requested() ? Ending::kAway : Ending::kGone;
}

}  // namespace attune::trials
