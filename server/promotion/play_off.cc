#include "server/promotion/play_off.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/attune/quote.h"
#include "server/measure/cycles.h"
#include "server/measure/quantiles.h"
#include "server/trials/code.h"
#include "server/trials/trial.h"

namespace attune::promotion {
namespace {

// On the device behind the first cycle, which has the second check in it: no further cycle is begun after it, but for
// the least number.
constexpr absl::Duration kMostTime = absl::Milliseconds(1500);
// A time is settled when its interval is narrower than this part of it.
constexpr double kSettled = 0.01;

absl::StatusOr<worker::v1::Candidate> Ready(const search::Candidate& candidate, const catalog::TuningKey& tuning_key,
                                            const trials::CodeSource& source, const trials::Job& job) {
  absl::StatusOr<trials::CodePtr> code = source.Get(*candidate.variant.family, candidate.spec, tuning_key, job);
  if (!code.ok()) return code.status();
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(candidate.variant, tuning_key.problem, tuning_key.device);
  if (!recipe.ok()) return recipe.status();
  worker::v1::Candidate contestant;
  contestant.set_artifact((*code)->artifact);
  *contestant.mutable_recipe() = *std::move(recipe);
  contestant.set_deterministic(candidate.variant.family->manifest.deterministic());
  return contestant;
}

absl::StatusOr<worker::v1::PlayOffResponse> Ask(const worker::v1::PlayOffRequest& request, trials::DeviceUse& use) {
  absl::StatusOr<worker::v1::PlayOffResponse> response = use.PlayOff(request);
  if (response.ok() && response->results_size() != request.candidates_size()) {
    return absl::InternalError(absl::StrCat("the device worker answered with ", response->results_size(),
                                            " results for ", request.candidates_size(), " contestants"));
  }
  return response;
}

void Take(worker::v1::TrialResponse& result, v1::Trial& trial) {
  trial.set_verdict(result.verdict());
  trial.set_detail(result.detail());
  trial.clear_timing();
  if (result.has_timing()) *trial.mutable_timing() = std::move(*result.mutable_timing());
  if (result.has_accuracy()) *trial.mutable_accuracy() = std::move(*result.mutable_accuracy());
}

// `timing` of the cycles before, with another's.
void AddCycle(const v1::Timing& cycle, v1::Timing& timing) {
  const v1::Timing before = std::exchange(timing, cycle);
  timing.set_cycles(before.cycles() + 1);
  if (before.cycles() == 0) return;
  timing.set_min_us(std::min(before.min_us(), cycle.min_us()));
  timing.set_samples(before.samples() + cycle.samples());
  timing.set_discarded(before.discarded() + cycle.discarded());
  timing.set_throttle_reasons(before.throttle_reasons() | cycle.throttle_reasons());
  timing.set_contended(before.contended() || cycle.contended());
}

// One play-off's calls to the device.
class Calls {
 public:
  Calls(worker::v1::PlayOffRequest request, std::vector<v1::Trial> trials, trials::DeviceUse& use)
      : request_(std::move(request)), use_(use), trials_(std::move(trials)) {}

  absl::StatusOr<PlayedOff> Play(std::optional<size_t> incumbent) && {
    measure::PairedRounds rounds(trials_.size());
    std::vector<v1::Timing> timings(trials_.size());
    samples_.assign(trials_.size(), {});
    absl::Status status = measure::RunCycles(
        incumbent, [&](const std::vector<size_t>& who) { return Cycle(who, rounds.cycles(), timings); },
        [&] { return use_.busy() - after_first_ > kMostTime; }, rounds);
    if (!status.ok()) return status;
    for (size_t i = 0; i < trials_.size() && AllOk(); ++i) {
      const measure::Interval time = rounds.TimeOf(i);
      timings[i].set_median_us(time.median);
      timings[i].set_low_us(time.low);
      timings[i].set_high_us(time.high);
      timings[i].set_settled(time.high - time.low < kSettled * time.median);
      measure::SetQuantiles(std::move(samples_[i]), timings[i]);
      *trials_[i].mutable_timing() = timings[i];
    }
    return PlayedOff{std::move(trials_), std::move(rounds)};
  }

