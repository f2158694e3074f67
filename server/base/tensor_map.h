// What a tensor map may be: the limits of cuTensorMapEncodeTiled, checked where a recipe is made and where it is bound.
#ifndef ATTUNE_SERVER_BASE_TENSOR_MAP_H_
#define ATTUNE_SERVER_BASE_TENSOR_MAP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "attune/v1/launch.pb.h"

namespace attune {

inline constexpr int kMaxTensorMapRank = 5;

// Bytes of one element; 0 when it is not specified.
int64_t ElementBytes(v1::TensorMap::Element element);

// InvalidArgument names the first field that the driver would refuse, its value and what is allowed. A map without a
// base is 128 zero bytes and always right.
absl::Status CheckTensorMap(const v1::TensorMap& map);

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_TENSOR_MAP_H_
