#include "server/store/testing/lease_explorer.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::store {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr int64_t kLeaseTicks = 2;
constexpr std::array<absl::string_view, 2> kHosts = {"one", "two"};

enum class Act { kLease, kRenew, kUpdate, kWrite, kFinish, kRequeue, kCrash, kCancel, kTick };

// `late`: by what the host's former process still believes.
struct Step {
  Act act = Act::kTick;
  size_t host = 0;
  bool late = false;
};

std::string TextOf(const Step& step) {
  if (step.act == Act::kTick) return "time passes";
  if (step.act == Act::kCancel) return "cancel";
  constexpr std::array<absl::string_view, 7> kWords = {"leases",      "renews",      "updates", "writes",
                                                       "finishes it", "requeues it", "crashes"};
  return absl::StrCat(kHosts[step.host], step.late ? " (late) " : " ", kWords[static_cast<size_t>(step.act)]);
}

// What a host believes.
struct Host {
  int64_t epoch = 0;       // of its process's lease; 0: it has none
  int64_t until = 0;       // as it was last told
  int64_t late_epoch = 0;  // of the process that crashed last
};

// What the queue promises, in the fewest words.
struct Model {
  int64_t now = 0;
  int64_t epoch = 0;
  std::optional<size_t> holder;
  int64_t until = 0;
  bool cancelled = false;
  bool ended = false;
  std::string message;
  std::set<int64_t> written;  // epochs under which the one write was made

  bool Leasable(size_t host) const { return !ended && (!holder.has_value() || *holder == host || until <= now); }
  bool Holds(int64_t fence) const { return !ended && holder.has_value() && fence == epoch; }
};

std::string StateOf(const Model& model, const std::array<Host, 2>& hosts) {
  const auto left = [&](int64_t until) { return std::clamp<int64_t>(until - model.now, 0, kLeaseTicks); };
  std::string state =
      absl::StrCat(model.epoch, " ", model.holder.has_value() ? *model.holder + 1 : 0, " ", left(model.until), " ",
                   model.cancelled, model.ended, " ", model.message, " ", absl::StrJoin(model.written, ","));
  for (const Host& host : hosts) absl::StrAppend(&state, " ", host.epoch, ":", left(host.until), ":", host.late_epoch);
  return state;
}

// One order of steps, taken in the queue and in the model.
class Run {
 public:
  explicit Run(std::unique_ptr<ExploredQueue> subject)
      : subject_(std::move(subject)), name_(subject_->name()), start_(subject_->now()) {
    Job job;
    job.name = name_;
    job.operation.set_name(name_);
    const absl::StatusOr<Job> made = subject_->queue().Create(job, {});
    Require(made.ok(), made.status().message());
  }

  std::vector<Step> Possible(const ExploreLimits& limits) const {
    std::vector<Step> steps = {{Act::kTick}};
    if (!model_.cancelled) steps.push_back({Act::kCancel});
    for (size_t host = 0; host < kHosts.size(); ++host) {
      if (model_.epoch < limits.most_epochs) steps.push_back({Act::kLease, host});
      if (hosts_[host].epoch > 0) steps.push_back({Act::kCrash, host});
      for (const bool late : {false, true}) {
        if (FenceOf(host, late) == 0) continue;
        for (const Act act : {Act::kRenew, Act::kUpdate, Act::kWrite, Act::kFinish, Act::kRequeue}) {
          if (act != Act::kWrite || limits.writes) steps.push_back({act, host, late});
        }
      }
    }
    return steps;
  }

  void Take(const Step& step) {
    taken_.push_back(step);
    Do(step);
  }

  // After the last step; those before it were the last of shorter orders.
  void Check() {
    CheckStored();
    CheckOneHolder();
  }

  // With the steps that lead to it.
  std::string Violation() const {
    if (violation_.empty()) return "";
    std::vector<std::string> steps;
    for (const Step& step : taken_) steps.push_back(TextOf(step));
    return absl::StrCat(absl::StrJoin(steps, "; "), ": ", violation_);
  }

  std::string State() const { return StateOf(model_, hosts_); }

 private:
  int64_t FenceOf(size_t host, bool late) const { return late ? hosts_[host].late_epoch : hosts_[host].epoch; }

  void Require(bool holds, absl::string_view otherwise) {
    if (!holds && violation_.empty()) violation_ = std::string(otherwise);
  }

  // Whether the answer to a write under the fence is right: it must be taken, or refused as stale.
  void RequireAnswer(const absl::Status& answer, bool taken) {
    if (taken && !answer.ok()) Require(false, absl::StrCat("refused: ", answer.ToString()));
    if (!taken && answer.ok()) Require(false, "taken from one who does not hold it");
    if (!taken && !answer.ok()) Require(IsStale(answer), answer.message());
  }

  void Do(const Step& step) {
    Host& host = hosts_[step.host];
    const int64_t fence = FenceOf(step.host, step.late);
    switch (step.act) {
      case Act::kTick:
        subject_->Advance(kTick);
        ++model_.now;
        return;
      case Act::kCancel:
        return Cancel();
      case Act::kLease:
        return Lease(step.host);
      case Act::kCrash:
        host = {.late_epoch = host.epoch};
        return;
      case Act::kRenew:
        return Renew(step, fence);
      case Act::kUpdate:
        return Update(fence);
      case Act::kWrite:
        return Write(fence);
      case Act::kFinish:
        return Finish(fence);
      case Act::kRequeue:
        return Requeue(step, fence);
    }
  }

  void Cancel() {
    const absl::Status answer = subject_->queue().Cancel(name_).status();
    Require(answer.ok(), answer.message());
    if (!model_.ended) model_.cancelled = true;
  }

