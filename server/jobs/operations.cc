#include "server/jobs/operations.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/attune/progress_words.h"
#include "server/base/log.h"
#include "server/base/proto_time.h"
#include "server/base/reason.h"
#include "server/base/sha256.h"
#include "server/jobs/job_log.h"
#include "server/jobs/last_sweep.h"
#include "server/jobs/operation_end.h"
#include "server/store/page_token.h"
#include "server/trials/store_wait.h"

namespace attune::jobs {

namespace {

constexpr size_t kMostAsked = 64;  // jobs, at each look whether another holder has leased them

constexpr absl::Duration kLookAgain = absl::Seconds(10);  // jobs take seconds to minutes

// As the queue has it, where no principal's is another's. The length says where the principal ends, whatever is in it.
std::string ScopedId(const std::string& principal, const std::string& request_id) {
  return request_id.empty() || principal.empty() ? request_id
                                                 : absl::StrCat(principal.size(), "/", principal, "/", request_id);
}

absl::Status OverQuota(const std::string& principal, absl::string_view quota, absl::string_view limit,
                       absl::string_view what, absl::Duration delay) {
  absl::Status status = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(principal, " ", what, "; its quota of ", quota, " is ", limit)),
      "QUOTA_EXCEEDED");
  status.SetPayload(kPrincipalUrl, absl::Cord(principal));
  status.SetPayload(kQuotaUrl, absl::Cord(quota));
  status.SetPayload(kQuotaLimitUrl, absl::Cord(limit));
  SetRetryDelay(delay, status);
  return status;
}

// Of one that works elsewhere and cannot be read: who watches it hears so, until it can be.
void SayNotHeard(LiveOperation& live, const absl::Status& why) {
  if (absl::StartsWith(live.Snapshot().progress().message(), kWaitingForStore)) return;
  live.Update([&why](v1::Operation& operation) {
    operation.mutable_progress()->set_message(absl::StrCat(kWaitingForStore, why.message()));
  });
}

}  // namespace

absl::StatusOr<Operations::Started> Operations::Start(const Wanted& wanted) {
  const std::lock_guard<std::mutex> one(starting_);
  store::JoinTerms terms = {.others = wanted.elsewhere, .most_unfinished = kMostInFlight};
  for (store::JoinTerms::Same& same : terms.others) same.identity = Sha256(same.identity);
  store::Job job;
  const bool part = !wanted.parent.empty();
  const absl::Status quotas = part || wanted.principal.empty() ? absl::OkStatus() : CheckQuotas(wanted);
  if (!quotas.ok()) terms.most_unfinished = 0;  // one that is there may still be joined
  if (part) terms.most_unfinished = std::numeric_limits<size_t>::max();
  job.name = part ? wanted.name : NewName();
  job.parent = wanted.parent;
  job.kind = wanted.kind;
  job.request = wanted.request;
  job.request_id = ScopedId(wanted.principal, wanted.request_id);
  job.identity = Sha256(part ? job.name : wanted.identity);
  job.operation.set_name(job.name);
  job.operation.set_parent(job.parent);
  job.operation.set_state(v1::Operation::STATE_QUEUED);
  job.operation.set_title(wanted.title);
  job.operation.set_problem(wanted.problem_text);
  job.operation.set_request_id(wanted.request_id);
  job.operation.set_principal(wanted.principal);
  job.operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_QUEUED);
  job.operation.mutable_progress()->set_message(wanted.detail);
  SetTimestamp(absl::Now(), job.operation.mutable_create_time());
  job.device_class = wanted.device_class;
  job.home = wanted.home;
  job.priority = wanted.priority;
  absl::StatusOr<store::Job> stored = queue_.Create(job, terms);
  if (!quotas.ok() && absl::IsResourceExhausted(stored.status())) return quotas;
  if (!stored.ok()) return stored.status();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = in_flight_.find(stored->name);
  if (it != in_flight_.end()) return Started{it->second, it->second->Snapshot(), std::move(stored->request), false};
  if (stored->name != job.name || stored->epoch > 0) {
    return Started{nullptr, std::move(stored->operation), std::move(stored->request), false};
  }
  if (!wanted.here) {
    LogJob("job queued for other hosts", stored->operation, wanted.trace);
    return Started{nullptr, std::move(stored->operation), std::move(stored->request), false};
  }
  std::shared_ptr<LiveOperation> live = InsertLocked(stored->operation, wanted.kind, wanted.trace);
  LogJob("job queued", stored->operation, wanted.trace);
  return Started{live, live->Snapshot(), std::move(stored->request), true};
}

