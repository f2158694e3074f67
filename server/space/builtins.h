// The names of the problem and the device in a manifest's expressions (proto/attune/family/v1/family.proto).
#ifndef ATTUNE_SERVER_SPACE_BUILTINS_H_
#define ATTUNE_SERVER_SPACE_BUILTINS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"

namespace attune::space {

struct Builtin {
  absl::string_view name;
  double (*value)(const Problem& problem, const v1::Device& device);
};

absl::Span<const Builtin> Builtins();

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_BUILTINS_H_
