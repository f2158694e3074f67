// A device as jobs use it: in turns, prepared for the problem of whoever's turn it is, released when idle.
#ifndef ATTUNE_SERVER_TRIALS_DEVICE_SLOT_H_
#define ATTUNE_SERVER_TRIALS_DEVICE_SLOT_H_

#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/supervisor/device_worker.h"
#include "server/trials/device_turn.h"

namespace attune::trials {

// Thread-safe through its turns. `worker` outlives it.
class DeviceSlot {
 public:
  DeviceSlot(supervisor::DeviceWorker* worker, absl::Duration idle_release, Clock clock = SteadyNow);
  ~DeviceSlot();

  const v1::Device& device() const { return worker_->device(); }
  // As supervisor::DeviceWorker has it; waits for no turn.
  absl::Status Available() const { return worker_->Available(); }

 private:
  friend class DeviceUse;

  supervisor::DeviceWorker* const worker_;
  const Clock clock_;
  DeviceTurn turn_;
  std::string prepared_;         // names the PrepareRequest that holds; guarded by the turn
  absl::Duration prepare_time_;  // that it took; the same
  std::jthread idle_;            // gives the device's memory back
};

// What a job says of its cost: that of a use of the device, of the compiles for it, and what it had cost before that.
void SetCost(const v1::OperationCost& before, const v1::OperationCost& use, double compile_ms,
             v1::OperationProgress& progress);

v1::OperationCost SumOf(const v1::OperationCost& a, const v1::OperationCost& b);

// One job's use of a device. Calls wait for the job's turn and prepare the device anew when another job has prepared
// it for something else since. Cancelled when `stop` was requested before it was this job's turn, or `abort` before the
// device has answered: then the call is cut short. One thread.
class DeviceUse {
 public:
  // `waiter` is told of its place while a call waits for the turn.
  DeviceUse(DeviceSlot& slot, Priority priority, std::stop_token stop, Waiter waiter = {}, std::stop_token abort = {});

  // What Trial and PlayOff need to hold; prepares at the next of them.
  void Use(worker::v1::PrepareRequest request);

  // What keeps the device from this daemon altogether, such as another daemon that holds it. OK, and nothing is done,
  // while another job uses it. Waits for nobody.
  absl::Status OpenIfFree();
  // Waits for the turn and does nothing with it.
  absl::Status Await();
  // Waits for the turn and prepares now, so that what it costs is seen apart.
  absl::Status Prepare();
  // `wanted` is asked once the job's turn has come; Aborted, with nothing run, when it says no.
  absl::StatusOr<worker::v1::TrialResponse> Trial(const worker::v1::TrialRequest& request,
                                                  absl::FunctionRef<bool()> wanted);
  absl::StatusOr<worker::v1::PlayOffResponse> PlayOff(const worker::v1::PlayOffRequest& request);
  absl::StatusOr<worker::v1::FloorResponse> Floor(const worker::v1::FloorRequest& request);
  // Waits for the turn and lets other processes than the worker's use the device while `work` runs: the worker keeps
  // its lock on the device, with none of its memory.
  absl::Status Lend(absl::FunctionRef<absl::Status()> work);

  absl::Duration busy() const { return busy_; }      // in calls
  absl::Duration waited() const { return waited_; }  // for the turn
  // That the device took for what Use names, when it was last prepared for it.
  absl::Duration prepare_time() const { return prepare_time_; }
  // Where the time since its first turn went, waiting for others' turns left out; compiles are not known here.
  v1::OperationCost cost() const;

 private:
  template <typename Call>
  auto InTurn(bool prepared, absl::FunctionRef<bool()> wanted, Call call) -> decltype(call());

  DeviceSlot& slot_;
  const std::stop_token stop_;
  const std::stop_token abort_;
  DeviceTurn::Ticket ticket_;
  worker::v1::PrepareRequest request_;
  std::string name_;  // of request_
  absl::Duration busy_;
  absl::Duration waited_;
  absl::Duration prepare_time_;
  std::optional<absl::Duration> first_turn_;  // when that began
  absl::Duration waited_before_;              // for it
  v1::OperationCost cost_;                    // without wait_ms
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_DEVICE_SLOT_H_