absl::Status Operations::CheckQuotas(const Wanted& wanted) {
  if (const size_t own = CountOf(wanted.principal); own >= wanted.most_of_principal) {
    return OverQuota(wanted.principal, "operations", absl::StrCat(wanted.most_of_principal),
                     absl::StrCat("has ", own, " operations queued or running"), kLookAgain);
  }
  const absl::Time now = absl::Now();
  if (const absl::Duration had = DeviceTimeOf(wanted.principal, now); had >= wanted.most_device_time) {
    return OverQuota(wanted.principal, "device_seconds", absl::StrCat(absl::ToInt64Seconds(wanted.most_device_time)),
                     absl::StrCat("has had ", absl::ToInt64Seconds(had), " s of device time today (UTC)"),
                     BeginOfDay(now) + absl::Hours(24) - now);
  }
  return absl::OkStatus();
}

absl::Status Operations::ReadDeviceTimes(absl::Time now) {
  device_times_.Clear();                                           // of a try that failed
  const absl::Time yesterday = BeginOfDay(now) - absl::Hours(24);  // what began then may have ended today
  std::string token;
  do {
    const absl::StatusOr<store::Page<v1::Operation>> page = queue_.List({}, store::kMostPageSize, token);
    if (!page.ok()) return page.status();
    for (const v1::Operation& operation : page->items) {
      // A damaged one has no time.
      if (operation.has_create_time() && TimeOf(operation.create_time()) < yesterday) return absl::OkStatus();
      CountDeviceTime(operation);
      if (!operation.problem().empty()) continue;  // a sweep has none
      const absl::StatusOr<std::vector<v1::Operation>> parts = PartsOf(operation.name());
      if (!parts.ok()) return parts.status();
      for (const v1::Operation& part : *parts) CountDeviceTime(part);
    }
    token = page->next_page_token;
  } while (!token.empty());
  return absl::OkStatus();
}

void Operations::CountDeviceTime(const v1::Operation& operation) {
  if (!operation.done() || operation.principal().empty()) return;
  device_times_.Add(operation.principal(), DurationOf(operation.device_time()), TimeOf(operation.end_time()));
}

absl::Duration Operations::DeviceTimeOf(absl::string_view principal, absl::Time now) {
  absl::Duration time = device_times_.Of(principal, now);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, live] : in_flight_) {
    if (live->principal() == principal) time += live->device_time();
  }
  return time;
}

size_t Operations::CountOf(absl::string_view principal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<size_t>(std::count_if(in_flight_.begin(), in_flight_.end(), [principal](const auto& entry) {
    return entry.second->principal() == principal && entry.second->parent().empty();
  }));
}

std::shared_ptr<LiveOperation> Operations::Adopt(const store::Job& job, const std::string& identity, bool claimed) {
  const std::lock_guard<std::mutex> one(starting_);  // nobody else puts it in flight meanwhile
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (in_flight_.contains(job.name) || unkept_.contains(job.name)) return nullptr;
  }
  // It may have left since `job` was read.
  absl::StatusOr<store::Job> now = queue_.Get(job.name);
  if (!now.ok() || now->operation.done()) return nullptr;
  if (now->identity.empty()) {
    if (absl::Status named = queue_.Identify(job.name, Sha256(identity)); !named.ok()) {
      LogWarning("a job of an earlier version cannot be joined", {{"job", job.name}, {"error", named.message()}});
    }
  }
  v1::Operation& operation = now->operation;
  operation.set_state(v1::Operation::STATE_QUEUED);
  operation.mutable_progress()->Clear();
  operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_QUEUED);
  if (!job.lost_by.empty()) {
    operation.mutable_progress()->set_message(absl::StrCat("goes on after ", job.lost_by.back(), " was lost"));
  } else if (!claimed) {
    operation.mutable_progress()->set_message("goes on after a restart or an outage");
  }
  LogJob(claimed ? "job claimed" : "job resumed", operation);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto dropped = dropped_.find(job.name);
  std::shared_ptr<LiveOperation> live;
  if (dropped == dropped_.end()) {
    live = InsertLocked(operation, job.kind);
  } else {
    live = dropped->second;
    dropped_.erase(dropped);
    live->Reopen(operation);
    in_flight_[job.name] = live;
  }
  if (claimed) live->SetEpoch(job.epoch);
  if (claimed && now->cancelled) live->RequestStop(/*cancel=*/true);
  return live;
}

