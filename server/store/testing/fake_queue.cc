#include "server/store/testing/fake_queue.h"

#include <algorithm>

#include "server/store/lease_rules.h"
#include "server/store/testing/listing.h"

namespace attune::store {
void FakeQueue::FailRenewals(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  renewals_ = std::move(status);
}

void FakeQueue::FailWrites(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  writes_ = std::move(status);
}

void FakeQueue::FailGets(absl::Status status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  gets_ = std::move(status);
}

FakeQueue::Stored* FakeQueue::FindLocked(absl::string_view name) {
  const auto it = std::find_if(jobs_.begin(), jobs_.end(), [name](const Stored& it) { return it.job.name == name; });
  return it == jobs_.end() ? nullptr : &*it;
}

FakeQueue::Stored* FakeQueue::FindIdenticalLocked(absl::string_view identity) {
  const auto it = std::find_if(jobs_.begin(), jobs_.end(), [identity](const Stored& it) {
    return !it.job.operation.done() && !it.job.identity.empty() && it.job.identity == identity;
  });
  return it == jobs_.end() ? nullptr : &*it;
}

absl::StatusOr<std::string> FakeQueue::Once(const JobWrite& write,
                                            absl::FunctionRef<absl::StatusOr<std::string>()> make) {
  if (write.fence.job.empty()) return make();
  const std::lock_guard<std::mutex> lock(mutex_);
  Stored* const stored = FindLocked(write.fence.job);
  if (stored == nullptr) return NoJob(write.fence.job);
  if (absl::Status status = CheckHeld(write.fence, stored->job); !status.ok()) return status;
  if (const auto it = stored->writes.find(write.id); it != stored->writes.end()) return it->second;
  absl::StatusOr<std::string> made = make();
  if (made.ok()) stored->writes[write.id] = *made;
  return made;
}

std::set<std::string> FakeQueue::WithParts(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<std::string> names = {name};
  for (const Stored& stored : jobs_) {
    if (!name.empty() && stored.job.parent == name) names.insert(stored.job.name);
  }
  return names;
}

absl::StatusOr<Job> FakeQueue::Create(const Job& job, const JoinTerms& terms) {
  if (absl::Status status = CheckNewJob(job); !status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!writes_.ok()) return writes_;
  if (const auto it = request_ids_.find(job.request_id); it != request_ids_.end()) {
    const Job& former = jobs_[it->second.job].job;
    absl::Status same = CheckSameRequest(job, terms, former, it->second.identity);
    if (!same.ok()) return same;
    return former;
  }
  Stored* found = nullptr;
  for (const JoinTerms::Same& same : AllTheSame(job, terms)) {
    if (found == nullptr) found = FindIdenticalLocked(same.identity);
  }
  if (found == nullptr) {
    if (const Stored* named = FindLocked(job.name); named != nullptr) return SameJobOrTaken(job, named->job);
    const auto unfinished = std::count_if(jobs_.begin(), jobs_.end(), [](const Stored& stored) {
      return !stored.job.operation.done() && stored.job.parent.empty();
    });
    absl::Status room = CheckUnfinished(static_cast<size_t>(unfinished), terms.most_unfinished);
    if (!room.ok()) return room;
    Job made = job;
    if (!job.parent.empty()) {
      const Stored* const parent = FindLocked(job.parent);
      if (parent == nullptr) return NoJob(job.parent);
      made.cancelled = EndsItsParts(parent->job);
    }
    found = &jobs_.emplace_back(Stored{std::move(made), job.operation.problem(), {}});
  }
  if (!job.request_id.empty()) {
    request_ids_[job.request_id] = {static_cast<size_t>(found - jobs_.data()), job.identity};
  }
  return found->job;
}

absl::Status FakeQueue::Identify(absl::string_view name, absl::string_view identity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!writes_.ok()) return writes_;
  Stored* const stored = FindLocked(name);
  if (stored == nullptr) return NoJob(name);
  if (stored->job.identity.empty() && FindIdenticalLocked(identity) == nullptr) {
    stored->job.identity = std::string(identity);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Job>> FakeQueue::Lease(absl::string_view name, absl::string_view holder,
                                                    absl::Duration duration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!writes_.ok()) return writes_;
  Stored* const stored = FindLocked(name);
  if (stored == nullptr) return NoJob(name);
  const absl::Time now = now_();
  if (!CanLease(stored->job, holder, now)) return std::nullopt;
  stored->job.holder = std::string(holder);
  ++stored->job.epoch;
  stored->job.leased_until = now + duration;
  stored->writes.clear();
  return stored->job;
}

absl::StatusOr<Job> FakeQueue::Change(const Fence& fence, absl::FunctionRef<void(Stored&)> change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!writes_.ok()) return writes_;
  Stored* const stored = FindLocked(fence.job);
  if (stored == nullptr) return NoJob(fence.job);
  if (absl::Status status = CheckHeld(fence, stored->job); !status.ok()) return status;
  change(*stored);
  return stored->job;
}

void FakeQueue::CancelPartsLocked(absl::string_view parent) {
  for (Stored& stored : jobs_) {
    if (stored.job.parent == parent && !stored.job.operation.done()) stored.job.cancelled = true;
  }
}

absl::StatusOr<Job> FakeQueue::Renew(const Fence& fence, absl::Duration duration) {
  return Change(fence, [&](Stored& stored) { stored.job.leased_until = now_() + duration; });
}

