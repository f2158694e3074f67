#include "server/base/tensor_map.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// 64 x 128 boxes of a [heads, rows, 128] tensor in f16.
v1::TensorMap Map() {
  v1::TensorMap map;
  map.mutable_base()->set_role(v1::BUFFER_ROLE_K);
  map.set_element(v1::TensorMap::ELEMENT_F16);
  for (const int64_t dim : {128, 1000, 8}) map.add_dims(dim);
  for (const int64_t stride : {256, 256'000}) map.add_strides(stride);
  for (const int box : {64, 128, 1}) map.add_box(box);
  map.set_swizzle_bytes(128);
  map.set_l2_promotion_bytes(256);
  return map;
}

std::string Error(const std::function<void(v1::TensorMap&)>& change) {
  v1::TensorMap map = Map();
  change(map);
  return std::string(CheckTensorMap(map).message());
}

TEST(TensorMap, WhatTheDriverTakesIsRight) {
  EXPECT_EQ(CheckTensorMap(Map()), absl::OkStatus());
  v1::TensorMap widest = Map();
  widest.set_dims(1, int64_t{1} << 32);
  widest.set_strides(1, (int64_t{1} << 40) - 16);
  widest.set_base_offset(-16);
  widest.set_box(1, 256);
  EXPECT_EQ(CheckTensorMap(widest), absl::OkStatus());
}

TEST(TensorMap, WithoutABaseNothingIsAsked) { EXPECT_EQ(CheckTensorMap(v1::TensorMap()), absl::OkStatus()); }

TEST(TensorMap, AnErrorNamesFieldValueAndWhatIsAllowed) {
  EXPECT_THAT(Error([](auto& map) { map.clear_element(); }), HasSubstr("element is 0; allowed: U8"));
  EXPECT_THAT(Error([](auto& map) { map.clear_dims(); }), HasSubstr("size of dims is 0; allowed: 1 to 5"));
  EXPECT_THAT(Error([](auto& map) { map.add_strides(16); }), HasSubstr("size of strides is 3; allowed: 2"));
  EXPECT_THAT(Error([](auto& map) { map.add_box(1); }), HasSubstr("size of box is 4; allowed: 3"));
  EXPECT_THAT(Error([](auto& map) { map.set_base_offset(8); }), HasSubstr("base_offset is 8; allowed: multiples"));
  EXPECT_THAT(Error([](auto& map) { map.set_dims(1, 0); }), HasSubstr("dims[1] is 0; allowed: 1 to 2^32"));
  EXPECT_THAT(Error([](auto& map) { map.set_dims(1, (int64_t{1} << 32) + 1); }), HasSubstr("dims[1] is 4294967297"));
  EXPECT_THAT(Error([](auto& map) { map.set_strides(0, 264); }), HasSubstr("strides[0] is 264; allowed: multiples"));
  EXPECT_THAT(Error([](auto& map) { map.set_strides(1, int64_t{1} << 40); }), HasSubstr("strides[1] is 1099511627776"));
  EXPECT_THAT(Error([](auto& map) { map.set_strides(1, -16); }), HasSubstr("strides[1] is -16"));
  EXPECT_THAT(Error([](auto& map) { map.set_box(1, 257); }), HasSubstr("box[1] is 257; allowed: 1 to 256"));
  EXPECT_THAT(Error([](auto& map) { map.set_box(0, 4); }), HasSubstr("box[0] in bytes is 8; allowed: multiples"));
  EXPECT_THAT(Error([](auto& map) { map.set_swizzle_bytes(16); }), HasSubstr("swizzle_bytes is 16; allowed: 0, 32"));
  EXPECT_THAT(Error([](auto& map) { map.set_swizzle_bytes(64); }),
              HasSubstr("box[0] in bytes is 128; allowed: at most 64 with this swizzle_bytes"));
  EXPECT_THAT(Error([](auto& map) { map.set_l2_promotion_bytes(32); }), HasSubstr("l2_promotion_bytes is 32"));
}

}  // namespace
}  // namespace attune
