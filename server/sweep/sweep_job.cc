#include "server/sweep/sweep_job.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/attune/device_list.h"
#include "proto/attune/expand_plan.h"
#include "proto/attune/problem.h"
#include "server/base/proto_time.h"
#include "server/jobs/parts.h"
#include "server/promotion/energy.h"
#include "server/sweep/card_class.h"
#include "server/sweep/shares.h"
#include "server/sweep/sweep_plan.h"
#include "server/sweep/sweep_problem_job.h"
#include "server/sweep/sweep_progress.h"
#include "server/sweep/sweep_report.h"
#include "server/trials/store_wait.h"
#include "server/trials/tuning_key.h"

namespace attune::sweep {
namespace {

using Row = v1::SweepReport::Row;

absl::Duration TotalTime(const v1::SweepPlan& plan) {
  return plan.budget().has_total_time() ? DurationOf(plan.budget().total_time()) : absl::InfiniteDuration();
}

// A sweep that runs. Its problems are numbered: all of the first class in the plan's order, then those of the next.
class SweepRun {
 public:
  SweepRun(const v1::SweepPlan& plan, std::vector<Problem> problems, const SweepMeans& means, const jobs::JobRun& run)
      : plan_(plan),
        problems_(std::move(problems)),
        means_(means),
        run_(run),
        classes_(ClassesOf(run.cards)),
        shares_(classes_) {}

  absl::StatusOr<v1::SweepReport> Run() {
    for (size_t i = 0; i < problems_.size(); ++i) indices_[ToText(problems_[i])] = i;
    if (absl::Status status = LookAtFleet(); !status.ok()) return status;
    const absl::StatusOr<std::vector<jobs::MadePart>> parts = run_.parts.All();
    if (!parts.ok()) return parts.status();
    TakeRows(*parts);
    TakeParts(*parts);
    if (absl::Status status = Share(); !status.ok()) return status;
    while (true) {
      if (run_.job.stop.stop_requested()) return absl::CancelledError("stopped");
      if (absl::Status status = LookAtFleet(); !status.ok()) return status;
      if (absl::Status status = Collect(); !status.ok()) return status;
      if (absl::Status status = HandOut(); !status.ok()) return status;
      if (absl::Status status = Keep(); !status.ok()) return status;
      ShowProgress();
      if (at_hand_.empty()) return Report();
      run_.parts.AwaitChange();
    }
  }

 private:
  struct AtHand {
    v1::Operation part;
    std::string card;  // empty: for the first of its class that is free
  };

  // Of a sweep that any host may do its problems are on all cards of its class, which come and go. Whoever does it has
  // cards of that class alone.
  bool IsFleets() const { return !fleet_.empty(); }
  static std::string NameOf(const catalog::FleetCard& card) { return catalog::CardName(card.host, card.device.id()); }

  absl::Status LookAtFleet() {
    absl::StatusOr<std::vector<catalog::FleetCard>> cards = run_.parts.FleetCards();
    if (!cards.ok()) return cards.status();
    fleet_ = *std::move(cards);
    if (!IsFleets()) return absl::OkStatus();
    std::vector<std::string> names;
    for (const catalog::FleetCard& card : fleet_) names.push_back(NameOf(card));
    // One that waits behind each card's keeps it from waiting for this host's next look. It cannot be taken back, so
    // where time is limited there is none.
    shares_.SetFleet(0, names, TotalTime(plan_) == absl::InfiniteDuration() ? 2 : 1);
    return absl::OkStatus();
  }
  size_t CountCards() const { return IsFleets() ? fleet_.size() : run_.cards.size(); }

  size_t size() const { return classes_.size() * problems_.size(); }
  size_t ClassOf(size_t number) const { return number / problems_.size(); }
  const Problem& ProblemOf(size_t number) const { return problems_[number % problems_.size()]; }
  double WorkOf(size_t number) const { return Flops(ProblemOf(number)); }

  std::string KeyOf(size_t number) const {
    return PartKey(number % problems_.size(), *classes_[ClassOf(number)].front());
  }

  // Nothing when it is not of the plan, or of no class that is here.
  std::optional<size_t> NumberOf(const std::string& problem_text, std::optional<size_t> card_class) const {
    const auto it = indices_.find(problem_text);
    if (it == indices_.end() || !card_class.has_value()) return std::nullopt;
    return it->second + *card_class * problems_.size();
  }

