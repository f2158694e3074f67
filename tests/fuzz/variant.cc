// A variant's text, of a family with three parameters.
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/space/manifest.h"
#include "server/space/space.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

constexpr char kManifest[] = R"pb(
  name: "tiles"
  operation: OPERATION_KIND_ATTENTION_FORWARD
  backend: BACKEND_CUDA
  sources: "tiles.cu"
  parameters {
    name: "BLOCK"
    values: [ 16, 32, 64 ]
    binding: BINDING_COMPILE_TIME
  }
  parameters {
    name: "SIGNED"
    values: [ -9007199254740992, -1, 0, 9007199254740992 ]
    binding: BINDING_COMPILE_TIME
  }
  parameters {
    name: "SPLITS"
    values: [ 1, 2 ]
    binding: BINDING_LAUNCH_TIME
  }
  launches { entry: "attention" grid_x: "1" block_x: "32" main: true }
)pb";

std::shared_ptr<const space::Family> Tiles() {
  auto family = std::make_shared<space::Family>();
  family->manifest = *space::ParseManifest(kManifest);
  return family;
}

ATTUNE_FUZZ_TARGET(variant) {
  static const auto* const families = new std::vector<std::shared_ptr<const space::Family>>{Tiles()};
  const absl::StatusOr<space::Variant> variant = space::ParseVariant(input, *families);
  if (!variant.ok()) {
    const bool unknown = absl::IsNotFound(variant.status());
    return ExpectRefusal(variant.status(), unknown ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument,
                         {" "});
  }
  const absl::StatusOr<space::Variant> again = space::ParseVariant(variant->ToText(), *families);
  Expect(again.ok() && again->values == variant->values, absl::StrCat(variant->ToText(), " reads back as itself"));
}

}  // namespace
}  // namespace attune::fuzz
