#include "server/catalog/answers/derived_answer.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/answers/predicted_time.h"
#include "server/catalog/answers/problem_distance.h"
#include "server/catalog/code_rejection.h"
#include "server/catalog/families.h"
#include "server/catalog/prior/shipped_prior.h"

namespace attune::catalog {

namespace {

// How far away, in octaves (Distance), an answer may come from, beyond which a family's guess is better; and from where
// on only if the guess is of its family, too: of 30 shapes on an H200 the winners that came from 3 to 6 octaves away
// were 1.2 to 1.7 times as slow as the guess where it was another family's, and else like it
// (docs/benchmarks/2026-11-24-h200-first-answers.md).
constexpr double kFarthest = 6;
constexpr double kFarForAnotherFamily = 3;

// What was shipped counts as that much farther away than what was tuned here: what comes from four octaves away was
// slower than the guess in half of the cases (docs/benchmarks/2026-11-26-h100-nearest.md). Another model's more.
constexpr double kShippedFarther = 2;
constexpr double kOtherModelFarther = 3;
// Within this factor were all times that were predicted from another model's.
constexpr double kOtherModelSpread = 2;

// How much farther away, in octaves (Distance), what is launched as advised may be than what is not.
constexpr double kWorthOfAdvice = 1;

// A variant for a problem it was not tuned for, but for where it comes from; null when it has no recipe there.
std::shared_ptr<Answer> Derive(const space::Variant& variant, const Problem& problem, const v1::Device& device,
                               v1::Policy policy, const Host& host) {
  absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, problem, device);
  absl::StatusOr<space::CompileSpec> spec = space::SpecFor(variant, problem, device);
  if (!recipe.ok() || !spec.ok()) return nullptr;
  auto answer = std::make_shared<Answer>();
  answer->problem = problem;
  answer->policy = policy;
  answer->device_class = device.fingerprint();
  answer->variant = variant;
  answer->compile_key = spec->key;
  answer->toolchain = Toolchain(host, device.backend()).value_or("");
  v1::GetBestResponse& response = answer->response;
  *response.mutable_problem() = ToProto(problem);
  response.set_device_id(device.id());
  *response.mutable_variant() = variant.ToProto();
  *response.mutable_recipe() = *std::move(recipe);
  return answer;
}

// "KV_SPLITS 8 to 4"; empty when they are equal.
std::string Changes(const space::Variant& from, const space::Variant& to) {
  std::vector<std::string> changes;
  for (size_t i = 0; i < to.values.size(); ++i) {
    if (from.values[i] == to.values[i]) continue;
    changes.push_back(absl::StrCat(from.family->manifest.parameters(static_cast<int>(i)).name(), " ", from.values[i],
                                   " to ", to.values[i]));
  }
  return absl::StrJoin(changes, ", ");
}

// "tuned on an NVIDIA H200 before this server was shipped"; empty for what was tuned here.
std::string WhereShipped(const Answer& source) {
  return IsShipped(source)
             ? absl::StrCat("tuned on an ", source.response.provenance_detail(), " before this server was shipped")
             : "";
}

// How long a launch of so many CTAs takes, from how long the source does, which has a time.
v1::PredictedTime PredictedFrom(const Answer& source, const Problem& problem, int64_t ctas, const v1::Device& device) {
  v1::PredictedTime predicted = PredictTime({problem, ctas}, source.response.timing().median_us(),
                                            {source.problem, source.response.geometry().ctas()}, device);
  if (IsShipped(source) && source.response.provenance_detail() != device.model()) {
    predicted.set_low_us(predicted.us() / kOtherModelSpread);
    predicted.set_high_us(predicted.us() * kOtherModelSpread);
  }
  return predicted;
}

// `variant`: that of the source, or as it was re-fitted.
AnswerPtr DeriveFrom(const Answer& source, const space::Variant& variant, const Problem& problem,
                     const v1::Device& device, v1::Policy policy, const Host& host) {
  const std::shared_ptr<Answer> answer = Derive(variant, problem, device, policy, host);
  if (answer == nullptr) return nullptr;
  v1::GetBestResponse& response = answer->response;
  response.set_provenance(v1::PROVENANCE_NEAREST);
  const std::string changes = Changes(*source.variant, variant);
  response.set_provenance_detail(
      absl::StrCat("from ", ToText(source.problem), changes.empty() ? "" : "; for this shape ", changes,
                   IsShipped(source) ? absl::StrCat("; ", WhereShipped(source), ", and not here") : ""));
  *response.mutable_geometry() = space::GeometryOf(response.recipe(), source.resources, device);
  if (!IsShipped(source)) *response.mutable_timing() = source.response.timing();
  *response.mutable_measure_time() = source.response.measure_time();
  *response.mutable_accuracy() = source.response.accuracy();
  response.set_trial(source.response.trial());
  if (source.response.timing().median_us() > 0) {
    *response.mutable_predicted() = PredictedFrom(source, problem, response.geometry().ctas(), device);
  }
  answer->timed_by = source.timed_by;
  if (source.compile_key == answer->compile_key) response.set_artifact_sha256(source.response.artifact_sha256());
  return answer;
}

bool DifferInLayoutAlone(const Problem& a, Problem b) {
  b.layout = a.layout;
  return a == b;
}

// Those that say something of the problem, and their distance from it, nearest first.
std::vector<std::pair<double, AnswerPtr>> NearestFirst(std::vector<AnswerPtr> known, const Problem& problem,
                                                       const v1::Device& device) {
  std::vector<std::pair<double, AnswerPtr>> near;
  for (AnswerPtr& answer : known) {
    const bool shipped = IsShipped(*answer);
    if (!answer->variant.has_value() || (answer->problem == problem && !shipped)) continue;
    std::optional<double> distance = Distance(problem, answer->problem);
    if (!distance.has_value()) continue;
    if (shipped) {
      *distance += answer->response.provenance_detail() == device.model() ? kShippedFarther : kOtherModelFarther;
    }
    near.emplace_back(*distance, std::move(answer));
  }
  // Of equally near ones the same shape in another layout first, then in the order of their texts, so that the answer
  // is the same every time.
  std::sort(near.begin(), near.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const bool same_shape = DifferInLayoutAlone(a.second->problem, problem);
    if (same_shape != DifferInLayoutAlone(b.second->problem, problem)) return same_shape;
    return ToText(a.second->problem) < ToText(b.second->problem);
  });
  return near;
}

}  // namespace