  // What an earlier process has reported, and no part says: parts know their class, whatever cards are here now.
  void TakeRows(const std::vector<jobs::MadePart>& parts) {
    std::set<std::pair<std::string, std::string>> of_parts;
    for (const jobs::MadePart& part : parts) {
      if (part.operation.done()) of_parts.emplace(part.operation.problem(), RowOf(part.operation).device_id());
    }
    for (const Row& row : run_.before.sweep().rows()) {
      if (of_parts.contains({row.problem(), row.device_id()})) continue;
      const std::optional<size_t> number = NumberOf(row.problem(), ClassOfRow(row));
      if (number.has_value()) Take(*number, row);
    }
    changed_ = false;
  }

  // A row without a card is of a version that knew one alone, or of a problem that never began: with several classes,
  // or cards that are gone, nobody knows whose it is, and it is found out anew.
  std::optional<size_t> ClassOfRow(const Row& row) const {
    if (IsFleets()) return 0;
    if (!row.device_id().empty()) return ClassOfCard(row.device_id());
    if (classes_.size() > 1 || run_.cards.size() < CardsIn(plan_.device_id()).size()) return std::nullopt;
    return 0;
  }

  // Nothing of no card, or of one that is not here any more.
  std::optional<size_t> ClassOfCard(const std::string& card) const {
    if (IsFleets()) return 0;
    for (size_t i = 0; i < classes_.size(); ++i) {
      for (const v1::Device* device : classes_[i]) {
        if (device->id() == card) return i;
      }
    }
    return std::nullopt;
  }

  void Take(size_t number, Row row) {
    if (!row.device_id().empty()) {
      absl::Duration& spent = spent_[row.device_id()];
      spent += DurationOf(row.working_time());
      if (row.has_working_time() && row.outcome() != v1::SweepReport::OUTCOME_FAILED) {
        pace_.Add(WorkOf(number), DurationOf(row.working_time()));
      }
      if (spent >= TotalTime(plan_)) shares_.Retire(row.device_id());
    }
    rows_[number] = std::move(row);
    changed_ = true;
  }

  // Parts that there are: ended ones give their rows, the others are at hand.
  void TakeParts(const std::vector<jobs::MadePart>& parts) {
    std::map<std::string, size_t> by_name;
    for (size_t number = 0; number < size(); ++number) {
      by_name[jobs::PartName(run_.job.name, KeyOf(number))] = number;
    }
    for (const jobs::MadePart& part : parts) {
      const auto it = by_name.find(part.operation.name());
      const std::optional<size_t> number = it == by_name.end() ? NumberOfFormer(part) : it->second;
      if (!number.has_value() || rows_.contains(*number)) continue;
      if (part.operation.done()) {
        Take(*number, RowOf(part.operation));
      } else {
        at_hand_[*number] = AtHandAs(part);
      }
    }
  }

  // Of a part of an earlier version, whose name has a number and no class: its cards say the class.
  std::optional<size_t> NumberOfFormer(const jobs::MadePart& part) const {
    if (absl::StrContains(part.operation.name(), '-')) return std::nullopt;
    const std::string card = part.cards.empty() ? RowOf(part.operation).device_id() : part.cards.front();
    return NumberOf(part.operation.problem(), ClassOfCard(card));
  }

  static AtHand AtHandAs(const jobs::MadePart& part) {
    return {part.operation, part.cards.size() == 1 ? part.cards.front() : ""};
  }

  // The others wait: for the card that timed what is served, or for any.
  absl::Status Share() {
    if (TotalTime(plan_) <= absl::ZeroDuration()) {
      for (const v1::Device* card : run_.cards) shares_.Retire(card->id());
      for (const catalog::FleetCard& card : fleet_) shares_.Retire(NameOf(card));
    }
    for (const size_t number : InOrder()) {
      if (run_.job.stop.stop_requested()) return absl::CancelledError("stopped");
      if (rows_.contains(number) || at_hand_.contains(number)) continue;
      shares_.Add(number, ClassOf(number), CardFor(ProblemOf(number), classes_[ClassOf(number)]));
      ++pace_.left[WorkOf(number)];
    }
    return absl::OkStatus();
  }

