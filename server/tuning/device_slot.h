// A device as jobs use it: in turns, prepared for the problem of whoever's turn it is, released when idle.
#ifndef ATTUNE_SERVER_TUNING_DEVICE_SLOT_H_
#define ATTUNE_SERVER_TUNING_DEVICE_SLOT_H_

#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/tuning/device_turn.h"
#include "server/workers/workers.h"

namespace attune::tuning {

// Thread-safe through its turns. `worker` outlives it.
class DeviceSlot {
 public:
  DeviceSlot(workers::DeviceWorker* worker, absl::Duration idle_release);
  ~DeviceSlot();

  const v1::Device& device() const { return worker_->device(); }

 private:
  friend class DeviceSession;

  workers::DeviceWorker* const worker_;
  DeviceTurn turn_;
  std::string prepared_;  // names the PrepareRequest that holds; guarded by the turn
  std::jthread idle_;     // gives the device's memory back
};

// One job's use of a device. Calls wait for the job's turn and prepare the device anew when another job has prepared
// it for something else since. Cancelled when `stop` was requested before it was this job's turn. One thread.
class DeviceSession {
 public:
  DeviceSession(DeviceSlot& slot, Priority priority, std::stop_token stop);

  // What Trial and PlayOff need to hold; prepares at the next of them.
  void Use(worker::v1::PrepareRequest request);

  // Waits for the turn and prepares now, so that what it costs is seen apart.
  absl::Status Prepare();
  absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& request);
  absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& request);
  absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& request);

  absl::Duration busy() const { return busy_; }      // in calls
  absl::Duration waited() const { return waited_; }  // for the turn

 private:
  template <typename Call>
  auto InTurn(bool prepared, Call call) -> decltype(call());

  DeviceSlot& slot_;
  const std::stop_token stop_;
  DeviceTurn::Ticket ticket_;
  worker::v1::PrepareRequest request_;
  std::string name_;  // of request_
  absl::Duration busy_;
  absl::Duration waited_;
};

}  // namespace attune::tuning

#endif  // ATTUNE_SERVER_TUNING_DEVICE_SLOT_H_