std::shared_ptr<LiveOperation> Operations::InsertLocked(const v1::Operation& operation, store::JobKind kind,
                                                        const std::string& trace) {
  return in_flight_[operation.name()] = MakeLive(operation, kind, trace);
}

std::shared_ptr<LiveOperation> Operations::MakeLive(const v1::Operation& operation, store::JobKind kind,
                                                    const std::string& trace) {
  return std::make_shared<LiveOperation>(
      operation,
      [this, part = !operation.parent().empty()] {
        watchers_.Changed();
        if (part) part_changes_.Tell();
      },
      clock_, kind, trace);
}

bool Operations::Lease(const std::shared_ptr<LiveOperation>& live) {
  if (live->epoch() > 0) return true;
  const absl::StatusOr<std::optional<store::Job>> leased = trials::WaitForStore(
      live->name(), stop_.get_token(), *live, [&] { return queue_.Lease(live->name(), holder_.name, holder_.lease); });
  if (!leased.ok() || !leased->has_value()) {
    if (!leased.ok()) LogWarning("job not leased", {{"job", live->name()}, {"error", leased.status().message()}});
    Drop(live);
    return false;
  }
  live->SetEpoch((*leased)->epoch);
  if ((*leased)->cancelled) live->RequestStop(/*cancel=*/true);
  return true;
}

std::vector<std::string> Operations::Renew() {
  // What is leased after this is none of this renewal's.
  std::vector<std::pair<std::shared_ptr<LiveOperation>, int64_t>> leased;
  for (const std::shared_ptr<LiveOperation>& live : InFlight()) {
    if (live->epoch() > 0 && !live->done()) leased.emplace_back(live, live->epoch());
  }
  const absl::Duration asked = holder_.clock();
  const absl::StatusOr<std::vector<store::LeasedJob>> held = queue_.RenewAll(holder_.name, holder_.lease);
  if (!held.ok()) {
    settled_ = false;
    // The call itself may have taken long.
    if (holder_.clock() - renewed_ < holder_.fence) return {};
    for (const auto& [live, epoch] : leased) {
      if (live->lost()) continue;
      LogWarning("the lease could not be renewed: the job stops here",
                 {{"job", live->name()}, {"error", held.status().message()}});
      live->Lose();
    }
    return {};
  }
  renewed_ = asked;
  std::map<std::string, const store::LeasedJob*> by_name;
  for (const store::LeasedJob& job : *held) by_name[job.name] = &job;
  for (const auto& [live, epoch] : leased) {
    const auto it = by_name.find(live->name());
    if (live->epoch() != epoch) continue;
    if (it == by_name.end() || it->second->epoch != epoch) {
      live->Lose();
    } else if (it->second->cancelled) {
      live->RequestStop(/*cancel=*/true);
    }
  }
  std::vector<std::string> nobodys;
  bool settled = true;
  for (const store::LeasedJob& job : *held) {
    const std::shared_ptr<LiveOperation> live = Find(job.name);
    if (live == nullptr) nobodys.push_back(job.name);
    if (live != nullptr && live->lost()) settled = false;
  }
  settled_ = settled;
  return nobodys;
}

void Operations::Drop(const std::shared_ptr<LiveOperation>& live) {
  LogJob("job left to another holder", live->Snapshot(), live->trace());
  const std::lock_guard<std::mutex> lock(mutex_);
  in_flight_.erase(live->name());
  dropped_[live->name()] = live;
}

