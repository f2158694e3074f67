#include "server/jobs/tune_job.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/objective.h"
#include "proto/attune/problem.h"
#include "server/base/reason.h"
#include "server/base/seed.h"
#include "server/catalog/families.h"
#include "server/promotion/energy.h"
#include "server/space/space.h"
#include "server/trials/store_wait.h"
#include "server/trials/tuning_key.h"
#include "server/verify/footprint.h"

namespace attune::jobs {
namespace {

// Whether some family of those named, or of all, applies; a name that no family has is a mistake.
absl::Status CheckFamilies(const v1::TuneRequest& request, const Problem& problem, const v1::Device& device,
                           const catalog::Host& host) {
  const std::vector<std::string> wanted(request.families().begin(), request.families().end());
  const std::vector<std::string> where(request.where().begin(), request.where().end());
  const auto families = catalog::FamiliesFor(host.families, device.backend(), family::v1::ROLE_SEARCH, wanted);
  std::vector<std::string> reasons;
  for (const std::string& name : wanted) {
    if (std::none_of(families.begin(), families.end(), [&](const auto& family) { return family->name() == name; })) {
      reasons.push_back(absl::StrCat(name, ": there is no such family for ", device.id()));
    }
  }
  if (!reasons.empty()) return absl::FailedPreconditionError(absl::StrJoin(reasons, "; "));
  for (const std::shared_ptr<const space::Family>& family : families) {
    absl::Status applies = space::Applies(*family, problem, device);
    if (applies.ok()) applies = space::Understands(*family, where);
    if (applies.ok()) return applies;
    reasons.push_back(absl::StrCat(family->name(), ": ", applies.message()));
  }
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("no kernel family applies to ", ToText(problem), " on ", device.id(), ": ",
                                     reasons.empty() ? "there is none" : absl::StrJoin(reasons, "; "))),
                    "INFEASIBLE");
}

// The variants that a request names, which must be feasible.
absl::StatusOr<std::vector<space::Variant>> Required(const v1::TuneRequest& request, const Problem& problem,
                                                     const v1::Device& device, const catalog::Host& host) {
  const auto families = catalog::FamiliesFor(host.families, device.backend(), family::v1::ROLE_SEARCH);
  std::vector<space::Variant> required;
  for (const v1::Variant& named : request.required()) {
    absl::StatusOr<space::Variant> variant = space::ParseVariant(named.text(), families);
    if (!variant.ok()) return variant.status();
    if (absl::Status feasible = space::Feasible(*variant, problem, device); !feasible.ok()) {
      return WithReason(absl::FailedPreconditionError(absl::StrCat("required[", required.size(), "] is ", named.text(),
                                                                   ", which is not feasible for ", ToText(problem),
                                                                   ": ", feasible.message())),
                        "INFEASIBLE");
    }
    required.push_back(*std::move(variant));
  }
  return required;
}

}  // namespace

// Of the problems that a request names; NotFound where one has none.
absl::StatusOr<std::vector<space::Variant>> TuneJob::SeedsOf(const v1::TuneRequest& request,
                                                             const catalog::TuningKey& tuning_key) const {
  std::vector<space::Variant> seeds;
  for (int i = 0; i < request.seed_from_size(); ++i) {
    absl::StatusOr<std::vector<space::Variant>> some = tuner_.SeedsFrom(request.seed_from(i), tuning_key);
    if (!some.ok()) {
      return absl::Status(some.status().code(), absl::StrCat("seed_from[", i, "]: ", some.status().message()));
    }
    for (space::Variant& seed : *some) {
      const bool there = std::any_of(seeds.begin(), seeds.end(),
                                     [&](const space::Variant& other) { return other.ToText() == seed.ToText(); });
      if (!there) seeds.push_back(std::move(seed));
    }
  }
  return seeds;
}

JobTerms TuneJob::TermsOf(const v1::TuneRequest& request) const {
  JobTerms terms;
  terms.device = request.device_id();
  terms.priority = request.background() ? trials::Priority::kBackground : trials::Priority::kInteractive;
  if (request.on_miss()) terms.priority = trials::Priority::kIdle;
  terms.sisters = static_cast<size_t>(std::max<int64_t>(request.cards() - 1, 0));
  return terms;
}

