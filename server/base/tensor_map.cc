#include "server/base/tensor_map.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune {
namespace {

// CUDA Driver API, cuTensorMapEncodeTiled.
constexpr int64_t kChunk = 16;  // bytes that addresses, strides and the box's rows are multiples of
constexpr int64_t kMaxDim = int64_t{1} << 32;
constexpr int64_t kMaxStride = (int64_t{1} << 40) - kChunk;
constexpr int64_t kMaxBox = 256;

template <typename... Field>
absl::Status Invalid(int64_t value, absl::string_view allowed, const Field&... field) {
  return absl::InvalidArgumentError(absl::StrCat(field..., " is ", value, "; allowed: ", allowed));
}

absl::Status CheckOneOf(const char* field, int64_t value, std::initializer_list<int64_t> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return absl::OkStatus();
  return Invalid(value, absl::StrJoin(allowed, ", "), field);
}

absl::Status CheckExtents(const v1::TensorMap& map) {
  for (int i = 0; i < map.dims_size(); ++i) {
    if (map.dims(i) < 1 || map.dims(i) > kMaxDim) return Invalid(map.dims(i), "1 to 2^32", "dims[", i, "]");
    if (map.box(i) < 1 || map.box(i) > kMaxBox) return Invalid(map.box(i), "1 to 256", "box[", i, "]");
  }
  for (int i = 0; i < map.strides_size(); ++i) {
    const int64_t stride = map.strides(i);
    if (stride < 0 || stride > kMaxStride || stride % kChunk != 0) {
      return Invalid(stride, "multiples of 16 below 2^40 (bytes)", "strides[", i, "]");
    }
  }
  return absl::OkStatus();
}

// The box's innermost row is copied in chunks, and swizzled within one span.
absl::Status CheckRow(const v1::TensorMap& map) {
  const int64_t row = map.box(0) * ElementBytes(map.element());
  if (row % kChunk != 0) return Invalid(row, "multiples of 16", "box[0] in bytes");
  if (absl::Status status = CheckOneOf("swizzle_bytes", map.swizzle_bytes(), {0, 32, 64, 128}); !status.ok()) {
    return status;
  }
  if (map.swizzle_bytes() > 0 && row > map.swizzle_bytes()) {
    return Invalid(row, absl::StrCat("at most ", map.swizzle_bytes(), " with this swizzle_bytes"), "box[0] in bytes");
  }
  return CheckOneOf("l2_promotion_bytes", map.l2_promotion_bytes(), {0, 64, 128, 256});
}

}  // namespace

int64_t ElementBytes(v1::TensorMap::Element element) {
  switch (element) {
    case v1::TensorMap::ELEMENT_U8:
      return 1;
    case v1::TensorMap::ELEMENT_F16:
    case v1::TensorMap::ELEMENT_BF16:
      return 2;
    case v1::TensorMap::ELEMENT_F32:
      return 4;
    default:
      return 0;
  }
}

absl::Status CheckTensorMap(const v1::TensorMap& map) {
  if (!map.has_base()) return absl::OkStatus();
  if (ElementBytes(map.element()) == 0) return Invalid(map.element(), "U8, F16, BF16 and F32 (1 to 4)", "element");
  const int rank = map.dims_size();
  if (rank < 1 || rank > kMaxTensorMapRank) return Invalid(rank, "1 to 5 dimensions", "size of dims");
  if (map.strides_size() != rank - 1) {
    return Invalid(map.strides_size(), absl::StrCat(rank - 1, ", one less than dims"), "size of strides");
  }
  if (map.box_size() != rank) return Invalid(map.box_size(), absl::StrCat(rank, ", as many as dims"), "size of box");
  if (map.base_offset() % kChunk != 0) return Invalid(map.base_offset(), "multiples of 16 (bytes)", "base_offset");
  if (absl::Status status = CheckExtents(map); !status.ok()) return status;
  return CheckRow(map);
}

}  // namespace attune
