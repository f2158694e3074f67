#include "server/jobs/sisters_best.h"

#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/host.h"
#include "server/catalog/tuning_key.h"
#include "server/promotion/promotion.h"
#include "server/search/candidates.h"
#include "server/search/exhaustive_strategy.h"
#include "server/trials/store_wait.h"
#include "server/trials/trial.h"

namespace attune::jobs {

namespace {

// The candidates that are the fastest few of what the store has of a card's times.
absl::StatusOr<std::vector<size_t>> FastestOn(const catalog::TuningKey& card, const search::CandidateSet& candidates,
                                              const Few& few, store::Store& store) {
  const absl::StatusOr<std::vector<v1::Trial>> known = catalog::KnownToday(store, card);
  if (!known.ok()) return known.status();
  std::map<size_t, v1::Trial> timed;
  for (const v1::Trial& trial : *known) {
    const std::optional<size_t> index = candidates.FindToday(trial);
    if (index.has_value() && trials::Timed(trial)) timed.emplace(*index, trial);
  }
  return promotion::PickContestants(timed, few.most, std::nullopt, few.near);
}

bool IsOn(const catalog::TuningKey& card, const std::map<size_t, v1::Trial>& tried, size_t index) {
  const auto trial = tried.find(index);
  return trial != tried.end() && catalog::IsOf(catalog::InstanceOf(trial->second), card.device);
}

}  // namespace

absl::StatusOr<int64_t> TrySistersBest(const trials::TrialPhase::Means& means, const search::CandidateSet& candidates,
                                       const std::map<size_t, v1::Trial>& tried, const search::SearchSpec& spec,
                                       const catalog::TuningKey& tuning_key, const Few& few,
                                       const v1::OperationCost& before, const trials::Job& job,
                                       trials::DeviceUse& use) {
  std::vector<catalog::TuningKey> all = spec.sisters;
  all.insert(all.begin(), spec.tuning_key);
  std::vector<space::Variant> variants;
  std::vector<std::string> cards;
  for (const catalog::TuningKey& card : all) {
    if (card.device.id() == tuning_key.device.id()) continue;
    const absl::StatusOr<std::vector<size_t>> fastest =
        trials::ReadFor(job, [&] { return FastestOn(card, candidates, few, means.code.store()); });
    if (!fastest.ok()) return fastest.status();
    for (const size_t index : *fastest) {
      if (!IsOn(tuning_key, tried, index)) variants.push_back(candidates.all[index].variant);
    }
    cards.push_back(card.device.id());
  }
  if (variants.empty()) return 0;
  job.progress.SetPhase(v1::OperationProgress::PHASE_TRIALS,
                        absl::StrCat("the fastest of ", absl::StrJoin(cards, ", "), ", on ", tuning_key.device.id()));
  absl::StatusOr<search::CandidateSet> best =
      trials::ReadFor(job, [&] { return search::GatherCandidates(means.code.store(), {}, variants, tuning_key); });
  if (!best.ok()) return best.status();
  if (spec.check_all) search::DoubtSlow(*best);
  search::ExhaustiveStrategy strategy(best->all.size());
  trials::TrialPhase::Plan plan;
  plan.tuning_key = &tuning_key;
  plan.candidates = &*best;
  plan.strategy = &strategy;
  plan.retry_known = spec.retry_known;
  plan.check_all = spec.check_all;
  plan.plays_off = true;
  plan.cost_before = before;
  trials::TrialPhase again(means, job, plan);
  if (absl::Status status = again.Run(use); !status.ok()) return status;
  return again.run();
}

std::string LostCards(const trials::TrialPhase& phase) {
  std::string lost;
  for (const trials::CardShares::Share& share : phase.shares().all()) {
    if (!share.lost.ok()) absl::StrAppend(&lost, "; it went on without ", share.id, ": ", share.lost.message());
  }
  return lost;
}

}  // namespace attune::jobs
