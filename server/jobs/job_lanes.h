// Threads for jobs: each device has two lanes, interactive and background, of two jobs each, so that one compiles ahead
// while the other has the device. Jobs of a lane begin in the order in which they came.
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
    trials::Waiter waiter;  // told of its place until it begins
    std::function<void()> run;
    std::function<bool()> gone;  // whether it is no longer to be run
  };
  // Dropped after Stop.
  void Add(const std::string& device, trials::Priority priority, Job job);

  // How many jobs of the device run or wait.
  size_t Load(const std::string& device);

  // No further job begins.
  void Stop();
  // Whether no job runs, waiting for that at most `timeout`.
  bool AwaitQuiet(absl::Duration timeout);

 private:
  struct Lane {
    std::deque<Job> queue;
    std::list<trials::Waiter> running;
  };

  void Run(Lane& lane);
  // Tells one in the queue who is ahead of it.
  static void TellPlace(const Lane& lane, size_t index);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, trials::Priority>, Lane> lanes_;  // fixed after construction
  int running_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_JOB_LANES_H_
