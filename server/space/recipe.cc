#include <cmath>
#include <limits>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/base/sha256.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

using family::v1::Argument;
using family::v1::KernelFamily;
using family::v1::Launch;

// Expressions are doubles; what becomes an integer must be one, and fit.
template <typename Integer>
absl::StatusOr<Integer> Whole(const Evaluator& evaluator, const std::string& text) {
  const double value = evaluator.Value(text);
  // The greatest double that both int64 and double hold exactly is far above any size here.
  const double limit = sizeof(Integer) == 4 ? double{std::numeric_limits<int32_t>::max()} : 9007199254740992.0;
  if (!(std::abs(value) <= limit) || value != std::floor(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' comes to ", value, "; allowed are whole numbers to ", limit));
  }
  return static_cast<Integer>(value);
}

absl::StatusOr<int64_t> WholeOr(const Evaluator& evaluator, const std::string& text, int64_t otherwise) {
  if (text.empty()) return otherwise;
  return Whole<int64_t>(evaluator, text);
}

absl::Status EvaluateDim(const Evaluator& evaluator, const std::string& x, const std::string& y, const std::string& z,
                         v1::Dim3* out) {
  const std::string* const texts[] = {&x, &y, &z};
  int64_t sizes[3];
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<int64_t> size = WholeOr(evaluator, *texts[i], 1);
    if (!size.ok()) return size.status();
    if (*size < 1)
      return absl::InvalidArgumentError(absl::StrCat("'", *texts[i], "' comes to ", *size, "; at least 1"));
    sizes[i] = *size;
  }
  out->set_x(sizes[0]);
  out->set_y(sizes[1]);
  out->set_z(sizes[2]);
  return absl::OkStatus();
}

absl::Status EvaluateArgument(const Evaluator& evaluator, const Argument& from,
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
      absl::StatusOr<int32_t> value = Whole<int32_t>(evaluator, from.i32());
      if (value.ok()) to->set_i32(*value);
      return value.status();
    }
    case Argument::kI64: {
      absl::StatusOr<int64_t> value = Whole<int64_t>(evaluator, from.i64());
      if (value.ok()) to->set_i64(*value);
      return value.status();
    }
    case Argument::kF32:
      to->set_f32(static_cast<float>(evaluator.Value(from.f32())));
      return absl::OkStatus();
    case Argument::KIND_NOT_SET:
      break;
  }
  return absl::InternalError("an argument without a kind passed the manifest's check");
}

absl::Status EvaluateLaunch(const Evaluator& evaluator, const Launch& from, const std::map<std::string, int>& scratch,
                            v1::KernelLaunch* to) {
  to->set_entry(from.entry());
  absl::Status status = EvaluateDim(evaluator, from.grid_x(), from.grid_y(), from.grid_z(), to->mutable_grid());
  if (!status.ok()) return status;
  status = EvaluateDim(evaluator, from.block_x(), from.block_y(), from.block_z(), to->mutable_block());
  if (!status.ok()) return status;
  absl::StatusOr<int64_t> shared = WholeOr(evaluator, from.dynamic_shared_bytes(), 0);
  if (!shared.ok()) return shared.status();
  to->set_dynamic_shared_bytes(*shared);
  for (const Argument& arg : from.args()) {
    status = EvaluateArgument(evaluator, arg, scratch, to->add_args());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
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
    spec.options.push_back(value == std::floor(value) && std::abs(value) < 1e15
                               ? absl::StrCat("-D", define.name(), "=", static_cast<int64_t>(value))
                               : absl::StrCat("-D", define.name(), "=", value));
  }
  spec.options.insert(spec.options.end(), manifest.compile_options().begin(), manifest.compile_options().end());
  for (const Launch& launch : manifest.launches()) {
    if (launch.main()) {
      spec.entries.insert(spec.entries.begin(), launch.entry());
    } else {
      spec.entries.push_back(launch.entry());
    }
  }
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
    absl::StatusOr<int64_t> bytes = Whole<int64_t>(**evaluator, from.bytes());
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
