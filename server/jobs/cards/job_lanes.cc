#include "server/jobs/cards/job_lanes.h"

#include <algorithm>
#include <utility>

#include "server/base/deadline.h"

namespace attune::jobs {
namespace {

constexpr size_t kJobsALane = 2;

}  // namespace

JobLanes::JobLanes(const std::vector<std::string>& devices, std::function<void()> ended) : ended_(std::move(ended)) {
  for (const std::string& device : devices) {
    std::vector<Lane*> before;
    for (const trials::Priority priority :
         {trials::Priority::kInteractive, trials::Priority::kBackground, trials::Priority::kIdle}) {
      Lane& lane = lanes_[{device, priority}];
      lane.device = device;
      lane.before.assign(before.begin(), before.end());
      before.push_back(&lane);
    }
    Lane& without = lanes_[{device, std::nullopt}];
    without.device = device;
    without.takes_device = false;
    without.shares = {&without};
    for (Lane* const lane : before) {
      lane->shares = lane->before;
      lane->shares.push_back(lane);
    }
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

void JobLanes::Add(const std::vector<std::string>& devices, trials::Priority priority, Job job) {
  std::vector<Lane*> lanes;
  lanes.reserve(devices.size());
  for (const std::string& device : devices) lanes.push_back(&lanes_.at({device, priority}));
  AddTo(std::move(lanes), std::move(job));
}

void JobLanes::AddWithout(const std::string& device, Job job) {
  AddTo({&lanes_.at({device, std::nullopt})}, std::move(job));
}

void JobLanes::AddTo(std::vector<Lane*> lanes, Job job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return;
  const auto entry = std::make_shared<Entry>(Entry{std::move(job), std::move(lanes)});
  for (Lane* const lane : entry->lanes) lane->queue.push_back(entry);
  TellPlacesLocked();
  changed_.notify_all();
}

void JobLanes::Refresh() {
  const std::lock_guard<std::mutex> lock(mutex_);
  TellPlacesLocked();
  changed_.notify_all();  // what waited behind them may begin
}

void JobLanes::TellPlacesLocked() {
  for (auto& [key, lane] : lanes_) {
    std::erase_if(lane.queue, [](const auto& entry) { return entry->job.gone(); });
    for (const auto& entry : lane.running) {
      if (entry->turn.position > 0) entry->at_turn ? TellTurn(*entry) : TellBegun(*entry);
    }
  }
  TellQueuesLocked();
}

void JobLanes::TellTurn(const Entry& entry) {
  trials::QueuePlace place = entry.turn;
  if (place.position > 0) {
    // The device's turn knows those of them that have come to it.
    size_t urgent = 0;
    for (const Lane* before : entry.lanes.front()->before) urgent += before->running.size() + before->queue.size();
    place.position += std::max<int64_t>(0, static_cast<int64_t>(urgent) - place.urgent);
  }
  entry.job.waiter.moved(place);
}

void JobLanes::TellBegun(Entry& entry) {
  const Lane& lane = *entry.lanes.front();
  trials::QueuePlace place;
  const auto pass = [&](const Entry& ahead) {
    if (ahead.job.over() || place.position++ > 0) return;
    place.first = ahead.job.waiter.name;
    place.first_title = ahead.job.waiter.title;
  };
  for (const Lane* before : lane.before) {
    for (const auto& ahead : before->running) pass(*ahead);
    for (const auto& ahead : before->queue) pass(*ahead);
  }
  for (const auto& ahead : lane.running) {
    if (ahead.get() == &entry || !lane.takes_device) break;
    pass(*ahead);
  }
  entry.turn = place;
  entry.job.waiter.moved(place);
}

void JobLanes::TellQueuesLocked() {
  for (const auto& [key, lane] : lanes_) {
    for (const auto& entry : lane.queue) entry->place.reset();
  }
  for (const auto& [key, lane] : lanes_) PlaceQueue(lane);
  for (const auto& [key, lane] : lanes_) {
    for (const auto& entry : lane.queue) {
      // With none ahead it begins at once, and is told of its turn on the device.
      if (!entry->job.waiter.moved || entry->place->position == 0 || entry->told == *entry->place) continue;
      entry->told = *entry->place;
      entry->job.waiter.moved(entry->told);
    }
  }
}

void JobLanes::PlaceQueue(const Lane& lane) {
  trials::QueuePlace place;
  const auto pass = [&place](const Entry& ahead) {
    if (place.position++ > 0) return;
    place.first = ahead.job.waiter.name;
    place.first_title = ahead.job.waiter.title;
  };
  for (const Lane* before : lane.before) {
    for (const auto& entry : before->running) pass(*entry);
    for (const auto& entry : before->queue) pass(*entry);
  }
  int64_t overtaken = 0;
  for (const auto& entry : lane.running) {
    pass(*entry);
    overtaken = std::max(overtaken, entry->turn.overtaken);
  }
  place.position += overtaken;
  size_t threads = kJobsALane - std::min(kJobsALane, lane.running.size());
  for (const auto& entry : lane.queue) {
    const bool begins = threads > 0 && (!entry->job.at_once || place.position == 0);
    const trials::QueuePlace here = begins ? trials::QueuePlace() : place;
    threads = begins ? threads - 1 : 0;
    if (!entry->place.has_value() || here.position < entry->place->position) entry->place = here;
    pass(*entry);
  }
}

std::vector<JobLanes::LaneLoad> JobLanes::Loads() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<LaneLoad> loads;
  for (const auto& [key, lane] : lanes_) {
    LaneLoad& load = loads.emplace_back(LaneLoad{key.first, key.second});
    for (const auto& entry : lane.queue) load.waiting += entry->lanes.front() == &lane && !entry->job.gone();
    for (const auto& entry : lane.running) load.running += !entry->job.over();
  }
  return loads;
}

bool JobLanes::HasRoom(const std::string& device, std::optional<trials::Priority> priority) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Lane& lane = lanes_.at({device, priority});
  return !stopped_ && IsFree(lane) && std::all_of(lane.shares.begin(), lane.shares.end(), [](const Lane* shared) {
    return std::all_of(shared->queue.begin(), shared->queue.end(), [](const auto& entry) { return entry->job.gone(); });
  });
}

bool JobLanes::IsFree(const Lane& lane) const {
  const auto helped = helped_.find(lane.device);
  if (lane.takes_device && helped != helped_.end() && helped->second > 0) return false;
  return std::all_of(lane.shares.begin(), lane.shares.end(), [](const Lane* shared) {
    return std::all_of(shared->running.begin(), shared->running.end(),
                       [](const auto& entry) { return entry->job.over(); });
  });
}

JobLanes::Help::Help(JobLanes& lanes, std::vector<std::string> devices, size_t most)
    : lanes_(lanes), devices_(std::move(devices)) {
  const std::lock_guard<std::mutex> lock(lanes_.mutex_);
  std::stable_sort(devices_.begin(), devices_.end(), [this](const std::string& a, const std::string& b) {
    return lanes_.LoadLocked(a) < lanes_.LoadLocked(b);
  });
  devices_.resize(std::min(devices_.size(), most));
  for (const std::string& device : devices_) ++lanes_.helped_[device];
}

JobLanes::Help::~Help() {
  const std::lock_guard<std::mutex> lock(lanes_.mutex_);
  for (const std::string& device : devices_) --lanes_.helped_[device];
  lanes_.changed_.notify_all();  // what waits for any of several devices may be better begun there now
}

size_t JobLanes::Load(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return LoadLocked(device);
}

size_t JobLanes::LoadLocked(const std::string& device) const {
  const auto helped = helped_.find(device);
  size_t jobs = helped == helped_.end() ? 0 : helped->second;
  for (const auto& [key, lane] : lanes_) {
    if (lane.device != device || !lane.takes_device) continue;
    jobs += lane.running.size();
    jobs += static_cast<size_t>(
        std::count_if(lane.queue.begin(), lane.queue.end(), [](const auto& entry) { return !entry->job.gone(); }));
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

size_t JobLanes::RunningOn(const std::string& device) const {
  const auto helped = helped_.find(device);
  size_t running = helped == helped_.end() ? 0 : helped->second;
  for (const auto& [key, lane] : lanes_) {
    if (lane.device != device || !lane.takes_device) continue;
    running += static_cast<size_t>(
        std::count_if(lane.running.begin(), lane.running.end(), [](const auto& entry) { return !entry->job.over(); }));
  }
  return running;
}

bool JobLanes::BetterElsewhere(const Entry& entry, const Lane& lane) const {
  if (entry.lanes.size() == 1) return false;
  const size_t here = RunningOn(lane.device);
  return std::any_of(entry.lanes.begin(), entry.lanes.end(), [&](const Lane* other) {
    return other != &lane && other->running.size() < kJobsALane && RunningOn(other->device) < here &&
           (!entry.job.at_once || IsFree(*other));
  });
}

std::shared_ptr<JobLanes::Entry> JobLanes::NextFor(const Lane& lane) const {
  for (const std::shared_ptr<Entry>& entry : lane.queue) {
    if (entry->job.gone() || BetterElsewhere(*entry, lane)) continue;
    if (!entry->job.at_once || IsFree(lane)) return entry;
    // Those that came later do not go before it for ever; what takes no device keeps nobody waiting.
    if (lane.takes_device) return nullptr;
  }
  return nullptr;
}

void JobLanes::Run(Lane& lane) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    std::shared_ptr<Entry> entry;
    changed_.wait(lock, [&] { return stopped_ || (entry = NextFor(lane)) != nullptr; });
    if (stopped_) return;
    for (Lane* const in : entry->lanes) std::erase(in->queue, entry);
    if (entry->job.gone()) continue;
    entry->lanes = {&lane};
    lane.running.push_back(entry);
    ++running_;
    trials::Waiter on_device = entry->job.waiter;
    on_device.begun = ++begun_;
    if (on_device.moved) {
      TellBegun(*entry);
      on_device.moved = [this, entry](const trials::QueuePlace& turn) {
        const std::lock_guard<std::mutex> told(mutex_);
        entry->at_turn = true;
        entry->turn = turn;
        TellTurn(*entry);
        TellQueuesLocked();
      };
    }
    changed_.notify_all();  // what is in other lanes too may be better begun there now
    lock.unlock();
    entry->job.run(lane.device, on_device);
    lock.lock();
    std::erase(lane.running, entry);
    --running_;
    TellPlacesLocked();
    changed_.notify_all();
    if (ended_) ended_();
  }
}

}  // namespace attune::jobs
