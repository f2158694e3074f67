// Strides as launch arguments: what a manifest may name, and what they are in a problem's own layout.
#ifndef ATTUNE_SERVER_SPACE_STRIDES_H_
#define ATTUNE_SERVER_SPACE_STRIDES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/v1/launch.pb.h"
#include "proto/attune/problem.h"

namespace attune::space {

// InvalidArgument unless it is a dimension of Q, K, V, O or the scales of K or V. `field` names it in the message.
absl::Status CheckStride(absl::string_view field, const v1::Stride& stride);

// In elements, of a stride that CheckStride accepts.
int64_t StrideOf(const Problem& problem, const v1::Stride& stride);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_STRIDES_H_
