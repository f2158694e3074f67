#include "server/promotion/contest.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/attune/objective.h"
#include "server/base/proto_time.h"
#include "server/base/seed.h"
#include "server/catalog/host.h"
#include "server/promotion/alternatives.h"
#include "server/promotion/next_incumbent.h"
#include "server/promotion/play_off.h"
#include "server/promotion/record_retiming.h"
#include "server/search/exhaustive_strategy.h"
#include "server/search/todays_variant.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"

namespace attune::promotion {
namespace {

// With an objective by energy: as many of the fastest as are measured, about a second each beside their play-off, and
// how much slower the last of them may be: to take less energy it would have to draw less than two thirds of the power.
constexpr size_t kByEnergySize = 8;
constexpr double kByEnergyNear = 1.5;

// Whether a trial says that its variant is not right, or cannot run; times that would not settle say nothing.
bool SpeaksAgainst(const v1::Trial& trial) {
  switch (trial.verdict()) {
    case v1::VERDICT_OK:
    case v1::VERDICT_SLOW:
    case v1::VERDICT_LOST:
      return false;
    case v1::VERDICT_UNSTABLE:
      return trial.timing().median_us() <= 0;
    default:
      return true;
  }
}

// One job's way from what is known of a problem to a decision.
class Contest {
 public:
  Contest(const Contests::Options& options, const FieldRules& field, const catalog::TuningKey& tuning_key,
          const ContestRules& rules, const trials::Job& job, trials::DeviceUse& use)
      : options_(options), field_(field), tuning_key_(tuning_key), rules_(rules), job_(job), use_(use) {}

  absl::StatusOr<ContestResult> Hold() {
    // Each further round is owed to a promotion of another job.
    while (true) {
      absl::StatusOr<std::optional<v1::Incumbent>> served = Served();
      if (!served.ok()) return served.status();
      ContestResult result;
      result.before = *served;
      result.served = *std::move(served);
      absl::StatusOr<bool> holds = HoldRound(result);
      if (!holds.ok()) return holds.status();
      if (*holds) return result;
    }
  }

 private:
  // False: another variant has been promoted since the round began, so that it decides nothing.
  absl::StatusOr<bool> HoldRound(ContestResult& result) {
    absl::StatusOr<IncumbentState> standing = Gather(result.before);
    if (!standing.ok()) return standing.status();
    absl::StatusOr<Decision> decided = DecideOnWhoIsRight(*standing, result);
    if (!decided.ok()) return decided.status();
    const Decision& decision = *decided;
    if (absl::Status status = RecordServed(result); !status.ok()) return status;
    const EndOfContest end{tuning_key_, options_.families, rules_, job_.name, result.before, timed_, chosen_, wrong_};
    const std::optional<v1::Incumbent> next = Next(end, decision, result);
    if (!next.has_value()) return StillServed(result.before);
    absl::StatusOr<v1::Incumbent> promoted = trials::WriteFor(
        job_, [&](const store::JobWrite& write) { return options_.results.Promote(*next, result.before, write); });
    if (absl::IsAborted(promoted.status()) && !store::IsStale(promoted.status())) return false;
    if (!promoted.ok()) return promoted.status();
    result.promoted = decision.promote;
    result.served = *std::move(promoted);
    return true;
  }

  // Plays off until who would be served, and who is tied with that, are right in many more runs too.
  absl::StatusOr<Decision> DecideOnWhoIsRight(const IncumbentState& standing, ContestResult& result) {
    while (true) {
      absl::StatusOr<std::vector<size_t>> field = PlayOffAll(standing);
      if (!field.ok()) return field.status();
      if (absl::Status status = CheckNotLost(standing); !status.ok()) return status;
      Decision decision = Settle(standing, *field, result);
      absl::StatusOr<bool> right = CheckManyRunsOf(decision, *field);
      if (right.ok() && *right) right = MayBeServed(decision, *field, result);
      if (!right.ok()) return right.status();
      if (!*right) continue;
      right = AddEnergies(*field, decision, result);
      if (right.ok() && *right) right = FindAlternatives(*field, result.before, decision);
      if (!right.ok()) return right.status();
      if (!*right) continue;
      for (const std::string& objection : objections_) absl::StrAppend(&decision.why, "; ", objection);
      result.why = decision.why;
      return decision;
    }
  }