  absl::StatusOr<std::vector<v1::Trial>> ManyRuns() && {
    request_.set_many_runs(true);
    std::vector<size_t> all(trials_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    absl::StatusOr<worker::v1::PlayOffResponse> response = AskOrBlame(request_, all);
    if (!response.ok()) return response.status();
    return std::move(trials_);
  }

  // One call each: what takes the worker down says so of itself alone.
  absl::StatusOr<std::vector<EnergyAnswer>> Energies() && {
    std::vector<EnergyAnswer> energies;
    for (const worker::v1::Candidate& candidate : request_.candidates()) {
      worker::v1::PlayOffRequest request;
      request.set_policy(request_.policy());
      request.set_energy(true);
      *request.add_candidates() = candidate;
      const absl::StatusOr<worker::v1::PlayOffResponse> response = Ask(request, use_);
      if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status())) {
        return response.status();
      }
      EnergyAnswer& answer = energies.emplace_back();
      if (!response.ok()) {
        answer.detail = std::string(response.status().message());
        continue;
      }
      const worker::v1::TrialResponse& result = response->results(0);
      answer.verdict = result.verdict();
      answer.detail = Cleaned(result.detail(), trials::kMostDetail);
      if (result.has_energy()) answer.energy = result.energy();
    }
    return energies;
  }

 private:
  // nullopt when somebody failed.
  absl::StatusOr<std::optional<measure::PairedRounds::Cycle>> Cycle(const std::vector<size_t>& who, int number,
                                                                    std::vector<v1::Timing>& timings) {
    worker::v1::PlayOffRequest request = request_;
    request.clear_candidates();
    for (size_t i : who) *request.add_candidates() = request_.candidates(static_cast<int>(i));
    if (number > 0) {
      request.set_fresh_seed(0);
      request.set_reload(true);
    }
    absl::StatusOr<worker::v1::PlayOffResponse> response = AskOrBlame(request, who);
    if (!response.ok()) return response.status();
    if (!AllOk()) return std::nullopt;
    if (number == 0) after_first_ = use_.busy();
    measure::PairedRounds::Cycle cycle(trials_.size());
    for (size_t k = 0; k < who.size(); ++k) {
      const auto& us = response->results(static_cast<int>(k)).rounds_us();
      cycle[who[k]] = {us.begin(), us.end()};
      std::copy_if(us.begin(), us.end(), std::back_inserter(samples_[who[k]]), [](double each) { return each > 0; });
      AddCycle(trials_[who[k]].timing(), timings[who[k]]);
    }
    return cycle;
  }

  // Leaves each one's result in trials_.
  absl::StatusOr<worker::v1::PlayOffResponse> AskOrBlame(const worker::v1::PlayOffRequest& request,
                                                         const std::vector<size_t>& who) {
    absl::StatusOr<worker::v1::PlayOffResponse> response = Ask(request, use_);
    if (response.ok()) {
      for (size_t k = 0; k < who.size(); ++k) Take(*response->mutable_results(static_cast<int>(k)), trials_[who[k]]);
      return response;
    }
    if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status()) || who.size() == 1) {
      return response.status();
    }
    // Somebody takes the worker down, or changes what all share. Each alone tells who; the others play off in the
    // caller's next round.
    bool found = false;
    for (size_t k = 0; k < who.size(); ++k) {
      worker::v1::PlayOffRequest alone = request;
      alone.clear_candidates();
      *alone.add_candidates() = request.candidates(static_cast<int>(k));
      v1::Trial& trial = trials_[who[k]];
      absl::StatusOr<worker::v1::PlayOffResponse> single = Ask(alone, use_);
      if (single.ok()) {
        Take(*single->mutable_results(0), trial);
      } else if (absl::IsCancelled(single.status()) || absl::IsFailedPrecondition(single.status())) {
        return single.status();
      } else {
        trial.set_verdict(v1::VERDICT_LOST);
        trial.set_detail(absl::StrCat("in the play-off: ", single.status().message()));
        trial.clear_timing();
      }
      found = found || trial.verdict() != v1::VERDICT_OK;
    }
    if (!found) return response.status();
    return worker::v1::PlayOffResponse();
  }

  bool AllOk() const {
    return std::all_of(trials_.begin(), trials_.end(),
                       [](const v1::Trial& trial) { return trial.verdict() == v1::VERDICT_OK; });
  }

  worker::v1::PlayOffRequest request_;
  trials::DeviceUse& use_;
  std::vector<v1::Trial> trials_;
  absl::Duration after_first_;                // busy, when the first cycle was done
  std::vector<std::vector<double>> samples_;  // of each, those that count, us
};

