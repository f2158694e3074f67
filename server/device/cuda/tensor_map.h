// Tensor maps of a recipe, encoded for where a tensor is.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TENSOR_MAP_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TENSOR_MAP_H_

#include "absl/status/statusor.h"
#include "attune/v1/launch.pb.h"
#include "server/device/cuda/driver_api.h"

namespace attune::device::cuda {

// `base` is the address of `map.base()`; 0 gives 128 zero bytes. InvalidArgument names the field that the driver does
// not take; FailedPrecondition when the driver knows no tensor maps.
absl::StatusOr<EncodedTensorMap> Encode(const DriverApi& api, const v1::TensorMap& map, DevicePointer base);

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TENSOR_MAP_H_