  // The plan's; where several cards share a class and all will be done, those of most work first, so that no card is
  // left with a long one at the end (R. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969: LPT).
  std::vector<size_t> InOrder() const {
    std::vector<size_t> numbers(size());
    std::iota(numbers.begin(), numbers.end(), size_t{0});
    const bool shared = CountCards() > classes_.size();
    if (shared && TotalTime(plan_) == absl::InfiniteDuration()) {
      std::stable_sort(numbers.begin(), numbers.end(), [&](size_t a, size_t b) { return WorkOf(a) > WorkOf(b); });
    }
    return numbers;
  }

  // Empty: any of them.
  std::string CardFor(const Problem& problem, const CardClass& cards) const {
    if (!IsFleets() && cards.size() == 1) return cards.front()->id();
    const auto tuning_key = trials::MakeTuningKey(problem, *cards.front(), plan_.policy(), means_.host);
    if (!tuning_key.ok()) return "";
    const auto served = trials::ReadFor(run_.job, [&] { return means_.results.Served(catalog::KeyOf(*tuning_key)); });
    if (IsFleets()) return served.ok() && served->has_value() ? FleetCardFor(**served) : "";
    const v1::Device* const card = served.ok() ? TimedBy(*served, cards) : nullptr;
    return card == nullptr ? "" : card->id();
  }

  // The one that timed it. Where several hosts' pass for it, as devices without UUID do, each is as good.
  std::string FleetCardFor(const v1::Incumbent& served) const {
    std::string name;
    for (const catalog::FleetCard& card : fleet_) {
      if (!catalog::IsOf(catalog::InstanceOf(served.trial()), card.device)) continue;
      if (!name.empty()) return "";
      name = NameOf(card);
    }
    return name;
  }

  absl::Status Collect() {
    std::vector<std::string> names;
    for (const auto& [number, at_hand] : at_hand_) names.push_back(at_hand.part.name());
    absl::StatusOr<std::vector<v1::Operation>> parts = run_.parts.Get(names);
    if (!parts.ok()) return parts.status();
    if (run_.job.stop.stop_requested()) return absl::CancelledError("stopped");
    auto part = parts->begin();
    for (auto it = at_hand_.begin(); it != at_hand_.end();) {
      it->second.part = std::move(*part++);
      if (!it->second.part.progress().device_id().empty()) it->second.card = it->second.part.progress().device_id();
      if (!it->second.part.done()) {
        ++it;
        continue;
      }
      Take(it->first, RowOf(it->second.part));
      it = at_hand_.erase(it);
    }
    return absl::OkStatus();
  }

  // `number` waits in no share any more.
  void Begin(size_t number) {
    const auto it = pace_.left.find(WorkOf(number));
    if (--it->second == 0) pace_.left.erase(it);
  }

  absl::Status HandOut() {
    while (const std::optional<size_t> number = shares_.TakeHopeless()) {
      Begin(*number);
      Row row;
      row.set_problem(ToText(ProblemOf(*number)));
      row.set_outcome(v1::SweepReport::OUTCOME_SKIPPED);
      row.set_detail(absl::StrCat("the sweep's total time, ", absl::FormatDuration(TotalTime(plan_)), ", was spent"));
      Take(*number, std::move(row));
    }
    while (const std::optional<Shares::Next> next = shares_.Take(Busy())) {
      if (run_.job.stop.stop_requested()) return absl::CancelledError("stopped");
      const absl::StatusOr<jobs::MadePart> part =
          run_.parts.Make(PartFor(plan_, KeyOf(next->problem), ToText(ProblemOf(next->problem)), next->cards));
      if (!part.ok()) return part.status();
      Begin(next->problem);
      at_hand_[next->problem] = AtHandAs(*part);
    }
    return absl::OkStatus();
  }

  std::vector<Shares::AtHand> Busy() const {
    std::vector<Shares::AtHand> busy;
    for (const auto& [number, at_hand] : at_hand_) busy.push_back({ClassOf(number), at_hand.card});
    return busy;
  }

  v1::SweepReport Report() const {
    v1::SweepReport report;
    report.set_title(plan_.title());
    for (const auto& [number, row] : rows_) *report.add_rows() = row;
    report.set_device_id(IsFleets() ? CardsOf(report) : catalog::ListOf(run_.cards));
    Complete(report);
    return report;
  }