absl::StatusOr<Calls> CallsFor(const catalog::TuningKey& tuning_key, const std::vector<Contestant>& contestants,
                               uint64_t fresh_seed, const trials::CodeSource& code, const trials::Job& job,
                               trials::DeviceUse& use) {
  std::vector<v1::Trial> trials;
  worker::v1::PlayOffRequest request;
  request.set_policy(tuning_key.policy);
  request.set_fresh_seed(fresh_seed);
  for (const Contestant& contestant : contestants) {
    absl::StatusOr<worker::v1::Candidate> ready = Ready(contestant.candidate, tuning_key, code, job);
    if (!ready.ok()) return ready.status();
    v1::Trial& trial = trials.emplace_back(contestant.trial);
    trial.clear_cost();  // of the run that it is known by
    // Another card of the class may have run what the contestant is known by.
    trial.set_device_id(tuning_key.device.id());
    trial.set_device_uuid(tuning_key.device.uuid());
    *trial.mutable_recipe() = ready->recipe();
    *request.add_candidates() = *std::move(ready);
  }
  return Calls(std::move(request), std::move(trials), use);
}

}  // namespace

absl::StatusOr<PlayedOff> PlayOff(const catalog::TuningKey& tuning_key, const std::vector<Contestant>& contestants,
                                  std::optional<size_t> incumbent, uint64_t fresh_seed, const trials::CodeSource& code,
                                  const trials::Job& job, trials::DeviceUse& use) {
  absl::StatusOr<Calls> calls = CallsFor(tuning_key, contestants, fresh_seed, code, job, use);
  if (!calls.ok()) return calls.status();
  return (*std::move(calls)).Play(incumbent);
}

absl::StatusOr<std::vector<v1::Trial>> CheckManyRuns(const catalog::TuningKey& tuning_key,
                                                     const std::vector<Contestant>& contestants,
                                                     const trials::CodeSource& code, const trials::Job& job,
                                                     trials::DeviceUse& use) {
  absl::StatusOr<Calls> calls = CallsFor(tuning_key, contestants, 0, code, job, use);
  if (!calls.ok()) return calls.status();
  return (*std::move(calls)).ManyRuns();
}

absl::StatusOr<std::vector<EnergyAnswer>> MeasureEnergies(const catalog::TuningKey& tuning_key,
                                                          const std::vector<Contestant>& contestants,
                                                          const trials::CodeSource& code, const trials::Job& job,
                                                          trials::DeviceUse& use) {
  absl::StatusOr<Calls> calls = CallsFor(tuning_key, contestants, 0, code, job, use);
  if (!calls.ok()) return calls.status();
  return (*std::move(calls)).Energies();
}

absl::StatusOr<v1::Trial> AfterManyRuns(const catalog::TuningKey& tuning_key, const Contestant& contestant,
                                        v1::Trial timed, const trials::CodeSource& code, const trials::Job& job,
                                        trials::DeviceUse& use) {
  absl::StatusOr<std::vector<v1::Trial>> checked = CheckManyRuns(tuning_key, {contestant}, code, job, use);
  if (!checked.ok()) return checked.status();
  return std::move(checked->front().verdict() == v1::VERDICT_OK ? timed : checked->front());
}

}  // namespace attune::promotion
