// What a compiled variant needs of the device, and why one is rejected (spills, serialized wgmma, limits) before it
// runs.
#ifndef ATTUNE_SERVER_CATALOG_CODE_REJECTION_H_
#define ATTUNE_SERVER_CATALOG_CODE_REJECTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/launch.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/store/store.h"

namespace attune::catalog {

// Of the recipe's main launch; zeros where the compiler does not say.
v1::Resources ResourcesOf(const store::CompiledArtifact& report, const v1::LaunchRecipe& recipe);

// Why the variant is not worth a run on the device: it spills, its wgmma is serialized, or no CTA of it can be
// resident. Empty: nothing does.
std::string InfeasibleReason(const store::CompiledArtifact& report, const v1::Resources& resources,
                             const v1::Geometry& geometry, const v1::LaunchRecipe& recipe, const v1::Device& device);

// A compiler's log in a line: its first that tells of an error, or else its first.
std::string GistOf(absl::string_view log);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_CODE_REJECTION_H_
