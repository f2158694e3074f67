#include "server/jobs/operations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/attune/quote.h"
#include "server/base/proto_time.h"
#include "server/base/sha256.h"
#include "server/jobs/job_log.h"

namespace attune::jobs {
namespace {

absl::Status TakenRequestId(const std::string& request_id, const std::string& name) {
  return absl::AlreadyExistsError(absl::StrCat("request_id is ", Quoted(request_id), ", which was given to ", name,
                                               ", another request; give this one an id of its own"));
}

}  // namespace

absl::StatusOr<Operations::Started> Operations::Start(const Wanted& wanted) {
  std::vector<Wanted::Same> all = wanted.elsewhere;
  all.insert(all.begin(), Wanted::Same{wanted.request, wanted.identity});
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string joined;
  if (const auto it = by_request_id_.find(wanted.request_id);
      !wanted.request_id.empty() && it != by_request_id_.end()) {
    const auto is_it = [&](const Wanted::Same& same) { return it->second.identity_hash == Sha256(same.identity); };
    if (std::none_of(all.begin(), all.end(), is_it)) return TakenRequestId(wanted.request_id, it->second.name);
    joined = it->second.name;
  } else {
    for (const Wanted::Same& same : all) {
      const auto in_flight = by_identity_.find(same.identity);
      if (in_flight == by_identity_.end()) continue;
      joined = in_flight->second;
      RememberLocked(wanted.request_id, same.identity, joined);
      break;
    }
  }
  if (!joined.empty()) {
    if (const auto it = in_flight_.find(joined); it != in_flight_.end()) {
      return Started{it->second.live, it->second.live->Snapshot(), false};
    }
    absl::StatusOr<store::Job> job = store_->GetJob(joined);
    if (!job.ok()) return job.status();
    return Started{nullptr, std::move(job->operation), false};
  }

  if (in_flight_.size() >= kMostInFlight) {
    return absl::ResourceExhaustedError(absl::StrCat(in_flight_.size(), " operations are queued or running, the most ",
                                                     "that are taken; cancel some or wait for them"));
  }
  store::Job job;
  job.name = NewNameLocked();
  job.kind = wanted.kind;
  job.request = wanted.request;
  job.request_id = wanted.request_id;
  job.operation.set_name(job.name);
  job.operation.set_state(v1::Operation::STATE_QUEUED);
  job.operation.set_title(wanted.title);
  job.operation.set_problem(wanted.problem_text);
  job.operation.set_request_id(wanted.request_id);
  job.operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_QUEUED);
  SetTimestamp(absl::Now(), job.operation.mutable_create_time());
  absl::StatusOr<store::Job> stored = store_->CreateJob(job);
  if (!stored.ok()) return stored.status();
  // Of an earlier process, or long ago; were it unfinished, it would be in flight.
  if (stored->name != job.name) {
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const Wanted::Same& other) { return other.request == stored->request; });
    if (stored->kind != wanted.kind || same == all.end()) return TakenRequestId(wanted.request_id, stored->name);
    RememberLocked(wanted.request_id, same->identity, stored->name);
    return Started{nullptr, std::move(stored->operation), false};
  }
  RememberLocked(wanted.request_id, wanted.identity, job.name);
  std::shared_ptr<LiveOperation> live = InsertLocked(stored->operation, wanted.identity);
  LogJob("job queued", stored->operation);
  return Started{live, live->Snapshot(), true};
}

std::shared_ptr<LiveOperation> Operations::Adopt(const store::Job& job, const std::string& identity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  v1::Operation operation = job.operation;
  operation.set_state(v1::Operation::STATE_QUEUED);
  operation.mutable_progress()->Clear();
  operation.mutable_progress()->set_phase(v1::OperationProgress::PHASE_QUEUED);
  operation.mutable_progress()->set_message("resumed after a restart");
  RememberLocked(job.request_id, identity, job.name);
  LogJob("job resumed", operation);
  return InsertLocked(operation, identity);
}

