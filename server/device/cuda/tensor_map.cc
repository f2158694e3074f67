#include "server/device/cuda/tensor_map.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/base/tensor_map.h"

namespace attune::device::cuda {
namespace {

TensorMapDataType DataTypeOf(v1::TensorMap::Element element) {
  switch (element) {
    case v1::TensorMap::ELEMENT_F16:
      return kTensorMapFloat16;
    case v1::TensorMap::ELEMENT_BF16:
      return kTensorMapBfloat16;
    case v1::TensorMap::ELEMENT_F32:
      return kTensorMapFloat32;
    default:
      return kTensorMapUint8;
  }
}

TensorMapSwizzle SwizzleOf(int bytes) {
  return bytes == 128 ? kSwizzle128 : bytes == 64 ? kSwizzle64 : bytes == 32 ? kSwizzle32 : kSwizzleNone;
}

TensorMapL2Promotion PromotionOf(int bytes) {
  return bytes == 256 ? kPromotion256 : bytes == 128 ? kPromotion128 : bytes == 64 ? kPromotion64 : kPromotionNone;
}

}  // namespace

absl::StatusOr<EncodedTensorMap> Encode(const DriverApi& api, const v1::TensorMap& map, DevicePointer base) {
  EncodedTensorMap encoded;
  if (absl::Status status = CheckTensorMap(map); !status.ok()) return status;
  if (base == 0) return encoded;
  if (api.TensorMapEncodeTiled == nullptr) {
    return absl::FailedPreconditionError("the NVIDIA driver is too old for tensor maps: no cuTensorMapEncodeTiled");
  }
  uint64_t dims[kMaxTensorMapRank], strides[kMaxTensorMapRank];
  uint32_t box[kMaxTensorMapRank], steps[kMaxTensorMapRank];
  std::copy(map.dims().begin(), map.dims().end(), dims);
  std::copy(map.strides().begin(), map.strides().end(), strides);
  std::copy(map.box().begin(), map.box().end(), box);
  std::fill(std::begin(steps), std::end(steps), 1);
  const DevicePointer address = base + static_cast<uint64_t>(map.base_offset());  // modulo 2^64
  const Result result = api.TensorMapEncodeTiled(
      &encoded, DataTypeOf(map.element()), static_cast<uint32_t>(map.dims_size()), address, dims, strides, box, steps,
      kInterleaveNone, SwizzleOf(map.swizzle_bytes()), PromotionOf(map.l2_promotion_bytes()), kOutOfBoundsZero);
  if (result == kInvalidValue) {
    return absl::InvalidArgumentError(absl::StrCat("the driver does not take the tensor map ", map.ShortDebugString(),
                                                   " at address 0x", absl::Hex(address)));
  }
  if (result != kSuccess) return api.Error("cuTensorMapEncodeTiled", result);
  return encoded;
}

}  // namespace attune::device::cuda
