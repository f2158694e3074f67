#include "server/trials/recorder.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial_log.h"

namespace attune::trials {
namespace {

constexpr size_t kMostWaiting = 64;

absl::Status StoringFailed(const absl::Status& status) {
  if (store::IsStale(status)) return status;
  return absl::Status(status.code(), absl::StrCat("storing a trial: ", status.message()));
}

}  // namespace

Recorder::Recorder(store::Store* store, const Job& job, Recorded recorded)
    : store_(store), job_(job), recorded_(std::move(recorded)), thread_([this] { Run(); }) {}

Recorder::~Recorder() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Recorder::Add(size_t candidate, v1::Trial trial, std::optional<size_t> duplicate, TrialClaims::Claim claim) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return entries_.size() < kMostWaiting || !status_.ok(); });
  if (!status_.ok()) return;
  entries_.push_back({candidate, std::move(trial), duplicate, std::move(claim)});
  changed_.notify_all();
}

absl::Status Recorder::Flush() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return entries_.empty() && !writing_; });
  return status_;
}

absl::Status Recorder::status() {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

void Recorder::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !entries_.empty(); });
    if (entries_.empty()) return;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    writing_ = true;
    lock.unlock();
    if (entry.duplicate.has_value()) entry.trial.set_identical_to(names_[*entry.duplicate]);
    absl::StatusOr<std::string> name =
        WriteFor(job_, [&](const store::JobWrite& write) { return store_->AppendTrial(entry.trial, write); });
    if (name.ok()) {
      names_[entry.candidate] = *name;
      entry.trial.set_name(*std::move(name));
      LogTrial(entry.trial);
      recorded_(entry.candidate, entry.trial);
    }
    lock.lock();
    writing_ = false;
    if (!name.ok()) {
      status_ = StoringFailed(name.status());
      entries_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace attune::trials