void Operations::RememberLocked(const std::string& request_id, const std::string& identity, const std::string& name) {
  if (request_id.empty()) return;
  const bool fresh = by_request_id_.insert_or_assign(request_id, Requested{Sha256(identity), name}).second;
  if (fresh) request_ids_.push_back(request_id);
  if (request_ids_.size() <= kMostRequestIds) return;
  by_request_id_.erase(request_ids_.front());
  request_ids_.pop_front();
}

std::shared_ptr<LiveOperation> Operations::InsertLocked(const v1::Operation& operation, const std::string& identity) {
  auto live = std::make_shared<LiveOperation>(
      operation, [this] { watchers_.Changed(); }, clock_);
  in_flight_[operation.name()] = {live, identity};
  by_identity_[identity] = operation.name();
  return live;
}

// Names sort by the time of their start.
std::string Operations::NewNameLocked() {
  last_name_ = std::max(last_name_ + 1, static_cast<uint64_t>(absl::ToUnixMicros(absl::Now())));
  return absl::StrFormat("operations/%016x", last_name_);
}

absl::StatusOr<v1::Operation> Operations::Get(absl::string_view name) {
  if (const std::shared_ptr<LiveOperation> live = Find(name); live != nullptr) return live->Snapshot();
  absl::StatusOr<store::Job> job = store_->GetJob(name);
  if (!job.ok()) return job.status();
  return std::move(job->operation);
}

std::shared_ptr<LiveOperation> Operations::Find(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = in_flight_.find(name);
  return it == in_flight_.end() ? nullptr : it->second.live;
}

std::vector<std::shared_ptr<LiveOperation>> Operations::InFlight() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<LiveOperation>> all;
  all.reserve(in_flight_.size());
  for (const auto& [name, entry] : in_flight_) all.push_back(entry.live);
  return all;
}

absl::StatusOr<std::function<void()>> Operations::Watch(absl::string_view name, Watchers::Watcher watcher) {
  std::shared_ptr<LiveOperation> live = Find(name);
  if (live == nullptr) {
    absl::StatusOr<store::Job> job = store_->GetJob(name);
    if (!job.ok()) return job.status();
    live = std::make_shared<LiveOperation>(std::move(job->operation), [] {});
  }
  return watchers_.Add(live, std::move(watcher));
}

absl::Status Operations::Save(const LiveOperation& live) { return store_->UpdateJob(live.name(), live.Snapshot()); }

void Operations::Finish(const std::shared_ptr<LiveOperation>& live, v1::Operation::State state,
                        const absl::Status& error, const std::function<void(v1::Operation&)>& fill) {
  v1::Operation last = live->Snapshot();
  last.set_state(state);
  last.set_done(true);
  last.mutable_progress()->clear_eta();
  SetTimestamp(absl::Now(), last.mutable_end_time());
  if (error.ok()) {
    if (state == v1::Operation::STATE_SUCCEEDED) {
      last.mutable_progress()->set_phase(v1::OperationProgress::PHASE_DONE);
      last.mutable_progress()->set_message("done");
    }
    fill(last);
  } else {
    last.mutable_error()->set_code(static_cast<int>(error.code()));
    last.mutable_error()->set_message(ErrorLine(error.message()));
    last.mutable_progress()->set_message(last.error().message());
  }
  if (absl::Status stored = store_->UpdateJob(live->name(), last); !stored.ok()) {
    // The stored job stays unfinished and is resumed at the next start; who watches now must hear why.
    last.set_state(v1::Operation::STATE_FAILED);
    last.clear_response();
    last.mutable_error()->set_code(static_cast<int>(stored.code()));
    last.mutable_error()->set_message(ErrorLine(absl::StrCat("storing the result: ", stored.message())));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = in_flight_.find(live->name()); it != in_flight_.end()) {
      if (const auto same = by_identity_.find(it->second.identity);
          same != by_identity_.end() && same->second == live->name()) {
        by_identity_.erase(same);
      }
      in_flight_.erase(it);
    }
  }
  LogJobEnd(last);
  live->Update([&](v1::Operation& operation) { operation = last; });
}

}  // namespace attune::jobs
