// Threads for jobs: each device has two lanes, interactive and background, of two jobs each, so that one compiles ahead
// while the other has the device. Jobs of a lane begin in the order in which they came.
//
// A job that waits, for its thread or for the device, is told how many jobs of its device go before it: the interactive
// ones all go before the background ones, whether they have begun or not.
#ifndef ATTUNE_SERVER_JOBS_JOB_LANES_H_
#define ATTUNE_SERVER_JOBS_JOB_LANES_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
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
  explicit JobLanes(const std::vector<std::string>& devices);
  // Stops and waits for the jobs that run.
  ~JobLanes();

  struct Job {
    trials::Waiter waiter;  // told of its place
    // On a thread of the lane's. What waits for the device in it has the given waiter.
    std::function<void(const trials::Waiter&)> run;
    std::function<bool()> gone;  // whether it is no longer to be run
  };
  // Dropped after Stop.
  void Add(const std::string& device, trials::Priority priority, Job job);

  // Some that waited may be gone: tells the others their places.
  void Refresh();

  // How many jobs of the device run or wait.
  size_t Load(const std::string& device);

  // No further job begins.
  void Stop();
  // Whether no job runs, waiting for that at most `timeout`.
  bool AwaitQuiet(absl::Duration timeout);

 private:
  struct Queued {
    Job job;
    trials::QueuePlace told;
  };
  struct Running {
    trials::Waiter waiter;
    trials::QueuePlace turn;  // on the device, as its turn told it
  };
  struct Lane {
    std::deque<Queued> queue;
    std::list<Running> running;
    const Lane* before = nullptr;  // whose jobs go first: the interactive one of the same device; null for that itself
  };

  void Run(Lane& lane);
  // Tells all of every lane that wait their places.
  void TellPlacesLocked();
  // Of one that waits for the device.
  static void TellTurn(const Lane& lane, const Running& job);
  // Of those in the lane's queue.
  static void TellQueue(Lane& lane);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, trials::Priority>, Lane> lanes_;  // fixed after construction
  int running_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_JOB_LANES_H_
