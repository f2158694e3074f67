#include "server/promotion/play_off.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/trials/code.h"

namespace attune::promotion {
namespace {

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

}  // namespace

absl::StatusOr<std::vector<v1::Trial>> PlayOff(const catalog::TuningKey& tuning_key,
                                               const std::vector<Contestant>& contestants, uint64_t fresh_seed,
                                               const trials::CodeSource& code, const trials::Job& job,
                                               trials::DeviceUse& use) {
  std::vector<v1::Trial> results;
  worker::v1::PlayOffRequest request;
  request.set_policy(tuning_key.policy);
  request.set_fresh_seed(fresh_seed);
  for (const Contestant& contestant : contestants) {
    absl::StatusOr<worker::v1::Candidate> ready = Ready(contestant.candidate, tuning_key, code, job);
    if (!ready.ok()) return ready.status();
    v1::Trial& trial = results.emplace_back(contestant.trial);
    trial.set_device_id(
        tuning_key.device.id());  // another card of the class may have run what the contestant is known by
    trial.set_device_uuid(tuning_key.device.uuid());
    *trial.mutable_recipe() = ready->recipe();
    *request.add_candidates() = *std::move(ready);
  }
  absl::StatusOr<worker::v1::PlayOffResponse> response = Ask(request, use);
  if (response.ok()) {
    for (size_t i = 0; i < results.size(); ++i) Take(*response->mutable_results(static_cast<int>(i)), results[i]);
    return results;
  }
  if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status()) || results.size() == 1) {
    return response.status();
  }
  // Somebody takes the worker down, or changes what all share. Each alone tells who; the others play off in the
  // caller's next round.
  bool found = false;
  for (size_t i = 0; i < results.size(); ++i) {
    worker::v1::PlayOffRequest alone = request;
    alone.clear_candidates();
    *alone.add_candidates() = request.candidates(static_cast<int>(i));
    absl::StatusOr<worker::v1::PlayOffResponse> single = Ask(alone, use);
    if (single.ok()) {
      Take(*single->mutable_results(0), results[i]);
    } else if (absl::IsCancelled(single.status()) || absl::IsFailedPrecondition(single.status())) {
      return single.status();
    } else {
      results[i].set_verdict(v1::VERDICT_LOST);
      results[i].set_detail(absl::StrCat("in the play-off: ", single.status().message()));
      results[i].clear_timing();
    }
    found = found || results[i].verdict() != v1::VERDICT_OK;
  }
  if (!found) return response.status();
  return results;
}

}  // namespace attune::promotion
