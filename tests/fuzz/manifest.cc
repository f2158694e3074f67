// A family's manifest: refused with the field that is wrong, or good for all that is done with it.
#include "server/space/manifest.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "server/base/device_profile.h"
#include "server/space/domains.h"
#include "server/space/space.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

using family::v1::KernelFamily;

void ExpectRefusals(const std::vector<absl::Status>& mistakes) {
  for (const absl::Status& mistake : mistakes) {
    ExpectRefusal(mistake, absl::StatusCode::kInvalidArgument, {" "});
  }
}

// What becomes of a variant on its way to a device.
void Use(const space::Variant& variant, const Problem& problem, const v1::Device& device) {
  const absl::StatusOr<space::Variant> read = space::ParseVariant(variant.ToText(), {variant.family});
  Expect(read.ok() && read->values == variant.values, absl::StrCat(variant.ToText(), " reads back as itself"));
  Expect(space::Feasible(variant, problem, device).ok(), "what was drawn is feasible");
  (void)space::SpecFor(variant, problem, device);
  (void)space::Features(variant, problem, device);
  const absl::StatusOr<v1::LaunchRecipe> recipe = space::RecipeFor(variant, problem, device);
  if (!recipe.ok()) return;
  (void)space::GeometryOf(*recipe, v1::Resources(), device);
  (void)space::DomainsOf(variant, problem, device, v1::Domain::AXIS_KV, problem.seq_kv - 4, problem.seq_kv + 4);
}

// Looks at a few thousand points of the space and no more.
void UseFamily(const KernelFamily& manifest) {
  static const auto* const problem = new Problem(*ParseProblem("b2.h4.kvh2.q48.kv200.d64.f16.causal"));
  static const auto* const device = new v1::Device(*DeviceProfile("l4"));
  const auto family = std::make_shared<space::Family>();
  family->manifest = manifest;
  family->sources = {{"kernel.cu", "// nothing"}};
  const auto soon = [] { return true; };
  if (!space::Applies(*family, *problem, *device).ok()) return;
  (void)space::Enumerate(family, *problem, *device, soon);
  const auto drawn = space::Sample(family, *problem, *device, 2, 1, soon);
  if (!drawn.ok()) return;
  for (const space::Variant& variant : *drawn) Use(variant, *problem, *device);
}

ATTUNE_FUZZ_TARGET(manifest) {
  const std::string text(input);
  const absl::StatusOr<KernelFamily> manifest = space::ParseManifest(text);
  if (!manifest.ok()) return ExpectRefusal(manifest.status(), absl::StatusCode::kInvalidArgument, {":"});
  const std::vector<absl::Status> mistakes = space::MistakesIn(*manifest);
  const absl::Status first = space::CheckManifest(*manifest);
  Expect(mistakes.empty() ? first.ok() : first == mistakes.front(), "the first mistake is the one that is said");
  if (!mistakes.empty()) return ExpectRefusals(mistakes);
  std::string printed;
  google::protobuf::TextFormat::PrintToString(*manifest, &printed);
  const absl::StatusOr<KernelFamily> again = space::ParseManifest(printed);
  Expect(again.ok() && again->SerializeAsString() == manifest->SerializeAsString(), "a manifest reads back as itself");
  UseFamily(*manifest);
}

}  // namespace
}  // namespace attune::fuzz
