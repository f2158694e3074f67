// Whether a manifest makes sense as a whole, before anything is enumerated from it.
#ifndef ATTUNE_SERVER_SPACE_MANIFEST_H_
#define ATTUNE_SERVER_SPACE_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/family/v1/family.pb.h"

namespace attune::space {

// Protobuf text format. InvalidArgument names line and column.
absl::StatusOr<family::v1::KernelFamily> ParseManifest(const std::string& text);

// Names unique and not taken, values and bindings given, scratch buffers that exist, one main launch, every expression
// good. InvalidArgument names the field and what is wrong with it.
absl::Status CheckManifest(const family::v1::KernelFamily& manifest);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_MANIFEST_H_
