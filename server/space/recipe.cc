#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/sha256.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

using family::v1::Argument;
using family::v1::KernelFamily;
using family::v1::Launch;

// Whole numbers are exact in a double up to here.
constexpr int64_t kMaxExact = int64_t{1} << 53;

absl::Status Unusable(absl::string_view field, const std::string& text, double value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is '", text, "', which comes to ", value, "; allowed are ", allowed));
}

// Expressions are doubles; what becomes an integer must be one, and fit.
absl::StatusOr<int64_t> Whole(const Evaluator& evaluator, absl::string_view field, const std::string& text,
                              int64_t least, int64_t most) {
  const double value = evaluator.Value(text);
  const bool fits = value >= static_cast<double>(least) && value <= static_cast<double>(most);
  if (!fits || value != std::floor(value)) {
    return Unusable(field, text, value, absl::StrCat("whole numbers from ", least, " to ", most));
  }
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> WholeOr(const Evaluator& evaluator, absl::string_view field, const std::string& text,
                                int64_t least, int64_t otherwise) {
  if (text.empty()) return otherwise;
  return Whole(evaluator, field, text, least, std::numeric_limits<int32_t>::max());
}

// `field` is "...grid_" or "...block_".
absl::Status EvaluateDim(const Evaluator& evaluator, const std::string& field, const std::string& x,
                         const std::string& y, const std::string& z, v1::Dim3* out) {
  const absl::StatusOr<int64_t> sizes[] = {WholeOr(evaluator, field + "x", x, 1, 1),
                                           WholeOr(evaluator, field + "y", y, 1, 1),
                                           WholeOr(evaluator, field + "z", z, 1, 1)};
  for (const absl::StatusOr<int64_t>& size : sizes) {
    if (!size.ok()) return size.status();
  }
  out->set_x(*sizes[0]);
  out->set_y(*sizes[1]);
  out->set_z(*sizes[2]);
  return absl::OkStatus();
}

absl::Status EvaluateArgument(const Evaluator& evaluator, const std::string& field, const Argument& from,
                              const std::map<std::string, int>& scratch, v1::KernelArg* to) {
  switch (from.kind_case()) {
    case Argument::kBuffer:
      to->mutable_buffer()->set_role(from.buffer());
      return absl::OkStatus();
    case Argument::kScratch:
      to->mutable_buffer()->set_role(v1::BUFFER_ROLE_SCRATCH);
      to->mutable_buffer()->set_scratch(scratch.at(from.scratch()));
      return absl::OkStatus();
    case Argument::kI32: {
      absl::StatusOr<int64_t> value =
          Whole(evaluator, field, from.i32(), std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      if (value.ok()) to->set_i32(static_cast<int32_t>(*value));
      return value.status();
    }
    case Argument::kI64: {
      absl::StatusOr<int64_t> value = Whole(evaluator, field, from.i64(), -kMaxExact, kMaxExact);
      if (value.ok()) to->set_i64(*value);
      return value.status();
    }
    case Argument::kF32: {
      const double value = evaluator.Value(from.f32());
      if (!(std::abs(value) <= double{std::numeric_limits<float>::max()})) {
        return Unusable(field, from.f32(), value, "finite floats");
      }
      to->set_f32(static_cast<float>(value));
      return absl::OkStatus();
    }
    case Argument::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("an argument without a kind passed the manifest's check");
}

absl::Status EvaluateLaunch(const Evaluator& evaluator, const Launch& from, const std::map<std::string, int>& scratch,
                            v1::KernelLaunch* to) {
  const std::string field = absl::StrCat("launches '", from.entry(), "': ");
  to->set_entry(from.entry());
  absl::Status status =
      EvaluateDim(evaluator, field + "grid_", from.grid_x(), from.grid_y(), from.grid_z(), to->mutable_grid());
  if (!status.ok()) return status;
  status =
      EvaluateDim(evaluator, field + "block_", from.block_x(), from.block_y(), from.block_z(), to->mutable_block());
  if (!status.ok()) return status;
  absl::StatusOr<int64_t> shared =
      WholeOr(evaluator, field + "dynamic_shared_bytes", from.dynamic_shared_bytes(), 0, 0);
  if (!shared.ok()) return shared.status();
  to->set_dynamic_shared_bytes(*shared);
  for (int i = 0; i < from.args_size(); ++i) {
    status = EvaluateArgument(evaluator, absl::StrCat(field, "args[", i, "]"), from.args(i), scratch, to->add_args());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

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
  if (const Rule* rule = (*evaluator)->Assign(problem, device, variant.values); rule != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(variant.ToText(), " is not feasible: ", rule->reason, " (", rule->text, ")"));
  }
  return evaluator;
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
  absl::StatusOr<EvaluatorPool::Lease> evaluator = Assigned(variant, problem, device);
  if (!evaluator.ok()) return evaluator.status();
  const KernelFamily& manifest = variant.family->manifest;
  const auto in_variant = [&variant](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(variant.ToText(), ": ", status.message()));
  };
  v1::LaunchRecipe recipe;
  std::map<std::string, int> scratch;
  for (const family::v1::Scratch& from : manifest.scratch()) {
    absl::StatusOr<int64_t> bytes =
        Whole(**evaluator, absl::StrCat("scratch '", from.name(), "': bytes"), from.bytes(), 0, kMaxExact);
    if (!bytes.ok()) return in_variant(bytes.status());
    scratch[from.name()] = recipe.scratch_size();
    v1::ScratchBuffer& to = *recipe.add_scratch();
    to.set_name(from.name());
    to.set_bytes(*bytes);
    to.set_zero_before_first_run(from.zero());
  }
  for (const Launch& launch : manifest.launches()) {
    if (!launch.when().empty() && !(*evaluator)->Holds(launch.when())) continue;
    if (launch.main()) recipe.set_main_launch(recipe.launches_size());
    absl::Status status = EvaluateLaunch(**evaluator, launch, scratch, recipe.add_launches());
    if (!status.ok()) return in_variant(status);
  }
  return recipe;
}

}  // namespace attune::space
