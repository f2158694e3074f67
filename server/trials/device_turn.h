// Whose turn it is on a device: one call at a time, interactive jobs before background ones, those before idle ones,
// among equals first come, first served; of those that wait for their first call, the job that began first.
//
// A job holds a Ticket from its first call on the device to its last. Of all tickets only the best may begin a call, so
// an interactive job goes in front of a background one between any two calls, and equal jobs run one after the other
// (each needs its own inputs on the device; alternating would prepare them anew for every trial). Thread-safe.
#ifndef ATTUNE_SERVER_TRIALS_DEVICE_TURN_H_
#define ATTUNE_SERVER_TRIALS_DEVICE_TURN_H_

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>

#include "absl/time/time.h"
#include "server/trials/waiter.h"

namespace attune::trials {

// kIdle: for when nobody else wants the device.
enum class Priority { kInteractive = 0, kBackground = 1, kIdle = 2 };

class DeviceTurn {
 private:
  struct Rank {
    Priority priority = Priority::kInteractive;
    uint64_t begun = 0;   // Waiter.begun; 0 after the first call, which nobody who begins later goes before
    uint64_t number = 0;  // of the ticket
    auto operator<=>(const Rank&) const = default;
  };

 public:
  // Must not outlive its DeviceTurn. Begin and End come from one thread.
  class Ticket {
   public:
    // `waiter` is told of its place while Begin blocks, and when the device is its own.
    Ticket(DeviceTurn& turn, Priority priority, Waiter waiter = {});
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    // Blocks until it is this ticket's turn and the device is free. False when `stop` was requested first; then there
    // is nothing to End.
    bool Begin(const std::stop_token& stop);
    // Only if that is so now.
    bool TryBegin();
    void End();

   private:
    void BeginLocked();
    QueuePlace PlaceLocked() const;

    DeviceTurn& turn_;
    const Waiter waiter_;
    QueuePlace told_;  // the waiter
    Rank rank_;        // its key in tickets_
  };

  // Blocks until the device has been used and then nobody held a ticket for `idle`; begins a call that EndIdle ends.
  // False when `stop` was requested first.
  bool BeginIdle(absl::Duration idle, const std::stop_token& stop);
  void EndIdle();

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Rank, const Ticket*> tickets_;
  std::optional<Rank> calling_;  // the ticket whose call is on the device
  uint64_t next_ = 0;
  bool busy_ = false;  // with a ticket's call or an idle one
  bool used_ = false;  // since the last idle call
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_DEVICE_TURN_H_