void TuneJob::SetDevice(const std::string& device_id, v1::TuneRequest& request) const {
  request.set_device_id(device_id);
}

v1::TuneRequest TuneJob::Canonical(v1::TuneRequest request) const {
  std::sort(request.mutable_families()->begin(), request.mutable_families()->end());
  if (request.cards() == 1) request.clear_cards();
  request.set_objective(UnlessTime(request.objective()));
  if (IsByEnergy(request.objective())) request.set_energy(true);
  return request;
}

absl::StatusOr<JobTitle> TuneJob::AdmitRequest(const v1::TuneRequest& request,
                                               const std::vector<const v1::Device*>& cards) const {
  const v1::Device& device = *cards.front();
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  if (absl::Status status = CheckFamilies(request, *problem, device, host_); !status.ok()) return status;
  if (const auto required = Required(request, *problem, device, host_); !required.ok()) return required.status();
  const absl::Status counts = promotion::CheckCountsEnergy(request.objective(), request.energy(), cards);
  if (!counts.ok()) return counts;
  if (absl::Status fits = verify::CheckFits(*problem, device, verify::HostBytes()); !fits.ok()) return fits;
  if (!request.seed_from().empty()) {
    const auto tuning_key = trials::MakeTuningKey(*problem, device, request.policy(), host_);
    if (!tuning_key.ok()) return tuning_key.status();
    if (const auto seeds = SeedsOf(request, *tuning_key); !seeds.ok()) return seeds.status();
  }
  return JobTitle{absl::StrCat("tune ", request.on_miss() ? "on a miss " : "", ToText(*problem), " on ", device.id(),
                               request.cards() > 2   ? absl::StrCat(" and ", request.cards() - 1, " more cards")
                               : request.cards() > 1 ? " and another card"
                                                     : ""),
                  ToText(*problem)};
}

absl::StatusOr<JobKind::Fill> TuneJob::RunRequest(const v1::TuneRequest& request, const JobRun& run) const {
  const absl::StatusOr<Problem> problem = FromProto(request.problem());
  if (!problem.ok()) return problem.status();
  absl::StatusOr<catalog::TuningKey> tuning_key =
      trials::MakeTuningKey(*problem, run.slot.device(), request.policy(), host_);
  if (!tuning_key.ok()) return tuning_key.status();
  search::SearchSpec spec;
  spec.tuning_key = *std::move(tuning_key);
  spec.families = {request.families().begin(), request.families().end()};
  spec.strategy = request.strategy();
  spec.seed = SeedFrom(request.request_id().empty() ? run.job.name : request.request_id());
  spec.retry_known = request.retry_known();
  spec.check_all = request.check_all();
  spec.selection = space::SelectionOf(request);
  absl::StatusOr<std::vector<space::Variant>> required = Required(request, *problem, run.slot.device(), host_);
  if (!required.ok()) return required.status();
  spec.required = *std::move(required);
  absl::StatusOr<std::vector<space::Variant>> seeds =
      trials::ReadFor(run.job, [&] { return SeedsOf(request, spec.tuning_key); });
  if (!seeds.ok()) return seeds.status();
  spec.seeds = request.on_miss() ? tuner_.SeedsFor(spec.tuning_key) : *std::move(seeds);
  promotion::ContestRules rules;
  rules.energy = request.energy();
  rules.objective = request.objective();
  std::vector<trials::Sister> sisters;
  for (trials::DeviceSlot* slot : run.sisters) {
    absl::StatusOr<catalog::TuningKey> key = trials::MakeTuningKey(*problem, slot->device(), request.policy(), host_);
    if (!key.ok()) return key.status();
    sisters.push_back({slot, *std::move(key)});
  }
  absl::StatusOr<TuneOutcome> outcome = tuner_.Tune(spec, run.slot, run.job, rules, sisters);
  if (!outcome.ok()) return outcome.status();
  return [result = std::move(outcome->result)](v1::Operation& operation) {
    *operation.mutable_tune() = result;
    return absl::OkStatus();
  };
}

}  // namespace attune::jobs