std::vector<space::Variant> VariantsNearby(std::vector<AnswerPtr> known, const Problem& problem,
                                           const v1::Device& device, size_t most) {
  std::vector<space::Variant> variants;
  std::set<std::string> texts;
  for (const auto& [distance, source] : NearestFirst(std::move(known), problem, device)) {
    if (variants.size() >= most) break;
    if (IsShipped(*source) && distance > kFarthest) continue;
    absl::StatusOr<space::Variant> variant = space::Refit(*source->variant, problem, device);
    if (!variant.ok() && space::Feasible(*source->variant, problem, device).ok()) variant = *source->variant;
    if (variant.ok() && texts.insert(variant->ToText()).second) variants.push_back(*std::move(variant));
  }
  return variants;
}

AnswerPtr MakeNearest(std::vector<AnswerPtr> known, const Problem& problem, const v1::Device& device, v1::Policy policy,
                      const Host& host, const CodeSupply* supply) {
  const auto derive = [&](const Answer& source, const space::Variant& variant) -> AnswerPtr {
    AnswerPtr answer = DeriveFrom(source, variant, problem, device, policy, host);
    // Another layout's code has not been checked here.
    if (answer != nullptr && source.problem.layout != problem.layout && source.compile_key != answer->compile_key) {
      return nullptr;
    }
    return answer != nullptr && supply != nullptr && supply->IsUseless(answer->compile_key) ? nullptr : answer;
  };
  // Asked for far sources alone: near ones are most, and answer without a guess.
  std::optional<absl::StatusOr<space::Variant>> guess;
  const auto guessed_otherwise = [&](const space::Variant& variant) {
    if (!guess.has_value()) guess = HeuristicVariant(host.families, problem, device);
    return guess->ok() && (*guess)->family->name() != variant.family->name();
  };
  // The nearest that can be launched at all, until one not much farther away is launched as advised.
  AnswerPtr unadvised;
  double farthest = kFarthest;
  for (const auto& [distance, source] : NearestFirst(std::move(known), problem, device)) {
    if (distance > farthest) break;
    const bool far = distance >= kFarForAnotherFamily || IsShipped(*source);
    if (far && guessed_otherwise(*source->variant)) continue;
    if (const auto fitting = space::Refit(*source->variant, problem, device); fitting.ok()) {
      if (AnswerPtr answer = derive(*source, *fitting); answer != nullptr) return answer;
    } else if (unadvised == nullptr && space::Feasible(*source->variant, problem, device).ok()) {
      unadvised = derive(*source, *source->variant);
      if (unadvised != nullptr) farthest = std::min(kFarthest, distance + kWorthOfAdvice);
    }
  }
  return unadvised;
}