std::vector<LeasedJob> FakeQueue::HeldLocked(absl::string_view holder) {
  std::vector<LeasedJob> held;
  for (const auto& [job, problem, writes] : jobs_) {
    if (job.holder.empty() || job.operation.done() || (!holder.empty() && job.holder != holder)) continue;
    held.push_back({job.name, job.holder, job.epoch, job.cancelled});
  }
  std::sort(held.begin(), held.end(), [](const LeasedJob& a, const LeasedJob& b) { return a.name < b.name; });
  return held;
}

absl::StatusOr<std::vector<LeasedJob>> FakeQueue::RenewAll(absl::string_view holder, absl::Duration duration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!renewals_.ok()) return renewals_;
  if (!writes_.ok()) return writes_;
  for (Stored& stored : jobs_) {
    if (stored.job.holder == holder && !stored.job.operation.done()) stored.job.leased_until = now_() + duration;
  }
  return HeldLocked(holder);
}

absl::StatusOr<std::vector<LeasedJob>> FakeQueue::Held() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return HeldLocked("");
}

std::set<std::string> FakeQueue::HomesThere() {
  std::set<std::string> homes;
  if (hosts_ == nullptr) return homes;
  const std::vector<v1::Host> hosts = hosts_->List().value();
  for (const v1::Host& host : hosts) {
    if (host.state() == v1::Host::STATE_LIVE && !host.draining()) homes.insert(HolderOf(host.name()));
  }
  return homes;
}

absl::StatusOr<std::optional<Job>> FakeQueue::Claim(absl::string_view holder, const std::vector<Room>& rooms,
                                                    absl::Duration duration) {
  const std::set<std::string> there = HomesThere();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!writes_.ok()) return writes_;
  const absl::Time now = now_();
  Stored* best = nullptr;
  const auto order = [](const Job& job) {
    return std::make_pair(job.holder.empty(), job.holder.empty() ? job.priority : 0);
  };
  for (Stored& stored : jobs_) {
    const Job& job = stored.job;
    const bool held = !job.holder.empty() && job.leased_until > now;
    if (job.operation.done() || job.device_class.empty() || held) continue;
    if (job.holder.empty() && job.home != holder && there.contains(job.home)) continue;
    const bool room = std::any_of(rooms.begin(), rooms.end(), [&job](const Room& one) {
      return one.device_class == job.device_class && one.priority == job.priority;
    });
    if (room && (best == nullptr || order(job) < order(best->job))) best = &stored;
  }
  if (best == nullptr) return std::nullopt;
  Job& job = best->job;
  if (!job.holder.empty() && job.holder != holder) job.lost_by.push_back(job.holder);
  job.holder = std::string(holder);
  ++job.epoch;
  job.leased_until = now + duration;
  best->writes.clear();
  return job;
}

absl::Status FakeQueue::Update(const Fence& fence, const v1::Operation& operation) {
  if (absl::Status status = CheckUpdate(operation); !status.ok()) return status;
  return Change(fence, [&](Stored& stored) { stored.job.operation = operation; }).status();
}

absl::Status FakeQueue::Finish(const Fence& fence, const v1::Operation& operation) {
  if (absl::Status status = CheckEnd(operation); !status.ok()) return status;
  const absl::StatusOr<Job> now = Get(fence.job);
  if (now.ok() && EndedUnder(fence, *now)) return absl::OkStatus();
  return Change(fence,
                [&](Stored& stored) {
                  stored.job.operation = operation;
                  stored.writes.clear();
                  CancelPartsLocked(fence.job);
                })
      .status();
}

absl::Status FakeQueue::Requeue(const Fence& fence) {
  const absl::StatusOr<Job> now = Get(fence.job);
  if (now.ok() && GivenBackUnder(fence, *now)) return absl::OkStatus();
  return Change(fence,
                [](Stored& stored) {
                  stored.job.holder.clear();
                  stored.writes.clear();
                })
      .status();
}

absl::StatusOr<Job> FakeQueue::Cancel(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!writes_.ok()) return writes_;
  Stored* const stored = FindLocked(name);
  if (stored == nullptr) return NoJob(name);
  if (!stored->job.operation.done()) {
    stored->job.cancelled = true;
    CancelPartsLocked(name);
  }
  return stored->job;
}

absl::StatusOr<Job> FakeQueue::Get(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!gets_.ok()) return gets_;
  const Stored* const stored = FindLocked(name);
  if (stored == nullptr) return NoJob(name);
  return stored->job;
}

absl::StatusOr<std::vector<std::string>> FakeQueue::Leasable(absl::string_view holder) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Time now = now_();
  std::vector<std::string> leasable;
  for (const Stored& stored : jobs_) {
    const bool own = stored.job.home.empty() || stored.job.home == holder;
    if (own && stored.job.device_class.empty() && CanLease(stored.job, holder, now))
      leasable.push_back(stored.job.name);
  }
  return leasable;
}

absl::StatusOr<Page<v1::Operation>> FakeQueue::List(const JobFilter& filter, int page_size,
                                                    absl::string_view page_token) {
  std::vector<Row<v1::Operation>> rows;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = jobs_.size(); i-- > 0;) {
      const v1::Operation& operation = jobs_[i].job.operation;
      if (filter.active_only && operation.done()) continue;
      if (filter.parent != jobs_[i].job.parent) continue;
      if (filter.kind.has_value() && *filter.kind != jobs_[i].job.kind) continue;
      if (!filter.problem_text.empty() && filter.problem_text != jobs_[i].problem) continue;
      rows.push_back({{static_cast<int64_t>(i) + 1}, operation});
    }
  }
  return Cut(std::move(rows), NameOf(filter), page_size, page_token, IsOlder);
}

}  // namespace attune::store