void Operations::DropTaken() {
  const absl::StatusOr<std::vector<std::string>> leasable = queue_.Leasable(holder_.name);
  if (!leasable.ok()) return;
  const std::set<std::string> free(leasable->begin(), leasable->end());
  size_t asked = 0;
  for (const std::shared_ptr<LiveOperation>& live : InFlight()) {
    if (live->epoch() > 0 || free.contains(live->name())) continue;
    if (asked++ == kMostAsked) break;  // the oldest are leased first
    const absl::StatusOr<store::Job> job = queue_.Get(live->name());
    if (!job.ok() || job->holder.empty() || job->holder == holder_.name) continue;
    if (live->Withdraw()) Drop(live);
  }
}

void Operations::Follow() {
  DropTaken();
  Live dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    dropped = dropped_;
  }
  for (const auto& [name, live] : dropped) {
    const absl::StatusOr<store::Job> job = GetForTelling(name);
    if (!job.ok() && !absl::IsNotFound(job.status())) {
      SayNotHeard(*live, job.status());
      continue;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!dropped_.contains(name)) continue;  // adopted meanwhile
    if (job.ok()) live->Update([&job](v1::Operation& operation) { operation = job->operation; });
    if (!job.ok() || job->operation.done()) dropped_.erase(name);
  }
}

void Operations::LeaveToOthers(const std::shared_ptr<LiveOperation>& live, absl::string_view why) {
  live->Update([why](v1::Operation& operation) {
    operation.set_state(v1::Operation::STATE_QUEUED);
    operation.mutable_progress()->Clear();
    operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_QUEUED);
    operation.mutable_progress()->set_message(std::string(why));
  });
  if (absl::Status saved = Save(*live); !saved.ok()) {
    LogWarning("job does not say why it waits", {{"job", live->name()}, {"error", saved.message()}});
  }
  GiveBack(live);
  Drop(live);
}

void Operations::GiveBack(const std::shared_ptr<LiveOperation>& live) {
  const absl::Status given = queue_.Requeue(live->fence());
  if (!given.ok()) LogWarning("job not given back", {{"job", live->name()}, {"error", given.message()}});
}

// Names sort by the time of their start.
std::string Operations::NewName() {
  last_name_ = std::max(last_name_ + 1, static_cast<uint64_t>(absl::ToUnixMicros(absl::Now())));
  return absl::StrFormat("operations/%016x", last_name_);
}

absl::StatusOr<v1::Operation> Operations::Get(absl::string_view name) {
  if (const std::shared_ptr<LiveOperation> live = Find(name); live != nullptr) return live->Snapshot();
  if (const std::shared_ptr<LiveOperation> ended = FindUnkept(name); ended != nullptr) return ended->Snapshot();
  absl::StatusOr<store::Job> job = GetForTelling(name);
  if (!job.ok()) return job.status();
  return std::move(job->operation);
}

absl::StatusOr<store::Job> Operations::GetForTelling(absl::string_view name) {
  absl::StatusOr<store::Job> job = queue_.Get(name);
  if (job.ok() && job->operation.done() && ended_elsewhere_ != nullptr) ended_elsewhere_();
  return job;
}

std::shared_ptr<LiveOperation> Operations::FindUnkept(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = unkept_.find(name);
  return it == unkept_.end() ? nullptr : it->second;
}

std::shared_ptr<LiveOperation> Operations::Find(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = in_flight_.find(name);
  return it == in_flight_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<LiveOperation>> Operations::InFlight() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<LiveOperation>> all;
  all.reserve(in_flight_.size());
  for (const auto& [name, live] : in_flight_) all.push_back(live);
  return all;
}

std::vector<std::shared_ptr<LiveOperation>> Operations::PartsInFlight(absl::string_view parent) {
  std::vector<std::shared_ptr<LiveOperation>> parts = InFlight();
  std::erase_if(parts, [parent](const auto& live) { return live->parent() != parent; });
  return parts;
}

absl::StatusOr<std::vector<v1::Operation>> Operations::PartsOf(const std::string& parent, bool active_only) {
  std::vector<v1::Operation> parts;
  std::string token;
  do {
    absl::StatusOr<store::Page<v1::Operation>> page =
        queue_.List({.active_only = active_only, .parent = parent}, store::kMostPageSize, token);
    if (!page.ok()) return page.status();
    std::move(page->items.begin(), page->items.end(), std::back_inserter(parts));
    token = page->next_page_token;
  } while (!token.empty());
  return parts;
}

