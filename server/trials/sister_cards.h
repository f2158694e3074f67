// The other cards that a job's trials are spread over (`--cards N`): each joins as soon as the job has its turn there.
//
// A card that is busy with another job is waited for on a thread of its own, with no trial in hand, while the job goes
// on with the cards that it has. One that a more urgent job takes away gives the trial in hand back and queues anew. So
// no card is ever held while another is waited for, and jobs that want each other's cards cannot block one another.
#ifndef ATTUNE_SERVER_TRIALS_SISTER_CARDS_H_
#define ATTUNE_SERVER_TRIALS_SISTER_CARDS_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/catalog/tuning_key.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::trials {

// A card beside a job's first; of its class.
struct Sister {
  DeviceSlot* slot = nullptr;
  catalog::TuningKey tuning_key;
};

class SisterCards {
 public:
  // On the sister's own thread.
  struct Calls {
    // Runs trials until there is nothing left: OK. An error when it was stopped, another job has the card, or it is
    // lost.
    std::function<absl::Status(size_t sister, DeviceUse& use)> work;
    // Its device could not be prepared.
    std::function<void(size_t sister, const absl::Status& why)> lost;
    // Whether a trial was given back that it may take.
    std::function<bool(size_t sister)> more;
    // Whether there is, or may be, anything to try for one that gets its turn only now.
    std::function<bool()> left;
  };
  // The job outlives it.
  SisterCards(const Job& job, Calls calls);
  // Ends.
  ~SisterCards();

  // Once. `sisters` outlive this; `prepare` is what each device needs.
  void Join(const std::vector<Sister>& sisters, const worker::v1::PrepareRequest& prepare);
  // `more` may have become true.
  void Wake();
  // Blocks until none of them has or will get anything to do, unless more is given back. Those that wait for their turn
  // are waited for only while something is left for them.
  void AwaitDone();
  // Those that wait for their turn stop that; the others come to the end of their trial. Returns when all have ended.
  void End();

 private:
  enum class State {
    kWaiting,  // for its turn, or its device is prepared
    kWorking,
    kIdle,  // until something is given back
    kGone,
  };
  enum class Ending {
    kNothingLeft,
    kAway,  // it was stopped, or another job has the card
    kGone,  // the card is lost, or the job
  };
  void Run(size_t index, const Sister& sister);
  Ending WorkOnce(size_t index, const Sister& sister);
  void Become(size_t index, State state);
  bool DoneLocked() const;

  const Job& job_;
  const Calls calls_;
  worker::v1::PrepareRequest prepare_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;  // by sister; guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace attune::trials

#endif  // ATTUNE_SERVER_TRIALS_SISTER_CARDS_H_
