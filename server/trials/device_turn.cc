#include "server/trials/device_turn.h"

#include <utility>

namespace attune::trials {

DeviceTurn::Ticket::Ticket(DeviceTurn& turn, Priority priority, Waiter waiter)
    : turn_(turn), waiter_(std::move(waiter)) {
  std::lock_guard<std::mutex> lock(turn_.mutex_);
  rank_ = {priority, waiter_.begun, turn_.next_++};
  turn_.tickets_[rank_] = this;
  turn_.changed_.notify_all();
}

DeviceTurn::Ticket::~Ticket() {
  std::lock_guard<std::mutex> lock(turn_.mutex_);
  turn_.tickets_.erase(rank_);
  turn_.changed_.notify_all();
}

bool DeviceTurn::Ticket::Begin(const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(turn_.mutex_);
  turn_.changed_.wait(lock, stop, [&] {
    QueuePlace place = PlaceLocked();
    place.on_device = place.position == 0;
    if (waiter_.moved && place != told_) waiter_.moved(place);
    told_ = place;
    return !turn_.busy_ && place.position == 0;
  });
  if (stop.stop_requested()) return false;
  BeginLocked();
  return true;
}

bool DeviceTurn::Ticket::TryBegin() {
  const std::lock_guard<std::mutex> lock(turn_.mutex_);
  if (turn_.busy_ || PlaceLocked().position > 0) return false;
  BeginLocked();
  return true;
}

void DeviceTurn::Ticket::BeginLocked() {
  if (rank_.begun != 0) {
    turn_.tickets_.erase(rank_);
    rank_.begun = 0;
    turn_.tickets_[rank_] = this;
  }
  turn_.busy_ = true;
  turn_.used_ = true;
  turn_.calling_ = rank_;
}

QueuePlace DeviceTurn::Ticket::PlaceLocked() const {
  QueuePlace place;
  const auto add = [&](const Ticket& ahead) {
    if (ahead.rank_.priority < rank_.priority) ++place.urgent;
    if (ahead.rank_.priority > rank_.priority) ++place.overtaken;
    if (place.position++ > 0) return;
    place.first = ahead.waiter_.name;
    place.first_title = ahead.waiter_.title;
  };
  // Its call goes on to its end, whoever comes.
  if (turn_.calling_.has_value() && *turn_.calling_ != rank_) add(*turn_.tickets_.at(*turn_.calling_));
  for (const auto& [rank, ticket] : turn_.tickets_) {
    if (rank >= rank_) break;
    if (rank != turn_.calling_) add(*ticket);
  }
  return place;
}

void DeviceTurn::Ticket::End() {
  std::lock_guard<std::mutex> lock(turn_.mutex_);
  turn_.busy_ = false;
  turn_.calling_.reset();
  turn_.changed_.notify_all();
}

bool DeviceTurn::BeginIdle(absl::Duration idle, const std::stop_token& stop) {
  const auto taken = [this] { return !tickets_.empty(); };
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, stop, [this] { return used_ && !busy_ && tickets_.empty(); });
    if (stop.stop_requested()) return false;
    if (changed_.wait_for(lock, stop, absl::ToChronoNanoseconds(idle), taken)) continue;
    if (stop.stop_requested()) return false;
    busy_ = true;
    used_ = false;
    return true;
  }
}

void DeviceTurn::EndIdle() {
  std::lock_guard<std::mutex> lock(mutex_);
  busy_ = false;
  changed_.notify_all();
}

}  // namespace attune::trials