absl::StatusOr<std::function<void()>> Operations::Watch(absl::string_view name, Watchers::Watcher watcher) {
  std::shared_ptr<LiveOperation> live = Find(name);
  if (live == nullptr) {
    const absl::StatusOr<store::Job> job = GetForTelling(name);
    if (!job.ok()) return job.status();
    live = Elsewhere(*job);
  }
  return watchers_.Add(live, std::move(watcher));
}

std::shared_ptr<LiveOperation> Operations::Elsewhere(const store::Job& job) {
  if (job.operation.done()) return std::make_shared<LiveOperation>(job.operation, [] {});
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto it = in_flight_.find(job.name); it != in_flight_.end()) return it->second;
  std::shared_ptr<LiveOperation>& live = dropped_[job.name];
  if (live == nullptr) live = MakeLive(job.operation, job.kind, "");
  return live;
}

absl::Status Operations::Save(LiveOperation& live) {
  std::stop_source either;
  const auto stop = [&either] { either.request_stop(); };
  const std::stop_callback stopped(live.stop_token(), stop);
  const std::stop_callback ending(stop_.get_token(), stop);
  return trials::WaitForStore(live.name(), either.get_token(), live, [&] {
    const std::lock_guard<std::mutex> one(saving_);
    return queue_.Update(live.fence(), live.Snapshot());
  });
}

void Operations::KeepProgress() {
  std::map<std::string, uint64_t> kept;
  for (const std::shared_ptr<LiveOperation>& live : InFlight()) {
    if (live->epoch() == 0 || !live->taken() || live->lost() || live->done()) continue;
    const std::lock_guard<std::mutex> one(saving_);
    uint64_t version = 0;
    const v1::Operation now = live->Snapshot(&version);
    if (now.done()) continue;
    const auto before = kept_.find(live->name());
    const bool same = before != kept_.end() && before->second == version;
    // One that the store does not take is told again the next time, or is no longer this holder's.
    if (same || queue_.Update(live->fence(), now).ok()) kept[live->name()] = version;
  }
  kept_ = std::move(kept);
}

absl::Status Operations::Store(const std::shared_ptr<LiveOperation>& live, const v1::Operation& last) {
  return trials::WaitForStore(live->name(), stop_.get_token(), *live,
                              [&] { return queue_.Finish(live->fence(), last); });
}

void Operations::Count(const LiveOperation& live) {
  if (metrics_ == nullptr) return;
  const v1::Operation last = live.Snapshot();
  metrics_->Ended(WordOf(live.kind()), last);
  if (IsSuccessfulSweep(last)) metrics_->SweepSucceeded(TimeOf(last.end_time()));
}

void Operations::Finish(const std::shared_ptr<LiveOperation>& live, v1::Operation::State state,
                        const absl::Status& error, const JobKind::Fill& fill) {
  if (live->epoch() == 0 && !Lease(live)) return;
  v1::Operation last = live->Snapshot();
  SetEnded(state, last);
  const bool succeeded = state == v1::Operation::STATE_SUCCEEDED;
  if (succeeded) last.mutable_progress()->set_message("done");
  const absl::Status failed = error.ok() ? fill(last) : error;
  if (!failed.ok()) {
    SetFailed(failed, last);
  } else if (succeeded) {
    last.mutable_progress()->set_phase(v1::OperationProgress::PHASE_DONE);
  }
  const absl::Status stored = Store(live, last);
  if (store::IsStale(stored)) return Drop(live);
  if (!stored.ok()) {
    // The stored job stays unfinished and is resumed at the next start; who watches now must hear why.
    last.clear_response();
    SetFailed(absl::Status(stored.code(), absl::StrCat("storing the result: ", stored.message())), last);
  }
  LogJobEnd(last, live->trace());
  live->Update([&](v1::Operation& operation) { operation = last; });
  Count(*live);
  const std::lock_guard<std::mutex> lock(mutex_);
  in_flight_.erase(live->name());
  CountDeviceTime(last);
  if (!stored.ok()) unkept_.insert_or_assign(live->name(), live);
}

}  // namespace attune::jobs
