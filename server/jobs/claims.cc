#include "server/jobs/claims.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/base/deadline.h"
#include "server/base/log.h"
#include "server/base/pause.h"
#include "server/trials/device_turn.h"

namespace attune::jobs {
namespace {

constexpr int kRenewals = 4;  // of a lease
// How often a host looks for work of other hosts, and how others get on with what is watched here.
constexpr absl::Duration kLook = absl::Seconds(2);
constexpr int kLooksAProgress = 2;  // how many looks later what runs here is told again

}  // namespace

void Claims::Start() {
  if (means_.shared) Renew();
  for (const std::string& name : TakeRenewed().nobodys) TakeUpNamed(name);
  renewer_ = std::jthread([this](const std::stop_token& stop) { KeepLeases(stop); });
  looker_ = std::jthread([this](const std::stop_token& stop) { LookForWork(stop); });
}

void Claims::Stop() {
  looker_ = std::jthread();
  renewer_ = std::jthread();
}

// Whatever waits would hold this up.
void Claims::KeepLeases(const std::stop_token& stop) {
  while (Pause(stop, means_.lease / kRenewals)) Renew();
}

void Claims::Renew() {
  std::vector<std::string> nobodys = means_.operations.Renew();
  const std::lock_guard<std::mutex> lock(mutex_);
  renewed_ = {std::move(nobodys), means_.operations.settled()};
}

Claims::Renewed Claims::TakeRenewed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {std::exchange(renewed_.nobodys, {}), renewed_.settled};
}

void Claims::LookSoon() {
  const std::lock_guard<std::mutex> lock(mutex_);
  look_soon_ = true;
  look_.notify_all();
}

bool Claims::AwaitFree(const std::stop_token& stop, std::chrono::steady_clock::time_point time) {
  std::unique_lock<std::mutex> lock(mutex_);
  look_.wait_until(lock, stop, time, [this] { return look_soon_; });
  return std::exchange(look_soon_, false) && !stop.stop_requested() && std::chrono::steady_clock::now() < time;
}

void Claims::LookForWork(const std::stop_token& stop) {
  const bool shared = means_.shared;
  for (int look = 1;; ++look) {
    const auto next = After(shared ? std::min(means_.lease / kRenewals, kLook) : means_.lease / kRenewals);
    while (AwaitFree(stop, next)) ClaimOne();
    if (stop.stop_requested()) return;
    for (const std::string& name : TakeRenewed().nobodys) TakeUpNamed(name);
    if (shared) EndCancelled();
    if (shared && look % kLooksAProgress == 0) means_.operations.KeepProgress();
    means_.operations.Follow();
    if (shared) means_.lanes.Refresh();  // others may have begun what waits here
    const absl::StatusOr<std::vector<std::string>> names = means_.queue.Leasable(means_.holder);
    if (names.ok()) {
      for (const std::string& name : *names) TakeUpNamed(name);
    }
    ClaimOne();
  }
}

void Claims::TakeUpNamed(const std::string& name) {
  if (means_.taker.IsDraining() || means_.operations.Find(name) != nullptr) return;
  const absl::StatusOr<store::Job> job = means_.queue.Get(name);
  if (!job.ok()) return;
  if (!job->device_class.empty() && job->holder != means_.holder) return;  // given back since it was listed
  if (means_.taker.IsForThisHost(*job)) return means_.taker.TakeUp(*job, /*claimed=*/false);
  // A card that this host has no longer; others have such a one.
  if (job->holder == means_.holder && !job->device_class.empty()) GiveBack(*job);
}

void Claims::EndCancelled() {
  for (const std::shared_ptr<LiveOperation>& live : means_.operations.InFlight()) {
    if (live->cancelled() && live->Withdraw()) means_.taker.EndCancelled(live);
  }
}

void Claims::ClaimOne() {
  if (!means_.shared || !means_.taker.TakesWork()) return;
  const Renewed renewed = TakeRenewed();
  for (const std::string& name : renewed.nobodys) TakeUpNamed(name);
  if (!renewed.settled) return;
  const absl::StatusOr<std::optional<store::Job>> job = means_.queue.Claim(means_.holder, Rooms(), means_.lease);
  if (absl::IsDataLoss(job.status())) LogError("job not claimed", {{"error", job.status().message()}});
  if (!job.ok() || !job->has_value()) return;
  if (means_.taker.IsDraining()) return GiveBack(**job);
  LetGo((*job)->name);
  means_.taker.TakeUp(**job, /*claimed=*/true);
}

std::vector<store::Room> Claims::Rooms() {
  std::vector<store::Room> rooms;
  for (const auto& [id, slot] : means_.cards.slots()) {
    if (!IsToBeHad(*slot)) continue;
    const std::string& device_class = slot->device().fingerprint();
    for (const trials::Priority priority :
         {trials::Priority::kInteractive, trials::Priority::kBackground, trials::Priority::kIdle}) {
      if (means_.lanes.HasRoom(id, priority)) rooms.push_back({device_class, static_cast<int64_t>(priority)});
    }
    if (means_.lanes.HasRoom(id, std::nullopt)) rooms.push_back({device_class, kTakesNoCard});
  }
  return rooms;
}

bool Claims::IsToBeHad(const trials::DeviceSlot& slot) {
  const absl::Status available = slot.Available();
  const std::string& id = slot.device().id();
  if (!available.ok() && held_elsewhere_.insert(id).second) {
    LogWarning("another process has a card: no jobs are claimed for it until it is free",
               {{"host", means_.holder}, {"device", id}, {"error", available.message()}});
  }
  if (available.ok() && held_elsewhere_.erase(id) > 0) {
    LogInfo("no other process has the card any more", {{"host", means_.holder}, {"device", id}});
  }
  return available.ok();
}

void Claims::LetGo(const std::string& name) {
  const std::shared_ptr<LiveOperation> waits = means_.operations.Find(name);
  if (waits == nullptr || waits->epoch() > 0 || !waits->Withdraw()) return;
  means_.operations.Drop(waits);
  means_.lanes.Refresh();
}

void Claims::GiveBack(const store::Job& job) {
  const absl::Status given = means_.queue.Requeue({job.name, job.epoch});
  if (!given.ok()) LogWarning("job not given back", {{"job", job.name}, {"error", given.message()}});
}

}  // namespace attune::jobs
