#include "server/tuning/device_turn.h"

namespace attune::tuning {

DeviceTurn::Ticket::Ticket(DeviceTurn& turn, Priority priority) : turn_(turn) {
  std::lock_guard<std::mutex> lock(turn_.mutex_);
  rank_ = {priority, turn_.next_++};
  turn_.tickets_.insert(rank_);
  turn_.changed_.notify_all();
}

DeviceTurn::Ticket::~Ticket() {
  std::lock_guard<std::mutex> lock(turn_.mutex_);
  turn_.tickets_.erase(rank_);
  turn_.changed_.notify_all();
}

bool DeviceTurn::Ticket::Begin(const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(turn_.mutex_);
  turn_.changed_.wait(lock, stop, [this] { return !turn_.busy_ && *turn_.tickets_.begin() == rank_; });
  if (stop.stop_requested()) return false;
  turn_.busy_ = true;
  turn_.used_ = true;
  return true;
}

void DeviceTurn::Ticket::End() {
  std::lock_guard<std::mutex> lock(turn_.mutex_);
  turn_.busy_ = false;
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

}  // namespace attune::tuning
