#include "server/catalog/code_rejection.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/attune/quote.h"

namespace attune::catalog {

namespace {

// Of the recipe's main launch; null where the compiler said nothing.
const worker::v1::CompileResponse::Entry* MainEntry(const store::CompiledArtifact& report,
                                                    const v1::LaunchRecipe& recipe) {
  if (recipe.main_launch() < 0 || recipe.main_launch() >= recipe.launches_size()) return nullptr;
  const std::string& name = recipe.launches(recipe.main_launch()).entry();
  const auto it = std::find_if(report.entries.begin(), report.entries.end(),
                               [&](const auto& entry) { return entry.name() == name; });
  return it == report.entries.end() ? nullptr : &*it;
}

}  // namespace

v1::Resources ResourcesOf(const store::CompiledArtifact& report, const v1::LaunchRecipe& recipe) {
  v1::Resources resources;
  if (recipe.main_launch() < 0 || recipe.main_launch() >= recipe.launches_size()) return resources;
  const v1::KernelLaunch& launch = recipe.launches(recipe.main_launch());
  resources.set_shared_bytes(launch.dynamic_shared_bytes());
  if (const auto* entry = MainEntry(report, recipe); entry != nullptr) {
    resources.set_registers(entry->registers());
    resources.set_spill_bytes(entry->spill_bytes());
    resources.set_shared_bytes(entry->static_shared_bytes() + launch.dynamic_shared_bytes());
    resources.set_stack_bytes(entry->stack_bytes());
  }
  return resources;
}

std::string InfeasibleReason(const store::CompiledArtifact& report, const v1::Resources& resources,
                             const v1::Geometry& geometry, const v1::LaunchRecipe& recipe, const v1::Device& device) {
  if (device.backend() == v1::BACKEND_CUDA && resources.spill_bytes() > 0) {
    return absl::StrCat("spills ", resources.spill_bytes(), " bytes a thread at ", resources.registers(), " registers");
  }
  if (const auto* entry = MainEntry(report, recipe); entry != nullptr && !entry->performance_loss().empty()) {
    return entry->performance_loss();
  }
  if (device.shared_bytes_per_block() > 0 && resources.shared_bytes() > device.shared_bytes_per_block()) {
    return absl::StrCat("needs ", resources.shared_bytes(), " bytes of shared memory a block; ", device.id(), " has ",
                        device.shared_bytes_per_block());
  }
  if (geometry.ctas_per_sm() < 1) {
    const v1::Dim3& block = recipe.launches(recipe.main_launch()).block();
    return absl::StrCat("cannot be resident: ", block.x() * block.y() * block.z(), " threads of ",
                        resources.registers(), " registers and ", resources.shared_bytes(),
                        " bytes of shared memory a block exceed one SM of ", device.id());
  }
  return "";
}

std::string GistOf(absl::string_view log) {
  constexpr size_t kMost = 500;
  absl::string_view first;
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::StrContains(line, "error")) return ErrorLine(line, kMost);
    if (first.empty()) first = line;
  }
  return ErrorLine(first, kMost);
}

}  // namespace attune::catalog