  void Lease(size_t host) {
    const absl::StatusOr<std::optional<Job>> leased = subject_->queue().Lease(name_, kHosts[host], kLeaseTicks * kTick);
    if (!leased.ok()) return Require(false, leased.status().ToString());
    Require(leased->has_value() == model_.Leasable(host), leased->has_value()
                                                              ? "leased although another holds it, or it has ended"
                                                              : "not leased although it is free");
    if (!leased->has_value()) return;
    Require((*leased)->epoch > model_.epoch, "the epoch is not greater than the last");
    model_.epoch = (*leased)->epoch;
    model_.holder = host;
    model_.until = model_.now + kLeaseTicks;
    hosts_[host].epoch = model_.epoch;
    hosts_[host].until = model_.until;
  }

  void Renew(const Step& step, int64_t fence) {
    const absl::StatusOr<Job> answer = subject_->queue().Renew({name_, fence}, kLeaseTicks * kTick);
    RequireAnswer(answer.status(), model_.Holds(fence));
    if (!answer.ok()) return;
    Require(answer->cancelled == model_.cancelled, "the holder is not told the truth about the cancellation");
    model_.until = model_.now + kLeaseTicks;
    if (!step.late) hosts_[step.host].until = model_.until;
  }

  v1::Operation Operation(absl::string_view message) const {
    v1::Operation operation;
    operation.set_name(name_);
    operation.mutable_progress()->set_message(std::string(message));
    return operation;
  }

  void Update(int64_t fence) {
    const std::string message = absl::StrCat("under ", fence);
    RequireAnswer(subject_->queue().Update({name_, fence}, Operation(message)), model_.Holds(fence));
    if (model_.Holds(fence)) model_.message = message;
  }

  void Write(int64_t fence) {
    bool made = false;
    RequireAnswer(subject_->Write({{name_, fence}, 1}, [&] { made = true; }), model_.Holds(fence));
    const bool first = model_.Holds(fence) && !model_.written.contains(fence);
    Require(made == first, made ? "a write was made again, or for one who does not hold it" : "a write was lost");
    if (first) model_.written.insert(fence);
  }

  void Finish(int64_t fence) {
    const std::string message = absl::StrCat("ended under ", fence);
    v1::Operation operation = Operation(message);
    operation.set_done(true);
    const bool again = model_.ended && model_.holder.has_value() && fence == model_.epoch;
    RequireAnswer(subject_->queue().Finish({name_, fence}, operation), model_.Holds(fence) || again);
    if (!model_.Holds(fence)) return;
    model_.ended = true;
    model_.message = message;
  }

  void Requeue(const Step& step, int64_t fence) {
    const bool again = !model_.ended && !model_.holder.has_value() && fence == model_.epoch;
    RequireAnswer(subject_->queue().Requeue({name_, fence}), model_.Holds(fence) || again);
    if (model_.Holds(fence)) model_.holder.reset();
    if (!step.late) hosts_[step.host].until = model_.now;
  }

  // All that the queue shows of the job is the model's. So orders that lead to one state of the model need not be
  // followed further than one of them.
  void CheckStored() {
    const absl::StatusOr<Job> job = subject_->queue().Get(name_);
    if (!job.ok()) return Require(false, job.status().ToString());
    Require(job->operation.done() == model_.ended, "it has ended, or has not, against what was said");
    Require(job->operation.progress().message() == model_.message, "it does not say what was last written");
    Require(job->holder == (model_.holder.has_value() ? kHosts[*model_.holder] : ""), "its holder is another");
    Require(job->epoch == model_.epoch, "its epoch is another");
    Require(job->leased_until == (model_.epoch == 0 ? absl::InfinitePast() : start_ + model_.until * kTick),
            "its lease ends at another time");
    Require(job->cancelled == model_.cancelled, "its cancellation was lost, or invented");
  }

  // Of the hosts that go by their leases alone, and write nothing that is refused.
  void CheckOneHolder() {
    if (model_.ended) return;
    const auto believes = [this](const Host& host) { return host.epoch > 0 && model_.now < host.until; };
    Require(!believes(hosts_[0]) || !believes(hosts_[1]), "two hosts hold it at once");
  }

  const std::unique_ptr<ExploredQueue> subject_;
  const std::string name_;
  const absl::Time start_;
  Model model_;
  std::array<Host, 2> hosts_;
  std::vector<Step> taken_;
  std::string violation_;
};

}  // namespace

Exploration Explore(const std::function<std::unique_ptr<ExploredQueue>()>& fresh, const ExploreLimits& limits) {
  Exploration result;
  result.complete = true;
  std::set<std::string> seen = {Run(fresh()).State()};
  std::deque<std::vector<Step>> unexplored = {{}};
  const auto replay = [&](const std::vector<Step>& steps) {
    auto run = std::make_unique<Run>(fresh());
    for (const Step& step : steps) run->Take(step);
    run->Check();
    return run;
  };
  while (!unexplored.empty()) {
    const std::vector<Step> steps = std::move(unexplored.front());
    unexplored.pop_front();
    if (steps.size() == limits.most_steps) {
      result.complete = false;
      continue;
    }
    for (const Step& step : replay(steps)->Possible(limits)) {
      std::vector<Step> longer = steps;
      longer.push_back(step);
      const std::unique_ptr<Run> run = replay(longer);
      ++result.transitions;
      if (result.violation = run->Violation(); !result.violation.empty()) {
        result.states = seen.size();
        return result;
      }
      if (seen.insert(run->State()).second) unexplored.push_back(std::move(longer));
    }
  }
  result.states = seen.size();
  return result;
}

}  // namespace attune::store
