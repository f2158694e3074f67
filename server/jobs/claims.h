// What a holder takes from the queue, on two threads. One renews the leases of what it works on, and does nothing else.
// The other claims, one at a time, what any host may do and a card of this one can begin at once; takes up what nobody
// holds any more; and follows what others do, for those who watch it here.
#ifndef ATTUNE_SERVER_JOBS_CLAIMS_H_
#define ATTUNE_SERVER_JOBS_CLAIMS_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/jobs/cards/host_cards.h"
#include "server/jobs/cards/job_lanes.h"
#include "server/jobs/live_operation.h"
#include "server/jobs/operations.h"
#include "server/store/queue.h"
#include "server/trials/device_slot.h"

namespace attune::jobs {

// In the place of a priority: of what takes no card.
inline constexpr int64_t kTakesNoCard = 3;

class Claims {
 public:
  // Who works on what is taken. Called on the thread that looks for work, and by Start.
  class Taker {
   public:
    virtual ~Taker() = default;
    virtual bool IsDraining() const = 0;
    virtual bool TakesWork() const = 0;  // that any host may do; false while it drains
    // Whether a card that it wants is here.
    virtual bool IsForThisHost(const store::Job& job) = 0;
    virtual void TakeUp(const store::Job& job, bool claimed) = 0;
    // One that was cancelled by way of another host, and has not begun.
    virtual void EndCancelled(const std::shared_ptr<LiveOperation>& live) = 0;
  };
  struct Means {  // all live longer than the threads
    Taker& taker;
    store::Queue& queue;
    Operations& operations;
    JobLanes& lanes;
    const HostCards& cards;
    std::string holder;
    absl::Duration lease;
    bool shared = false;  // with other hosts
  };
  explicit Claims(Means means) : means_(std::move(means)) {}

  // Takes up what this holder has leased before, and starts the threads.
  void Start();
  // Waits for them.
  void Stop();
  // A card may have become free. Does not block.
  void LookSoon();

 private:
  // What the last renewal said.
  struct Renewed {
    std::vector<std::string> nobodys;  // that this host has leased and nobody here works on
    bool settled = false;              // those are all
  };

  void KeepLeases(const std::stop_token& stop);
  void Renew();
  // Its jobs are the caller's to take up.
  Renewed TakeRenewed();

  void LookForWork(const std::stop_token& stop);
  // Whether LookSoon was called before `time`, and it is not yet time.
  bool AwaitFree(const std::stop_token& stop, std::chrono::steady_clock::time_point time);
  void TakeUpNamed(const std::string& name);
  void EndCancelled();
  // One at a time, so that what is queued spreads over the hosts; after what comes back to this one has its place.
  void ClaimOne();
  // Where a job of a class would begin at once.
  std::vector<store::Room> Rooms();
  // Says once that another process holds a card, and once that none does any more.
  bool IsToBeHad(const trials::DeviceSlot& slot);
  // One that was asked for here and waits for a card may begin on another by now: it leaves the lanes, its watchers
  // stay.
  void LetGo(const std::string& name);
  void GiveBack(const store::Job& job);

  const Means means_;
  std::set<std::string> held_elsewhere_;  // cards, as IsToBeHad found; of the thread that looks for work
  std::mutex mutex_;                      // guards what follows
  std::condition_variable_any look_;
  bool look_soon_ = false;
  Renewed renewed_;
  std::jthread renewer_, looker_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_CLAIMS_H_
