#include "server/space/recipe.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/sha256.h"
#include "server/space/evaluated.h"
#include "server/space/launch.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

using family::v1::KernelFamily;
using family::v1::Launch;

// A number as the compilers read it: a whole one as an integer, any other to its last bit.
std::string DefineText(absl::string_view name, double value) {
  if (value == std::floor(value) && std::abs(value) <= static_cast<double>(kMaxExact)) {
    return absl::StrCat("-D", name, "=", static_cast<int64_t>(value));
  }
  return absl::StrFormat("-D%s=%.17g", name, value);
}

// The main launch's entry first, each once.
std::vector<std::string> Entries(const KernelFamily& manifest) {
  std::vector<std::string> entries;
  for (const Launch& launch : manifest.launches()) {
    if (launch.main()) entries.push_back(launch.entry());
  }
  for (const Launch& launch : manifest.launches()) {
    if (std::find(entries.begin(), entries.end(), launch.entry()) == entries.end()) entries.push_back(launch.entry());
  }
  return entries;
}

// Borrows an evaluator with everything set for the variant; infeasible variants have no recipe and no spec.
absl::StatusOr<EvaluatorPool::Lease> Assigned(const Variant& variant, const Problem& problem,
                                              const v1::Device& device) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = variant.family->evaluators.Borrow(variant.family->manifest);
  if (!evaluator.ok()) return evaluator.status();
  if (const Rule* rule = (*evaluator)->Assign(problem, device, variant.values, Advice::kIgnored); rule != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(variant.ToText(), " is not feasible: ", rule->reason, " (", rule->text, ")"));
  }
  return evaluator;
}

// With everything set in `evaluator` for the variant and the problem.
absl::StatusOr<v1::LaunchRecipe> Recipe(const Variant& variant, const Problem& problem, const Evaluator& evaluator) {
  const KernelFamily& manifest = variant.family->manifest;
  const auto in_variant = [&variant](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(variant.ToText(), ": ", status.message()));
  };
  v1::LaunchRecipe recipe;
  std::map<std::string, int> scratch;
  for (const family::v1::Scratch& from : manifest.scratch()) {
    absl::StatusOr<int64_t> bytes =
        Whole(evaluator, absl::StrCat("scratch '", from.name(), "': bytes"), from.bytes(), 0, kMaxExact);
    if (!bytes.ok()) return in_variant(bytes.status());
    scratch[from.name()] = recipe.scratch_size();
    v1::ScratchBuffer& to = *recipe.add_scratch();
    to.set_name(from.name());
    to.set_bytes(*bytes);
    to.set_zero_before_first_run(from.zero());
  }
  for (const Launch& launch : manifest.launches()) {
    if (!launch.when().empty() && !evaluator.Holds(launch.when())) continue;
    if (launch.main()) recipe.set_main_launch(recipe.launches_size());
    const bool is_first = recipe.launches().empty();
    absl::Status status = EvaluateLaunch(evaluator, launch, problem, scratch, is_first, recipe.add_launches());
    if (!status.ok()) return in_variant(status);
  }
  return recipe;
}

}  // namespace

absl::StatusOr<CompileSpec> SpecFor(const Variant& variant, const Problem& problem, const v1::Device& device) {
  absl::StatusOr<EvaluatorPool::Lease> evaluator = Assigned(variant, problem, device);
  if (!evaluator.ok()) return evaluator.status();
  const KernelFamily& manifest = variant.family->manifest;
  CompileSpec spec;
  for (int i = 0; i < manifest.parameters_size(); ++i) {
    if (manifest.parameters(i).binding() != family::v1::Parameter::BINDING_COMPILE_TIME) continue;
    spec.options.push_back(absl::StrCat("-D", manifest.parameters(i).name(), "=", variant.values[i]));
  }
  for (const family::v1::Named& define : manifest.defines()) {
    const double value = (*evaluator)->Value(define.expr());
    if (!std::isfinite(value)) {
      return Unusable(absl::StrCat(variant.ToText(), ": defines '", define.name(), "': expr"), define.expr(), value,
                      "finite numbers");
    }
    spec.options.push_back(DefineText(define.name(), value));
  }
  spec.options.insert(spec.options.end(), manifest.compile_options().begin(), manifest.compile_options().end());
  spec.entries = Entries(manifest);
  std::string all =
      absl::StrCat(v1::Backend_Name(manifest.backend()), "\n", device.target(), "\n", variant.family->source_hash);
  for (const std::string& option : spec.options) absl::StrAppend(&all, "\n", option);
  spec.key = Sha256(all);
  return spec;
}

absl::StatusOr<v1::LaunchRecipe> RecipeFor(const Variant& variant, const Problem& problem, const v1::Device& device) {
  const absl::StatusOr<EvaluatorPool::Lease> evaluator = Assigned(variant, problem, device);
  if (!evaluator.ok()) return evaluator.status();
  return Recipe(variant, problem, **evaluator);
}

absl::StatusOr<v1::LaunchRecipe> RecipeAndDefines(const Variant& variant, const Problem& problem,
                                                  const v1::Device& device, std::vector<double>* defines) {
  const absl::StatusOr<EvaluatorPool::Lease> evaluator = Assigned(variant, problem, device);
  if (!evaluator.ok()) return evaluator.status();
  defines->clear();
  for (const family::v1::Named& define : variant.family->manifest.defines()) {
    defines->push_back((*evaluator)->Value(define.expr()));
  }
  return Recipe(variant, problem, **evaluator);
}

}  // namespace attune::space
