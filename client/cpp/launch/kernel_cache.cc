#include "client/cpp/launch/kernel_cache.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/answer_at.h"
#include "client/cpp/status.h"

namespace attune::launch {
namespace {

constexpr size_t kMostEntries = 16384;
constexpr size_t kMostQuestions = 4096;                    // at once; further shapes are asked for by later calls
constexpr int kLongestHold = 8;                            // times options.hold
constexpr absl::Duration kCompiling = absl::Seconds(1);    // before code that is being compiled is asked for again
constexpr absl::Duration kUnreachable = absl::Seconds(5);  // before a server that nobody could reach is asked again
constexpr absl::Duration kLongestWait = absl::Hours(24);   // that std::chrono can add to any time

// Code that the server compiles.
bool IsCompiling(const absl::Status& status) { return absl::IsAborted(status); }

bool IsSame(const v1::GetBestResponse& a, const v1::GetBestResponse& b) {
  return a.artifact_sha256() == b.artifact_sha256() && a.variant().text() == b.variant().text() &&
         a.recipe().SerializeAsString() == b.recipe().SerializeAsString() &&
         std::equal(
             a.domains().begin(), a.domains().end(), b.domains().begin(), b.domains().end(),
             [](const v1::Domain& x, const v1::Domain& y) { return x.SerializeAsString() == y.SerializeAsString(); });
}

absl::Status Unavailable(const Problem& problem, const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("no kernel for ", ToText(problem), " yet: ", why.message()));
}

}  // namespace

KernelCache::Entry::Entry(const Problem& problem)
    : problem_(problem), why_(Unavailable(problem, absl::UnavailableError("it was just asked for"))) {}

absl::StatusOr<PlanPtr> KernelCache::Entry::Get() {
  const std::lock_guard lock(mutex_);
  if (plan_ == nullptr) return why_;
  if (!used_.load(std::memory_order_relaxed)) used_.store(true, std::memory_order_relaxed);
  return plan_;
}

KernelCache::KernelCache(std::unique_ptr<Answers> answers, std::shared_ptr<Code> code, KernelCacheOptions options)
    : answers_(std::move(answers)),
      code_(std::move(code)),
      options_(options),
      look_at_(absl::Now() + options.revalidate),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

KernelCache::~KernelCache() {
  thread_.request_stop();
  thread_.join();
}

KernelCache::EntryPtr KernelCache::Find(const Problem& problem) {
  EntryPtr entry;
  {
    const std::lock_guard lock(mutex_);
    entry = FindLocked(problem);
  }
  AskIfDue(entry);
  return entry;
}

bool KernelCache::Derive(const EntryPtr& entry, const EntryPtr& source) {
  PlanPtr of_source;
  {
    const std::lock_guard lock(source->mutex_);
    of_source = source->plan_;
  }
  if (of_source == nullptr) return false;
  const absl::StatusOr<AnswerPtr> answer = AnswerAt(of_source->answer(), source->problem(), entry->problem());
  if (!answer.ok()) return false;
  absl::StatusOr<PlanPtr> plan = Load(*answer, entry->problem());
  if (!plan.ok()) return false;
  const std::lock_guard lock(mutex_);
  if (entry->is_dropped() || ranges_.Find(entry->problem()) != source) return false;  // replaced meanwhile
  const std::lock_guard source_lock(source->mutex_);
  if (source->plan_ != of_source) return false;
  const std::lock_guard entry_lock(entry->mutex_);
  if (entry->plan_ != nullptr) return false;
  entry->source_ = source;
  entry->plan_ = *std::move(plan);
  return true;
}

void KernelCache::RemoveRangesLocked(absl::FunctionRef<bool(const EntryPtr&)> is_gone) {
  if (!ranges_.Remove(is_gone)) return;
  absl::erase_if(entries_, [&](const auto& known) {
    const EntryPtr& entry = known.second;
    if (entry->source_ == nullptr || !is_gone(entry->source_)) return false;
    Drop(entry);
    return true;
  });
}

void KernelCache::Drop(const EntryPtr& entry) {
  entry->dropped_ = true;
  const std::lock_guard lock(entry->mutex_);
  entry->plan_ = nullptr;
}

void KernelCache::ReplaceRangesLocked(const EntryPtr& source, const PlanPtr& plan) {
  RemoveRangesLocked([&](const EntryPtr& known) { return known == source; });
  if (plan != nullptr) ranges_.Add(plan->answer(), source->problem(), source);
}

KernelCache::EntryPtr KernelCache::FindLocked(const Problem& problem) {
  std::string text = ToText(problem);
  if (const auto it = entries_.find(text); it != entries_.end()) return it->second;
  if (entries_.size() >= kMostEntries) MakeRoomLocked();
  auto entry = std::make_shared<Entry>(problem);
  entry->last_used_ = looks_;
  entries_.emplace(std::move(text), entry);
  return entry;
}

