// Problems to plans. Calls look here and never wait; one thread asks, loads and looks for what has changed. Private to
// client/cpp/launch.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_KERNEL_CACHE_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_KERNEL_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/code.h"
#include "client/cpp/launch/plan.h"
#include "client/cpp/launch/ranges.h"

namespace attune::launch {

struct KernelCacheOptions {
  // Between looks at whether the server's answers to what was launched since the last look are still the same.
  absl::Duration revalidate = absl::Seconds(20);
  // Before a problem that there was no answer to is asked for again; twice as long each time, up to eight times that.
  absl::Duration hold = absl::Seconds(30);
};

// Thread-safe. Ends its thread when destroyed, after the call that it is making.
class KernelCache {
 public:
  // What is known of a problem. Calls keep it and look at it again and again.
  class Entry {
   public:
    explicit Entry(const Problem& problem);
    const Problem& problem() const { return problem_; }
    // The plan; without one Unavailable, with the reason.
    absl::StatusOr<PlanPtr> Get();
    // No longer looked after: it is to be found anew.
    bool is_dropped() const { return dropped_.load(std::memory_order_relaxed); }

   private:
    friend class KernelCache;
    const Problem problem_;
    std::atomic<bool> used_{false};  // since the last look
    std::atomic<bool> dropped_{false};
    std::mutex mutex_;  // guards plan_, why_ and due_
    PlanPtr plan_;
    absl::Status why_;                       // Unavailable
    absl::Time due_ = absl::InfinitePast();  // when to ask again for what has no plan
    // Guarded by the cache's mutex.
    bool asked_ = false;   // the thread has it to ask, or asks it
    bool pinned_ = false;  // given, not asked for
    // Whose answer's ranges this problem is in: there was no need to ask for it, and it changes with the source.
    std::shared_ptr<Entry> source_;
    int64_t last_used_ = 0;
    absl::Duration wait_;  // before it is asked for again, when there is no answer
  };
  using EntryPtr = std::shared_ptr<Entry>;

  KernelCache(std::unique_ptr<Answers> answers, std::shared_ptr<Code> code, KernelCacheOptions options);
  ~KernelCache();

  // Never waits for an answer: asks for what is not known, and what no known answer holds for.
  EntryPtr Find(const Problem& problem);
  // Asks for it, if there is no plan, none in the ranges of a known answer, and it is due.
  void AskIfDue(const EntryPtr& entry);
  // Uses `answer` for its problem from now on, whatever the server says. The errors of Code::PlanOf.
  absl::Status Pin(AnswerPtr answer);
  // Looks for changes in everything, soon.
  void Refresh();
  // Until nothing is being asked; false when that took longer.
  bool Wait(absl::Duration timeout);
  // The same for `entries` alone.
  bool WaitFor(absl::Span<const EntryPtr> entries, absl::Duration timeout);

 private:
  void Run(const std::stop_token& stop);
  EntryPtr NextToCheck(std::unique_lock<std::mutex>& lock);
  EntryPtr FindLocked(const Problem& problem);
  void QueueLocked(const EntryPtr& entry, absl::Time when);
  void MakeRoomLocked();
  void StartLookLocked(bool all);
  bool WaitUntil(absl::FunctionRef<bool()> is_so, absl::Duration timeout);
  // Makes `entry`'s plan from the answer of `source`, whose ranges it is in; false when that is no more, or fails.
  bool Derive(const EntryPtr& entry, const EntryPtr& source);
  static void Drop(const EntryPtr& entry);
  // Forgets the ranges of each source that `is_gone`, and drops what was derived from it.
  void RemoveRangesLocked(absl::FunctionRef<bool(const EntryPtr&)> is_gone);
  // Drops what was derived from it, and remembers the ranges of its answer now; null: none.
  void ReplaceRangesLocked(const EntryPtr& source, const PlanPtr& plan);
  void Answer(const EntryPtr& entry);
  void Check(const EntryPtr& entry);
  // The plan of the server's answer, `known` when it is that one still.
  absl::StatusOr<PlanPtr> Ask(const Problem& problem, const PlanPtr& known);
  absl::StatusOr<PlanPtr> Load(const AnswerPtr& answer, const Problem& problem);
  void Settle(const EntryPtr& entry, PlanPtr plan);
  void SettleWithout(const EntryPtr& entry, const absl::Status& why);
  void SettledLocked(const EntryPtr& entry);

  const std::unique_ptr<Answers> answers_;
  const std::shared_ptr<Code> code_;
  const KernelCacheOptions options_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  absl::flat_hash_map<std::string, EntryPtr> entries_;  // by the problem's text
  Ranges<EntryPtr> ranges_;
  std::multimap<absl::Time, EntryPtr> questions_;  // by when to ask
  std::deque<EntryPtr> checks_;
  absl::Time look_at_;
  int64_t looks_ = 0;
  int being_asked_ = 0;  // entries whose asked_ is set
  bool checking_ = false;
  std::jthread thread_;  // last: it uses all the others
};

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_KERNEL_CACHE_H_
