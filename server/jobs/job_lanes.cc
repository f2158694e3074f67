#include "server/jobs/job_lanes.h"

#include <algorithm>

namespace attune::jobs {
namespace {

constexpr size_t kJobsALane = 2;
constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);  // a sum with the time now overflows no clock

}  // namespace

JobLanes::JobLanes(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    lanes_[{device, trials::Priority::kInteractive}];
    lanes_[{device, trials::Priority::kBackground}];
  }
  for (auto& [key, lane] : lanes_) {
    for (size_t i = 0; i < kJobsALane; ++i) {
      threads_.emplace_back([this, &lane = lane] { Run(lane); });
    }
  }
}

JobLanes::~JobLanes() {
  Stop();
  for (std::thread& thread : threads_) thread.join();
}

void JobLanes::Add(const std::string& device, trials::Priority priority, Job job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return;
  Lane& lane = lanes_.at({device, priority});
  lane.queue.push_back(std::move(job));
  TellPlace(lane, lane.queue.size() - 1);
  changed_.notify_all();
}

void JobLanes::TellPlace(const Lane& lane, size_t index) {
  const size_t ahead = lane.running.size() + index;
  const trials::Waiter& waiter = lane.queue[index].waiter;
  if (ahead < kJobsALane || !waiter.moved) return;  // begins at once
  const trials::Waiter& first = lane.running.empty() ? lane.queue.front().waiter : lane.running.front();
  waiter.moved({first.name, first.title, static_cast<int64_t>(ahead)});
}

size_t JobLanes::Load(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t jobs = 0;
  for (const auto& [key, lane] : lanes_) {
    if (key.first != device) continue;
    jobs += lane.running.size();
    jobs += static_cast<size_t>(
        std::count_if(lane.queue.begin(), lane.queue.end(), [](const Job& job) { return !job.gone(); }));
  }
  return jobs;
}

void JobLanes::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool JobLanes::AwaitQuiet(absl::Duration timeout) {
  const absl::Duration most = std::min(timeout, kLongestWait);
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(most), [this] { return running_ == 0; });
}

void JobLanes::Run(Lane& lane) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !lane.queue.empty(); });
    if (stopped_) return;
    const Job job = std::move(lane.queue.front());
    lane.queue.pop_front();
    if (job.gone()) continue;
    const auto running = lane.running.insert(lane.running.end(), job.waiter);
    ++running_;
    if (job.waiter.moved) job.waiter.moved({});
    lock.unlock();
    job.run();
    lock.lock();
    lane.running.erase(running);
    --running_;
    std::erase_if(lane.queue, [](const Job& waiting) { return waiting.gone(); });
    for (size_t i = 0; i < lane.queue.size(); ++i) TellPlace(lane, i);
    changed_.notify_all();
  }
}

}  // namespace attune::jobs