void KernelCache::AskIfDue(const EntryPtr& entry) {
  const absl::Time now = absl::Now();
  bool is_due = false;
  {
    const std::lock_guard lock(entry->mutex_);
    if (entry->plan_ != nullptr) return;
    is_due = now >= entry->due_;
  }
  EntryPtr source;
  {
    const std::lock_guard lock(mutex_);
    if (!entry->asked_ && !entry->is_dropped()) source = ranges_.Find(entry->problem());
  }
  if (source != nullptr && Derive(entry, source)) return;
  if (!is_due) return;
  const std::lock_guard lock(mutex_);
  if (entry->asked_ || entry->pinned_ || entry->is_dropped() || questions_.size() >= kMostQuestions) return;
  {
    const std::lock_guard entry_lock(entry->mutex_);
    if (entry->plan_ != nullptr) return;  // answered meanwhile
  }
  QueueLocked(entry, now);
}

void KernelCache::QueueLocked(const EntryPtr& entry, absl::Time when) {
  if (!entry->asked_) {
    entry->asked_ = true;
    ++being_asked_;
  }
  questions_.emplace(when, entry);
  changed_.notify_all();
}

// Drops the quarter that was not launched for longest.
void KernelCache::MakeRoomLocked() {
  std::vector<EntryPtr> idle;
  for (const auto& [text, entry] : entries_) {
    if (entry->used_.exchange(false)) entry->last_used_ = looks_;
    if (!entry->asked_ && !entry->pinned_) idle.push_back(entry);
  }
  const size_t count = std::min(idle.size(), kMostEntries / 4);
  std::nth_element(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(count), idle.end(),
                   [](const EntryPtr& a, const EntryPtr& b) { return a->last_used_ < b->last_used_; });
  for (size_t i = 0; i < count; ++i) {
    Drop(idle[i]);
    entries_.erase(ToText(idle[i]->problem()));
  }
  RemoveRangesLocked([](const EntryPtr& source) { return source->is_dropped(); });
}

absl::Status KernelCache::Pin(AnswerPtr answer) {
  const absl::StatusOr<Problem> problem = FromProto(answer->problem());
  if (!problem.ok()) return problem.status();
  absl::StatusOr<PlanPtr> plan = Load(answer, *problem);
  if (!plan.ok()) return plan.status();
  const std::lock_guard lock(mutex_);
  const EntryPtr entry = FindLocked(*problem);
  entry->pinned_ = true;
  entry->source_ = nullptr;
  {
    const std::lock_guard entry_lock(entry->mutex_);
    entry->plan_ = *plan;
  }
  ReplaceRangesLocked(entry, *plan);
  return absl::OkStatus();
}

void KernelCache::Refresh() {
  const std::lock_guard lock(mutex_);
  StartLookLocked(/*all=*/true);
  changed_.notify_all();
}

bool KernelCache::Wait(absl::Duration timeout) {
  return WaitUntil([this] { return being_asked_ == 0 && checks_.empty() && !checking_; }, timeout);
}

bool KernelCache::WaitFor(absl::Span<const EntryPtr> entries, absl::Duration timeout) {
  const auto is_asked = [](const EntryPtr& entry) { return entry->asked_; };
  return WaitUntil([&] { return std::none_of(entries.begin(), entries.end(), is_asked); }, timeout);
}

bool KernelCache::WaitUntil(absl::FunctionRef<bool()> is_so, absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  for (; timeout > kLongestWait; timeout -= kLongestWait) {
    if (changed_.wait_for(lock, absl::ToChronoNanoseconds(kLongestWait), is_so)) return true;
  }
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), is_so);
}

void KernelCache::StartLookLocked(bool all) {
  ++looks_;
  look_at_ = absl::Now() + options_.revalidate;
  checks_.clear();
  for (const auto& [text, entry] : entries_) {
    if (entry->source_ == nullptr || !entry->used_.exchange(false)) continue;
    entry->last_used_ = looks_;
    entry->source_->used_ = true;
  }
  for (const auto& [text, entry] : entries_) {
    if (entry->source_ != nullptr) continue;
    const bool used = entry->used_.exchange(false);
    if (used) entry->last_used_ = looks_;
    if (entry->pinned_ || entry->asked_) continue;
    const std::lock_guard lock(entry->mutex_);
    if (entry->plan_ == nullptr && all) entry->due_ = absl::InfinitePast();
    if (entry->plan_ != nullptr && (used || all)) checks_.push_back(entry);
  }
}

