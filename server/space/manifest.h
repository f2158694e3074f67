// Whether a manifest makes sense as a whole, before anything is enumerated from it.
#ifndef ATTUNE_SERVER_SPACE_MANIFEST_H_
#define ATTUNE_SERVER_SPACE_MANIFEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attune/family/v1/family.pb.h"

namespace attune::space {

// Protobuf text format. InvalidArgument names line and column.
absl::StatusOr<family::v1::KernelFamily> ParseManifest(const std::string& text);

// What is wrong: names unique and not taken, values and bindings given, scratch buffers that exist, one main launch,
// every expression good. Each mistake is InvalidArgument and names the field; expressions are looked at when nothing
// else is wrong.
std::vector<absl::Status> MistakesIn(const family::v1::KernelFamily& manifest);

// The first of them.
absl::Status CheckManifest(const family::v1::KernelFamily& manifest);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_MANIFEST_H_