  // Those that worked on it; none yet: its class.
  std::string CardsOf(const v1::SweepReport& report) const {
    std::set<std::string> cards;
    for (const Row& row : report.rows()) {
      if (!row.device_id().empty()) cards.insert(row.device_id());
    }
    return cards.empty() ? fleet_.front().device.class_alias() : ListOfCards({cards.begin(), cards.end()});
  }

  absl::Status Keep() {
    if (!std::exchange(changed_, false)) return absl::OkStatus();
    return run_.save([this](v1::Operation& operation) { *operation.mutable_sweep() = Report(); });
  }

  void ShowProgress() {
    SweepPace pace = pace_;
    pace.cards = static_cast<int64_t>(CountCards());
    std::vector<v1::Operation> parts;
    for (const auto& [number, at_hand] : at_hand_) parts.push_back(at_hand.part);
    const v1::OperationProgress now =
        ProgressOf(parts, static_cast<int64_t>(rows_.size()), static_cast<int64_t>(size()), std::move(pace));
    run_.job.progress.Change([&now](v1::OperationProgress& progress) { progress = now; });
  }

  const v1::SweepPlan& plan_;
  const std::vector<Problem> problems_;
  const SweepMeans& means_;
  const jobs::JobRun& run_;
  const std::vector<CardClass> classes_;
  std::vector<catalog::FleetCard> fleet_;  // none: the sweep is this host's alone
  Shares shares_;
  std::map<std::string, size_t> indices_;  // of the problems, by their texts
  std::map<size_t, Row> rows_;             // by number; so are those at hand
  std::map<size_t, AtHand> at_hand_;
  std::map<std::string, absl::Duration> spent_;  // by each card
  SweepPace pace_;                               // of the rows, and of what waits
  bool changed_ = false;                         // the rows, since they were kept
};

// FailedPrecondition where no card's code, or not that of every CUDA card, can be sanitized.
absl::Status CheckSanitizers(const std::vector<const v1::Device*>& cards, const profile::Tools* tools) {
  const auto can = [&](const v1::Device* card) { return profile::CheckSanitizers(*card, tools); };
  const auto cuda = std::find_if(cards.begin(), cards.end(),
                                 [](const v1::Device* card) { return card->backend() == v1::BACKEND_CUDA; });
  const absl::Status status = can(cuda == cards.end() ? cards.front() : *cuda);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("sanitize is true, and ", status.message()));
}

}  // namespace

jobs::JobTerms SweepJob::TermsOf(const v1::SweepRequest& request) const {
  jobs::JobTerms terms;
  terms.device = request.plan().device_id();
  terms.cards = jobs::Cards::kNone;
  terms.priority = trials::Priority::kBackground;
  return terms;
}

void SweepJob::SetDevice(const std::string& device_id, v1::SweepRequest& request) const {
  request.mutable_plan()->set_device_id(device_id);
}

absl::StatusOr<jobs::JobTitle> SweepJob::AdmitRequest(const v1::SweepRequest& request,
                                                      const std::vector<const v1::Device*>& cards) const {
  const v1::SweepPlan& plan = request.plan();
  const absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(plan);
  if (!problems.ok()) return problems.status();
  if (plan.sanitize()) {
    if (absl::Status can = CheckSanitizers(cards, means_.sanitizers.tools); !can.ok()) return can;
  }
  const absl::Status counts = promotion::CheckCountsEnergy(plan.objective(), /*energy=*/false, cards);
  if (!counts.ok()) return counts;
  return jobs::JobTitle{TitleOf(plan, absl::StrCat(problems->size(), " problems on ", catalog::ListOf(cards)))};
}

absl::StatusOr<jobs::JobKind::Fill> SweepJob::RunRequest(const v1::SweepRequest& request,
                                                         const jobs::JobRun& run) const {
  absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(request.plan());
  if (!problems.ok()) return problems.status();
  absl::StatusOr<v1::SweepReport> report = SweepRun(request.plan(), *std::move(problems), means_, run).Run();
  if (!report.ok()) return report.status();
  return [report = *std::move(report)](v1::Operation& operation) {
    *operation.mutable_sweep() = report;
    const std::string missed = WordsOfMissed(report);
    if (!missed.empty()) operation.mutable_progress()->set_message(missed);
    return ErrorOf(report);
  };
}

}  // namespace attune::sweep