  // Beside the times of those who played off; the decision says so where one is not known. False: somebody did wrong
  // in the runs for it, and is out.
  absl::StatusOr<bool> AddEnergies(const std::vector<size_t>& field, Decision& decision, ContestResult& result) {
    if (!(rules_.energy || IsByEnergy(rules_.objective)) || field.empty()) return true;
    const absl::StatusOr<std::vector<Contestant>> contestants = Seat(field);
    if (!contestants.ok()) return contestants.status();
    job_.progress.SetPhase(v1::OperationProgress::PHASE_PLAY_OFF,
                           absl::StrCat(field.size(), field.size() == 1 ? " contestant's" : " contestants'",
                                        " energy, about a second each"));
    const auto energies = MeasureEnergies(tuning_key_, *contestants, options_.means.code, job_, use_);
    if (!energies.ok()) return energies.status();
    bool right = true;
    for (size_t i = 0; i < field.size(); ++i) {
      const EnergyAnswer& answer = (*energies)[i];
      if (answer.verdict != v1::VERDICT_OK) {
        v1::Trial wrong = timed_[i];
        wrong.set_verdict(answer.verdict);
        wrong.set_detail(absl::StrCat("while its energy was measured: ", answer.detail));
        wrong.clear_timing();
        if (absl::Status status = Exclude(field[i], std::move(wrong)); !status.ok()) return status;
        right = false;
      } else if (answer.energy.has_value()) {
        *timed_[i].mutable_timing()->mutable_energy() = *answer.energy;
      } else {
        absl::StrAppend(&decision.why, "; the energy of ", timed_[i].variant().text(),
                        " is not known: ", answer.detail);
      }
    }
    if (right) FillResult(decision, result);
    return right;
  }

  // Who is better than what would be served by another measure than time, for certain, and right in many runs too.
  // False: somebody is not, and out.
  absl::StatusOr<bool> FindAlternatives(const std::vector<size_t>& field, const std::optional<v1::Incumbent>& before,
                                        Decision& decision) {
    chosen_.clear();
    if (!IsByEnergy(rules_.objective) || !decision.best.has_value()) return true;
    if (IsPinned(rules_, before, timed_[*decision.best])) {
      decision.why += "; what is pinned is served whatever takes less energy";
      return true;
    }
    std::vector<BestBy> chosen = ChooseAlternatives(timed_, *decision.best);
    if (chosen.empty()) decision.why += "; which has the least energy is not known";
    std::set<size_t> unchecked;
    for (const BestBy& best : chosen) {
      const auto& ties = decision.ties;
      if (best.contestant.has_value() && std::find(ties.begin(), ties.end(), *best.contestant) == ties.end()) {
        unchecked.insert(field[*best.contestant]);
      }
    }
    absl::StatusOr<bool> right = AreRightInManyRuns({unchecked.begin(), unchecked.end()});
    if (!right.ok() || !*right) return right;
    for (const BestBy& best : chosen) decision.why += WordsOf(best, timed_, *decision.best);
    chosen_ = std::move(chosen);
    return true;
  }

  // False: what would be served in place of another may not be, and is out.
  absl::StatusOr<bool> MayBeServed(const Decision& decision, const std::vector<size_t>& field,
                                   const ContestResult& result) {
    if (!decision.promote || !rules_.objection) return true;
    const std::string& text = result.winner->variant().text();
    if (result.before.has_value() && result.before->trial().variant().text() == text) return true;
    const absl::StatusOr<std::string> objection = rules_.objection(*result.winner, use_);
    if (!objection.ok()) return objection.status();
    if (objection->empty()) return true;
    trials_.erase(field[*decision.best]);
    objections_.push_back(absl::StrCat(text, " is not promoted: ", *objection));
    return false;
  }

