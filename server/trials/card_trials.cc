#include "server/trials/card_trials.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"
#include "server/catalog/host.h"
#include "server/space/space.h"
#include "server/trials/trial.h"

namespace attune::trials {
namespace {

constexpr int kDeviceTries = 3;  // of a trial that the infrastructure lost

}  // namespace

void AnchorOffer::Post(const std::string& card, const worker::v1::Candidate& candidate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_[card] = {++posts_, candidate};
}

std::optional<worker::v1::Candidate> AnchorOffer::NewFor(const std::string& card, uint64_t& seen) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Posted* first = nullptr;
  for (const auto& [from, posted] : last_) {
    if (from == card || posted.number <= seen) continue;
    if (first == nullptr || posted.number < first->number) first = &posted;
  }
  if (first == nullptr) return std::nullopt;
  seen = first->number;
  return first->candidate;
}

absl::Status CardTrials::Try(const search::Candidate& candidate, const Code& code, absl::Duration waited,
                             Claimant& claimant, v1::Trial& trial) {
  worker::v1::TrialRequest request;
  request.set_most_seconds(shared_.trial_seconds);
  request.mutable_candidate()->set_artifact(code.artifact);
  *request.mutable_candidate()->mutable_recipe() = trial.recipe();
  request.mutable_candidate()->set_deterministic(candidate.variant.family->manifest.deterministic());
  request.set_policy(tuning_key_.policy);
  if (absl::Status status = TimeAnchor(); !status.ok()) return status;
  request.set_leader_us(anchor_.YardstickUs());
  request.set_leader_sm_clock_mhz(anchor_.sm_clock_mhz());
  request.set_check_all(shared_.check_all);
  for (int attempt = 0; attempt < kDeviceTries; ++attempt) {
    claimant.Release();
    bool wanted = true;
    const absl::StatusOr<worker::v1::TrialResponse> response =
        use_.Trial(request, [&] { return wanted = claimant.Claim(); });
    if (!wanted) return absl::OkStatus();
    if (response.ok()) {
      trial.mutable_cost()->set_wait_ms(absl::ToDoubleMilliseconds(waited));
      trial.mutable_cost()->set_check_ms(response->check_ms());
      trial.mutable_cost()->set_time_ms(response->time_ms());
      trial.mutable_cost()->set_device_ms(response->device_ms());
      trial.set_verdict(response->verdict());
      trial.set_detail(Cleaned(response->detail(), kMostDetail));
      if (response->has_accuracy()) *trial.mutable_accuracy() = response->accuracy();
      if (response->has_timing()) *trial.mutable_timing() = response->timing();
      if (anchor_.Note(Timed(trial) ? trial.timing() : v1::Timing(), request.candidate())) {
        shared_.offer.Post(id(), request.candidate());
      }
      return absl::OkStatus();
    }
    // Stopped while waiting for the turn; or the device belongs to somebody else, and trying again cannot help.
    if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status())) return response.status();
    why_lost_ = response.status();
  }
  trial.set_verdict(v1::VERDICT_LOST);
  trial.set_detail(absl::StrCat("on the device: ", why_lost_.message()));
  return absl::OkStatus();
}

void CardTrials::AnchorAtKnown() {
  const search::Candidate* best = nullptr;
  for (const search::Candidate& candidate : shared_.candidates.all) {
    const std::optional<v1::Trial>& known = candidate.known;
    if (!known.has_value() || !Timed(*known) || known->timing().given_up()) continue;
    if (!catalog::IsOf(catalog::InstanceOf(*known), tuning_key_.device)) continue;
    if (best == nullptr || known->timing().median_us() < best->known->timing().median_us()) best = &candidate;
  }
  if (best == nullptr) return;
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(best->variant, tuning_key_.problem, tuning_key_.device);
  const absl::StatusOr<CodePtr> code = FindCode(shared_.code.store(), best->spec.key, tuning_key_.toolchain);
  if (!recipe.ok() || !code.ok() || (*code)->report.verdict != v1::VERDICT_OK) return;
  worker::v1::Candidate runs;
  runs.set_artifact((*code)->artifact);
  *runs.mutable_recipe() = *std::move(recipe);
  runs.set_deterministic(best->variant.family->manifest.deterministic());
  anchor_.Note(best->known->timing(), runs);
}

absl::Status CardTrials::TimeAnchor() {
  if (!std::exchange(anchored_, true)) AnchorAtKnown();
  if (const std::optional<worker::v1::Candidate> offered = shared_.offer.NewFor(id(), seen_offers_)) {
    anchor_.Offer(*offered);
  }
  const worker::v1::Candidate* const due = anchor_.Due();
  if (due == nullptr) return absl::OkStatus();
  worker::v1::TrialRequest request;
  *request.mutable_candidate() = *due;
  request.set_policy(tuning_key_.policy);
  request.set_time_only(true);
  const absl::StatusOr<worker::v1::TrialResponse> response = use_.Trial(request, [] { return true; });
  if (absl::IsCancelled(response.status()) || absl::IsFailedPrecondition(response.status())) return response.status();
  const bool timed = response.ok() && response->verdict() == v1::VERDICT_OK && response->timing().median_us() > 0;
  anchor_.Timed(timed ? std::make_optional(response->timing()) : std::nullopt);
  return absl::OkStatus();
}

}  // namespace attune::trials