AnswerPtr MakeExpected(std::vector<AnswerPtr> known, const Forecast& forecast, const Problem& problem,
                       const v1::Device& device, v1::Policy policy, const Host& host, const CodeSupply* supply) {
  const std::shared_ptr<Answer> answer = Derive(forecast.variant, problem, device, policy, host);
  if (answer == nullptr || (supply != nullptr && supply->IsUseless(answer->compile_key))) return nullptr;
  v1::GetBestResponse& response = answer->response;
  response.set_provenance(v1::PROVENANCE_NEAREST);
  *response.mutable_geometry() =
      space::GeometryOf(response.recipe(), ResourcesOf(store::CompiledArtifact(), response.recipe()), device);
  std::string detail = absl::StrCat("expected to be the fastest of ", forecast.among, " variants, from the trials of ",
                                    forecast.problems, " problems");
  if (forecast.shipped > 0)
    absl::StrAppend(&detail, ", ", forecast.shipped, " of them tuned before this server was shipped");
  for (const auto& [distance, source] : NearestFirst(std::move(known), problem, device)) {
    if (source->response.timing().median_us() <= 0) continue;
    absl::StrAppend(&detail, "; its time is predicted from ", ToText(source->problem), IsShipped(*source) ? ", " : "",
                    WhereShipped(*source));
    *response.mutable_predicted() = PredictedFrom(*source, problem, response.geometry().ctas(), device);
    break;
  }
  response.set_provenance_detail(detail);
  return answer;
}

absl::StatusOr<space::Variant> HeuristicVariant(const std::vector<std::shared_ptr<const space::Family>>& families,
                                                const Problem& problem, const v1::Device& device,
                                                const space::Accepted& accepted) {
  auto some = FamiliesFor(families, device.backend(), family::v1::ROLE_SEARCH);
  std::stable_sort(some.begin(), some.end(), [](const auto& a, const auto& b) {
    return a->manifest.guess_precedence() > b->manifest.guess_precedence();
  });
  for (const std::shared_ptr<const space::Family>& family : some) {
    if (!space::Applies(*family, problem, device).ok()) continue;
    absl::StatusOr<space::Variant> guess = space::Guess(family, problem, device, accepted);
    if (guess.ok()) return guess;
  }
  return absl::NotFoundError(absl::StrCat("no kernel family has a variant for ", ToText(problem), " on ", device.id()));
}

AnswerPtr MakeHeuristic(const Problem& problem, const v1::Device& device, v1::Policy policy, const Host& host,
                        const CodeSupply* supply) {
  absl::StatusOr<space::Variant> variant = absl::NotFoundError("");
  // A key is a hash to compute: nobody needs one while all codes are good.
  if (supply != nullptr && supply->useless() > 0) {
    variant = HeuristicVariant(host.families, problem, device, [&](const space::Variant& one) {
      const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(one, problem, device);
      return spec.ok() && !supply->IsUseless(spec->key);
    });
  }
  if (!variant.ok()) variant = HeuristicVariant(host.families, problem, device);
  if (!variant.ok()) return nullptr;
  const std::shared_ptr<Answer> answer = Derive(*variant, problem, device, policy, host);
  if (answer == nullptr) return nullptr;
  v1::GetBestResponse& response = answer->response;
  response.set_provenance(v1::PROVENANCE_HEURISTIC);
  response.set_provenance_detail("heuristic default from the device's limits, not benchmarked");
  *response.mutable_geometry() =
      space::GeometryOf(response.recipe(), ResourcesOf(store::CompiledArtifact(), response.recipe()), device);
  return answer;
}

}  // namespace attune::catalog