  // False: somebody is not right, and out.
  absl::StatusOr<bool> CheckManyRunsOf(const Decision& decision, const std::vector<size_t>& field) {
    if (!decision.best.has_value()) return true;
    std::vector<size_t> who = {field[*decision.best]};
    for (size_t tie : decision.ties) who.push_back(field[tie]);
    return AreRightInManyRuns(who);
  }
  absl::StatusOr<bool> AreRightInManyRuns(const std::vector<size_t>& who) {
    if (who.empty()) return true;
    absl::StatusOr<std::vector<Contestant>> contestants = Seat(who);
    if (!contestants.ok()) return contestants.status();
    job_.progress.SetPhase(
        v1::OperationProgress::PHASE_VERIFY,
        absl::StrCat(who.size(), who.size() == 1 ? " variant" : " variants", ", run many more times"));
    absl::StatusOr<std::vector<v1::Trial>> checked =
        CheckManyRuns(tuning_key_, *contestants, options_.means.code, job_, use_);
    if (!checked.ok()) return checked.status();
    bool right = true;
    for (size_t i = 0; i < who.size(); ++i) {
      if ((*checked)[i].verdict() == v1::VERDICT_OK) continue;
      if (absl::Status status = Exclude(who[i], std::move((*checked)[i])); !status.ok()) return status;
      right = false;
    }
    return right;
  }

