#include "server/tuning/job_lanes.h"

#include "absl/time/clock.h"

namespace attune::tuning {
namespace {

constexpr int kJobsALane = 2;

}  // namespace

JobLanes::JobLanes(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    lanes_[{device, Priority::kInteractive}];
    lanes_[{device, Priority::kBackground}];
  }
  for (auto& [key, lane] : lanes_) {
    for (int i = 0; i < kJobsALane; ++i) {
      threads_.emplace_back([this, &lane = lane] { Run(lane); });
    }
  }
}

JobLanes::~JobLanes() {
  Stop();
  for (std::thread& thread : threads_) thread.join();
}

void JobLanes::Add(const std::string& device, Priority priority, std::function<void()> job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return;
  lanes_.at({device, priority}).push_back(std::move(job));
  changed_.notify_all();
}

void JobLanes::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool JobLanes::AwaitQuiet(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, absl::ToChronoTime(absl::Now() + timeout), [this] { return running_ == 0; });
}

void JobLanes::Run(Lane& lane) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !lane.empty(); });
    if (stopped_) return;
    const std::function<void()> job = std::move(lane.front());
    lane.pop_front();
    ++running_;
    lock.unlock();
    job();
    lock.lock();
    --running_;
    changed_.notify_all();
  }
}

}  // namespace attune::tuning