void KernelCache::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const absl::Time now = absl::Now();
    if (now >= look_at_ && checks_.empty()) StartLookLocked(/*all=*/false);
    // Questions and checks take turns.
    bool worked = false;
    if (!questions_.empty() && questions_.begin()->first <= now) {
      const EntryPtr entry = questions_.begin()->second;
      questions_.erase(questions_.begin());
      if (entry->pinned_) {
        SettledLocked(entry);
        continue;
      }
      lock.unlock();
      Answer(entry);
      lock.lock();
      worked = true;
    }
    if (!checks_.empty() && !stop.stop_requested()) {
      const EntryPtr entry = checks_.front();
      checks_.pop_front();
      checking_ = true;
      lock.unlock();
      Check(entry);
      lock.lock();
      checking_ = false;
      changed_.notify_all();
      worked = true;
    }
    if (worked) continue;
    const absl::Time next = questions_.empty() ? look_at_ : std::min(look_at_, questions_.begin()->first);
    const absl::Duration wait = std::clamp(next - now, absl::Milliseconds(1), kLongestWait);
    const size_t known = questions_.size();
    changed_.wait_for(lock, stop, absl::ToChronoNanoseconds(wait),
                      [&] { return questions_.size() != known || !checks_.empty(); });
  }
}

void KernelCache::Answer(const EntryPtr& entry) {
  absl::StatusOr<PlanPtr> plan = Ask(entry->problem(), nullptr);
  if (!plan.ok() && IsUnreachable(plan.status())) {
    const absl::StatusOr<AnswerPtr> kept = answers_->Kept(entry->problem());
    if (kept.ok()) {
      plan = Load(*kept, entry->problem());
    } else {
      plan = absl::Status(plan.status().code(), absl::StrCat(plan.status().message(), "; ", kept.status().message()));
    }
  }
  if (plan.ok()) {
    Settle(entry, *std::move(plan));
  } else {
    SettleWithout(entry, plan.status());
  }
}

void KernelCache::Check(const EntryPtr& entry) {
  PlanPtr known;
  {
    const std::lock_guard lock(entry->mutex_);
    known = entry->plan_;
  }
  if (known == nullptr) return;
  absl::StatusOr<PlanPtr> plan = Ask(entry->problem(), known);
  if (plan.ok()) {
    if (*plan != known) Settle(entry, *std::move(plan));
  } else if (absl::IsNotFound(plan.status()) || absl::IsFailedPrecondition(plan.status())) {
    SettleWithout(entry, plan.status());  // it is served no longer
  }
  // Otherwise the server could not say that it is another one.
}

absl::StatusOr<PlanPtr> KernelCache::Ask(const Problem& problem, const PlanPtr& known) {
  absl::StatusOr<AnswerPtr> answer = answers_->Ask(problem, /*without_code=*/true);
  if (!answer.ok()) return answer.status();
  if (known != nullptr && IsSame(**answer, known->answer())) return known;
  if ((*answer)->artifact_state() == v1::ARTIFACT_STATE_COMPILING) {
    return absl::AbortedError("the server is compiling its code");
  }
  if (!code_->Has((*answer)->artifact_sha256())) {
    answer = answers_->Ask(problem, /*without_code=*/false);
    if (!answer.ok()) return answer.status();
  }
  return Load(*answer, problem);
}

absl::StatusOr<PlanPtr> KernelCache::Load(const AnswerPtr& answer, const Problem& problem) {
  if (answer->artifact_sha256().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the answer has no code", answer->artifact_reason().empty() ? "" : ": ", answer->artifact_reason()));
  }
  return code_->PlanOf(answer, problem);
}

void KernelCache::Settle(const EntryPtr& entry, PlanPtr plan) {
  const std::lock_guard lock(mutex_);
  entry->wait_ = absl::ZeroDuration();
  if (!entry->pinned_ && !entry->is_dropped()) {
    {
      const std::lock_guard entry_lock(entry->mutex_);
      entry->plan_ = plan;
    }
    entry->source_ = nullptr;
    ReplaceRangesLocked(entry, plan);
  }
  SettledLocked(entry);
}

void KernelCache::SettleWithout(const EntryPtr& entry, const absl::Status& why) {
  const absl::Time now = absl::Now();
  const std::lock_guard lock(mutex_);
  if (entry->pinned_) {
    SettledLocked(entry);
    return;
  }
  const bool compiling = IsCompiling(why);
  const absl::Duration first = compiling ? kCompiling : IsUnreachable(why) ? kUnreachable : options_.hold;
  const absl::Duration longest = compiling || IsUnreachable(why) ? options_.hold : kLongestHold * options_.hold;
  entry->wait_ = std::min(entry->wait_ < first ? first : 2 * entry->wait_, std::max(first, longest));
  {
    const std::lock_guard entry_lock(entry->mutex_);
    entry->plan_ = nullptr;
    entry->why_ = Unavailable(entry->problem(), why);
    entry->due_ = now + entry->wait_;
  }
  ReplaceRangesLocked(entry, nullptr);
  if (compiling) {  // goes on being asked
    QueueLocked(entry, now + entry->wait_);
    return;
  }
  SettledLocked(entry);
}

void KernelCache::SettledLocked(const EntryPtr& entry) {
  if (entry->asked_) --being_asked_;
  entry->asked_ = false;
  changed_.notify_all();
}

}  // namespace attune::launch
