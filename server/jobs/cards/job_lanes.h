// Threads for jobs: each device has a lane for each priority, of two jobs each, so that one compiles ahead while the
// other has the device. Jobs of a lane begin in the order in which they came. A job for several devices is in
// a lane of each, and the one with the fewest running jobs begins it. Jobs that take no device have lanes of their own.
//
// A job that waits, for its thread or for the device, is told how many jobs of its device go before it: all of the
// lanes before its own do, whether they have begun or not. One for several devices is told of the lane where they are
// fewest.
#ifndef ATTUNE_SERVER_JOBS_CARDS_JOB_LANES_H_
#define ATTUNE_SERVER_JOBS_CARDS_JOB_LANES_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/trials/device_turn.h"
#include "server/trials/waiter.h"

namespace attune::jobs {

// Thread-safe.
class JobLanes {
 public:
  // `ended` is called after each job, when its lane has room again; it must not block.
  explicit JobLanes(const std::vector<std::string>& devices, std::function<void()> ended = nullptr);
  // Stops and waits for the jobs that run.
  ~JobLanes();

  struct Job {
    trials::Waiter waiter;  // told of its place
    // On a thread of one of its devices' lanes. What waits for the device in it has the given waiter.
    std::function<void(const std::string& device, const trials::Waiter&)> run;
    std::function<bool()> gone;  // whether it is no longer to be run
    std::function<bool()> over;  // whether it has ended, though `run` may not have returned
    // It begins only where it would have the device at once, not to compile ahead: until then others may have it. One
    // that takes no device waits for others like it alone.
    bool at_once = false;
  };
  // For any one of the devices. Dropped after Stop.
  void Add(const std::vector<std::string>& devices, trials::Priority priority, Job job);
  // One that takes no device; it waits for others like it that came with the same one.
  void AddWithout(const std::string& device, Job job);

  // Some that waited may be gone: tells the others their places.
  void Refresh();

  // How many jobs of the device run or wait, those of other lanes that it helps included.
  size_t Load(const std::string& device);

  // Devices that help a job of another's lane, as long as this lives: the least loaded of `devices`, equals in their
  // order, `most` at most.
  class Help {
   public:
    Help(JobLanes& lanes, std::vector<std::string> devices, size_t most);
    ~Help();
    Help(const Help&) = delete;
    Help& operator=(const Help&) = delete;
    const std::vector<std::string>& devices() const { return devices_; }

   private:
    JobLanes& lanes_;
    std::vector<std::string> devices_;
  };

  // Whether one more of that priority would have the device at once, or nullopt: one that takes no device would begin
  // at once: nothing runs or waits there that it would wait for.
  bool HasRoom(const std::string& device, std::optional<trials::Priority> priority);

  struct LaneLoad {
    std::string device;
    std::optional<trials::Priority> priority;  // nullopt: of those that take no device
    size_t waiting = 0;                        // one for several devices counts where it is first
    size_t running = 0;
  };
  std::vector<LaneLoad> Loads();

  // No further job begins.
  void Stop();
  // Whether no job runs, waiting for that at most `timeout`.
  bool AwaitQuiet(absl::Duration timeout);

 private:
  struct Lane;
  struct Entry {
    Job job;
    std::vector<Lane*> lanes;                      // that it waits in; that it runs in
    std::optional<trials::QueuePlace> place = {};  // in their queues
    trials::QueuePlace told = {};                  // of that
    trials::QueuePlace turn = {};                  // on the device: as its turn told it, or until it has come to that
    bool at_turn = false;                          // the device's turn tells it its place
  };
  struct Lane {
    std::string device;
    bool takes_device = true;
    std::vector<const Lane*> before;  // of the same device, whose jobs go first, the most urgent first
    // What its jobs wait for, itself among it: those of the same device that go first; of what takes no device, it
    // alone.
    std::vector<const Lane*> shares;
    std::deque<std::shared_ptr<Entry>> queue;
    std::deque<std::shared_ptr<Entry>> running;
  };
  // nullopt: without device.
  using Key = std::pair<std::string, std::optional<trials::Priority>>;

  void AddTo(std::vector<Lane*> lanes, Job job);
  void Run(Lane& lane);
  // The first in the lane's queue that is not better begun by another lane; null when there is none.
  std::shared_ptr<Entry> NextFor(const Lane& lane) const;
  bool BetterElsewhere(const Entry& entry, const Lane& lane) const;
  // Whether nothing runs that a job of the lane waits for.
  bool IsFree(const Lane& lane) const;
  // Jobs that have not ended, those that it helps included.
  size_t RunningOn(const std::string& device) const;
  size_t LoadLocked(const std::string& device) const;
  // Tells all that wait their places.
  void TellPlacesLocked();
  // Those that wait for a thread.
  void TellQueuesLocked();
  // One that waits for the device.
  static void TellTurn(const Entry& entry);
  // One that has begun and has not come to the device's turn: those before it will be there first, by all likelihood.
  static void TellBegun(Entry& entry);
  // Sets the places of those in the lane's queue that are better off there than in the lanes before.
  static void PlaceQueue(const Lane& lane);

  const std::function<void()> ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Lane> lanes_;             // fixed after construction
  std::map<std::string, size_t> helped_;  // jobs of other devices, by device
  int running_ = 0;
  uint64_t begun_ = 0;  // jobs
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_CARDS_JOB_LANES_H_