  // The times of the incumbent and of the winner, for the history.
  absl::Status RecordServed(const ContestResult& result) const {
    for (const v1::Trial& timed : result.play_off) {
      const std::string& text = timed.variant().text();
      if (!(result.before.has_value() && text == result.before->trial().variant().text()) &&
          !(result.winner.has_value() && text == result.winner->variant().text())) {
        continue;
      }
      if (absl::Status status = RecordRetiming(timed, store(), job_); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // What is stored in place of the incumbent before; nullopt: that stays.
  std::optional<v1::Incumbent> Next(const EndOfContest& end, const Decision& decision,
                                    const ContestResult& result) const {
    if (decision.promote) return NextIncumbent(end, decision);
    if (!IsRetimed(result)) return WithoutWrongAlternatives(end);
    if (rules_.keep_time) return NextIncumbent(end, decision);
    return chosen_.empty() ? WithoutWrongAlternatives(end) : WithChosenAlternatives(end, decision);
  }

  // Whether the winner is the incumbent, timed again where and as it was timed before; or as it was, by the card that
  // has chosen alternatives to it, which are compared with this card's times alone.
  bool IsRetimed(const ContestResult& result) const {
    if (rules_.pin) return false;  // a pin that was refused leaves all as it was
    if (!result.before.has_value() || !result.winner.has_value()) return false;
    if (result.winner->timing().contended()) return false;
    const v1::Trial& before = result.before->trial();
    if (IsTheSame(before, *result.winner, tuning_key_.device)) return true;
    return rules_.keep_time && !chosen_.empty() && IsTheSameCode(before, *result.winner);
  }

  absl::StatusOr<std::optional<v1::Incumbent>> Served() const {
    return trials::ReadFor(job_, [this] { return options_.results.Served(catalog::KeyOf(tuning_key_)); });
  }

  absl::StatusOr<bool> StillServed(const std::optional<v1::Incumbent>& incumbent) const {
    absl::StatusOr<std::optional<v1::Incumbent>> now = Served();
    if (!now.ok()) return now.status();
    if (incumbent.has_value() != now->has_value()) return false;
    return !incumbent.has_value() || incumbent->name() == (*now)->name();
  }

  // Fills trials_ with all that may play off, and says what is known of the incumbent.
  absl::StatusOr<IncumbentState> Gather(const std::optional<v1::Incumbent>& incumbent) {
    trials_.clear();
    objections_.clear();
    wrong_.clear();
    alternatives_.clear();
    std::set<std::string> former;
    if (incumbent.has_value() && IsByEnergy(rules_.objective)) {
      for (const v1::Alternative& one : incumbent->alternatives()) former.insert(one.trial().variant().text());
    }
    IncumbentState standing;
    absl::StatusOr<std::optional<v1::Trial>> own = TodaysTrial(incumbent, standing);
    if (!own.ok()) return own.status();
    if (own->has_value()) {
      standing.contestant = trials_.size();
      trials_[trials_.size()] = **std::move(own);
    }
    absl::StatusOr<std::vector<v1::Trial>> known =
        trials::ReadFor(job_, [this] { return catalog::KnownToday(store(), tuning_key_); });
    if (!known.ok()) return known.status();
    for (v1::Trial& trial : *known) {
      const std::string& text = trial.variant().text();
      if (IsOfToday(trial) && SpeaksAgainst(trial)) wrong_.insert(text);
      if (!trials::Timed(trial) || !IsOfToday(trial) || (!rules_.challenger.empty() && text != rules_.challenger))
        continue;
      if (standing.contestant.has_value() && trials_.at(*standing.contestant).variant().text() == text) continue;
      // Constraints may have changed since, which no source hash tells.
      if (!search::TodaysVariant(trial, tuning_key_, options_.families).ok()) continue;
      if (former.contains(text)) alternatives_.push_back(trials_.size());
      trials_[trials_.size()] = std::move(trial);
    }
    return standing;
  }

  // The incumbent's good trial under today's dependencies, made now if nothing is known. Without one the standing says
  // why.
  absl::StatusOr<std::optional<v1::Trial>> TodaysTrial(const std::optional<v1::Incumbent>& incumbent,
                                                       IncumbentState& standing) {
    if (!incumbent.has_value()) return std::nullopt;
    standing.exists = true;
    standing.pinned = incumbent->pinned();
    const std::string& text = incumbent->trial().variant().text();
    absl::StatusOr<space::Variant> variant = search::TodaysVariant(incumbent->trial(), tuning_key_, options_.families);
    if (!variant.ok()) {
      standing.absence = absl::StrCat("(", text, ") is no longer among the variants");
      return std::nullopt;
    }
    const v1::Dependencies today = catalog::DependenciesOf(*variant->family, tuning_key_);
    standing.stale = !catalog::SameDependencies(incumbent->trial().dependencies(), today);
    absl::StatusOr<v1::Trial> trial = trials::ReadFor(job_, [&] {
      return store().FindTrial(
          {tuning_key_.problem_text, catalog::InstanceOf(tuning_key_.device), text, tuning_key_.policy, today});
    });
    const bool slow = trial.ok() && trial->verdict() == v1::VERDICT_SLOW;
    if (absl::IsNotFound(trial.status()) || (slow && standing.stale)) trial = TryNow(*variant);
    if (!trial.ok()) return trial.status();
    // Times that would not settle say nothing against the trial that it was promoted with, nor does a quick look.
    if ((slow || trial->verdict() == v1::VERDICT_UNSTABLE) && !standing.stale) return incumbent->trial();
    if (!trials::Timed(*trial)) {
      standing.absence = absl::StrCat("(", text, ") failed with today's sources and driver: ", Word(trial->verdict()),
                                      " ", trial->detail());
      return std::nullopt;
    }
    return *std::move(trial);
  }

  // The incumbent has changed, by a roll-back or another job, to a variant that has no trial under today's
  // dependencies, or none but a quick look.
  absl::StatusOr<v1::Trial> TryNow(const space::Variant& variant) {
    job_.progress.SetPhase(v1::OperationProgress::PHASE_TRIALS,
                           "the incumbent, never measured with today's sources and driver");
    absl::StatusOr<search::CandidateSet> alone =
        trials::ReadFor(job_, [&] { return search::GatherCandidates(store(), {}, {variant}, tuning_key_); });
    if (!alone.ok()) return alone.status();
    search::DoubtSlow(*alone);
    search::ExhaustiveStrategy strategy(alone->all.size());
    trials::TrialPhase::Plan plan;
    plan.tuning_key = &tuning_key_;
    plan.candidates = &*alone;
    plan.strategy = &strategy;
    plan.check_all = true;
    trials::TrialPhase phase(options_.means, job_, plan);
    if (absl::Status status = phase.Run(use_); !status.ok()) return status;
    const v1::Trial& trial = phase.trials().at(0);
    if (trial.verdict() == v1::VERDICT_LOST) return Lost(trial);
    return trial;
  }

  bool IsOfToday(const v1::Trial& trial) const {
    const auto families = options_.families.Now();
    return std::any_of(families.begin(), families.end(), [&](const auto& family) {
      return family->name() == trial.variant().family() && family->source_hash == trial.dependencies().source_hash();
    });
  }

  // Nobody takes the place of an incumbent that was not compared for reasons that are not its own.
  absl::Status CheckNotLost(const IncumbentState& standing) const {
    if (!standing.contestant.has_value()) return absl::OkStatus();
    const v1::Trial& trial = trials_.at(*standing.contestant);
    return trial.verdict() == v1::VERDICT_LOST ? Lost(trial) : absl::OkStatus();
  }
  static absl::Status Lost(const v1::Trial& trial) {
    return absl::UnavailableError(absl::StrCat("the incumbent's trial was lost: ", trial.detail()));
  }

  // Plays off until a whole field has come through; leaves the timings in timed_. Returns the field.
  absl::StatusOr<std::vector<size_t>> PlayOffAll(const IncumbentState& standing) {
    while (true) {
      const std::vector<size_t> field =
          PickContestants(trials_, field_.size, standing.contestant, field_.near, alternatives_);
      if (field.empty()) return field;
      absl::StatusOr<std::vector<Contestant>> contestants = Seat(field);
      if (!contestants.ok()) return contestants.status();
      job_.progress.SetPhase(v1::OperationProgress::PHASE_PLAY_OFF,
                             absl::StrCat(field.size(), field.size() == 1 ? " contestant" : " contestants",
                                          ", checked on fresh data and timed in turn"));
      absl::StatusOr<PlayedOff> played =
          PlayOff(tuning_key_, *contestants, PlaceOf(standing, field),
                  SeedFrom(absl::StrCat(job_.name, " ", tuning_key_.problem_text)), options_.means.code, job_, use_);
      if (!played.ok()) return played.status();
      bool whole = true;
      for (size_t i = 0; i < field.size(); ++i) {
        if (trials::Timed(played->trials[i])) continue;
        if (absl::Status status = Exclude(field[i], std::move(played->trials[i])); !status.ok()) return status;
        whole = false;
      }
      if (!whole) continue;
      timed_ = std::move(played->trials);
      rounds_ = std::move(played->rounds);
      return field;
    }
  }

  absl::StatusOr<std::vector<Contestant>> Seat(const std::vector<size_t>& field) const {
    std::vector<Contestant> contestants;
    for (size_t index : field) {
      const v1::Trial& trial = trials_.at(index);
      absl::StatusOr<space::Variant> variant = space::ParseVariant(trial.variant().text(), options_.families);
      if (!variant.ok()) return variant.status();
      absl::StatusOr<search::Candidate> candidate = search::MakeCandidate(*std::move(variant), tuning_key_);
      if (!candidate.ok()) return candidate.status();
      contestants.push_back({*std::move(candidate), trial});
    }
    return contestants;
  }

  // Who was right once and is not on fresh data.
  absl::Status Exclude(size_t index, v1::Trial trial) {
    const bool wrong = SpeaksAgainst(trial);
    trial.set_detail(absl::StrCat("second check, on fresh data: ", trial.detail()));
    trial.set_job(job_.name);
    trial.clear_identical_to();
    trial.clear_compile_ms();
    if (trial.verdict() == v1::VERDICT_OK) trial.set_verdict(v1::VERDICT_UNSTABLE);  // right, but without a timing
    SetTimestamp(absl::Now(), trial.mutable_finish_time());
    absl::StatusOr<std::string> name =
        trials::WriteFor(job_, [&](const store::JobWrite& write) { return store().AppendTrial(trial, write); });
    if (!name.ok()) return name.status();
    trial.set_name(*std::move(name));
    trial.clear_recipe();
    if (wrong) wrong_.insert(trial.variant().text());
    trials_[index] = std::move(trial);
    return absl::OkStatus();
  }

  // The incumbent's in the field.
  static std::optional<size_t> PlaceOf(const IncumbentState& standing, const std::vector<size_t>& field) {
    if (!standing.contestant.has_value()) return std::nullopt;
    const auto place = std::find(field.begin(), field.end(), *standing.contestant);
    if (place == field.end()) return std::nullopt;
    return place - field.begin();
  }

  Decision Settle(IncumbentState standing, const std::vector<size_t>& field, ContestResult& result) {
    const std::optional<size_t> place = PlaceOf(standing, field);
    if (standing.contestant.has_value() && !place.has_value()) {
      standing.absence = absl::StrCat("failed: ", trials_.at(*standing.contestant).detail());
    }
    standing.contestant = place;
    if (field.empty()) timed_.clear();
    Decision decision = Choose(standing, field);
    FillResult(decision, result);
    return decision;
  }

  void FillResult(const Decision& decision, ContestResult& result) const {
    result.why = decision.why;
    result.winner.reset();
    if (decision.best.has_value()) result.winner = timed_[*decision.best];
    std::vector<size_t> by_time(timed_.size());
    std::iota(by_time.begin(), by_time.end(), size_t{0});
    std::stable_sort(by_time.begin(), by_time.end(), [this](size_t a, size_t b) {
      return timed_[a].timing().median_us() < timed_[b].timing().median_us();
    });
    result.play_off.clear();
    for (size_t i : by_time) result.play_off.push_back(timed_[i]);
  }

  Decision Choose(const IncumbentState& standing, const std::vector<size_t>& field) const {
    if (!rules_.pin) return Decide(timed_, rounds_, standing, rules_.least_speedup);
    const auto is_challenger = [this](size_t index) { return trials_.at(index).variant().text() == rules_.challenger; };
    const auto place = std::find_if(field.begin(), field.end(), is_challenger);
    if (place != field.end()) {
      Decision decision = Pin(timed_, rounds_, standing, place - field.begin());
      if (!rules_.why.empty()) absl::StrAppend(&decision.why, ": ", rules_.why);
      return decision;
    }
    Decision decision;
    decision.best = standing.contestant;
    decision.why = "not pinned: its code is that of the incumbent, byte for byte";
    for (const auto& [index, trial] : trials_) {
      if (is_challenger(index) && !trials::Timed(trial)) decision.why = absl::StrCat("not pinned: ", trial.detail());
    }
    return decision;
  }

  store::Store& store() const { return options_.means.code.store(); }

  const Contests::Options& options_;
  const FieldRules field_;
  const catalog::TuningKey& tuning_key_;
  const ContestRules& rules_;
  const trials::Job& job_;
  trials::DeviceUse& use_;
  std::map<size_t, v1::Trial> trials_;   // of this round
  std::vector<std::string> objections_;  // of this round
  std::set<std::string> wrong_;          // variants, by trials of today
  std::vector<size_t> alternatives_;     // former ones among trials_, when an objective asks for them
  std::vector<BestBy> chosen_;           // among timed_; empty: nobody asked, or it is not known
  std::vector<v1::Trial> timed_;         // of the last field
  measure::PairedRounds rounds_{0};      // of these
};

}  // namespace

FieldRules Contests::FieldOf(const ContestRules& rules) const {
  if (!IsByEnergy(rules.objective)) return {options_.play_off_size, rules.near};
  return {std::max(options_.play_off_size, kByEnergySize), std::max(rules.near, kByEnergyNear)};
}

absl::StatusOr<ContestResult> Contests::Hold(const catalog::TuningKey& tuning_key, const ContestRules& rules,
                                             const trials::Job& job, trials::DeviceUse& use) const {
  absl::StatusOr<ContestResult> result = Contest(options_, FieldOf(rules), tuning_key, rules, job, use).Hold();
  // Ties may have changed even where the incumbent has not.
  if (result.ok() && !result->promoted && result->served.has_value())
    options_.results.TrialsAdded(catalog::KeyOf(tuning_key));
  return result;
}

}  // namespace attune::promotion
