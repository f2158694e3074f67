#include "server/jobs/job_lanes.h"

#include <algorithm>
#include <utility>

#include "server/base/deadline.h"

namespace attune::jobs {
namespace {

constexpr size_t kJobsALane = 2;

}  // namespace

JobLanes::JobLanes(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    const Lane& interactive = lanes_[{device, trials::Priority::kInteractive}];
    lanes_[{device, trials::Priority::kBackground}].before = &interactive;
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
  lanes_.at({device, priority}).queue.push_back({std::move(job), {}});
  TellPlacesLocked();
  changed_.notify_all();
}

void JobLanes::Refresh() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TellPlacesLocked();
}

void JobLanes::TellPlacesLocked() {
  for (auto& [key, lane] : lanes_) {
    std::erase_if(lane.queue, [](const Queued& waiting) { return waiting.job.gone(); });
    for (const Running& job : lane.running) {
      if (job.turn.position > 0) TellTurn(lane, job);
    }
    TellQueue(lane);
  }
}

void JobLanes::TellTurn(const Lane& lane, const Running& job) {
  trials::QueuePlace place = job.turn;
  if (place.position > 0 && lane.before != nullptr) {
    // The device's turn knows those of them that have come to it.
    const size_t urgent = lane.before->running.size() + lane.before->queue.size();
    place.position += std::max<int64_t>(0, static_cast<int64_t>(urgent) - place.urgent);
  }
  job.waiter.moved(place);
}

void JobLanes::TellQueue(Lane& lane) {
  trials::QueuePlace place;
  const auto pass = [&place](const trials::Waiter& ahead) {
    if (place.position++ > 0) return;
    place.first = ahead.name;
    place.first_title = ahead.title;
  };
  if (lane.before != nullptr) {
    for (const Running& job : lane.before->running) pass(job.waiter);
    for (const Queued& job : lane.before->queue) pass(job.job.waiter);
  }
  int64_t overtaken = 0;
  for (const Running& job : lane.running) {
    pass(job.waiter);
    overtaken = std::max(overtaken, job.turn.overtaken);
  }
  place.position += overtaken;
  size_t threads = kJobsALane - std::min(kJobsALane, lane.running.size());
  for (Queued& job : lane.queue) {
    if (threads > 0) {
      --threads;  // it begins at once, and is told of its turn on the device
    } else if (job.job.waiter.moved && job.told != place) {
      job.told = place;
      job.job.waiter.moved(place);
    }
    pass(job.job.waiter);
  }
}

size_t JobLanes::Load(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t jobs = 0;
  for (const auto& [key, lane] : lanes_) {
    if (key.first != device) continue;
    jobs += lane.running.size();
    jobs += static_cast<size_t>(
        std::count_if(lane.queue.begin(), lane.queue.end(), [](const Queued& job) { return !job.job.gone(); }));
  }
  return jobs;
}

void JobLanes::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool JobLanes::AwaitQuiet(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, After(timeout), [this] { return running_ == 0; });
}

void JobLanes::Run(Lane& lane) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !lane.queue.empty(); });
    if (stopped_) return;
    const Job job = std::move(lane.queue.front().job);
    lane.queue.pop_front();
    if (job.gone()) continue;
    const auto running = lane.running.insert(lane.running.end(), {job.waiter, {}});
    ++running_;
    trials::Waiter on_device = job.waiter;
    if (job.waiter.moved) {
      job.waiter.moved({});
      on_device.moved = [this, &lane, running](const trials::QueuePlace& turn) {
        const std::lock_guard<std::mutex> told(mutex_);
        running->turn = turn;
        TellTurn(lane, *running);
        TellQueue(lane);
      };
    }
    lock.unlock();
    job.run(on_device);
    lock.lock();
    lane.running.erase(running);
    --running_;
    TellPlacesLocked();
    changed_.notify_all();
  }
}

}  // namespace attune::jobs
