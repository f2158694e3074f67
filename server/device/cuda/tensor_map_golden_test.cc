// What cuTensorMapEncodeTiled takes for a tensor map, on the vectors that the Python launchers share. Without a driver
// the call itself cannot be made: these are its numbers, and that its maps pass the check before it.
#include "gtest/gtest.h"
#include "server/base/tensor_map.h"
#include "server/device/cuda/driver_api.h"
#include "tests/golden/golden.h"

namespace attune::device::cuda {
namespace {

v1::TensorMap::Element ElementOf(const std::string& name) {
  v1::TensorMap::Element element = v1::TensorMap::ELEMENT_UNSPECIFIED;
  EXPECT_TRUE(v1::TensorMap::Element_Parse("ELEMENT_" + name, &element)) << name;
  return element;
}

TEST(GoldenTensorMaps, ElementsHaveTheDriversNumbersAndSizes) {
  const nlohmann::json elements = Golden("tensor_maps", "elements");
  EXPECT_EQ(elements["U8"]["type"], +kTensorMapUint8);
  EXPECT_EQ(elements["F16"]["type"], +kTensorMapFloat16);
  EXPECT_EQ(elements["F32"]["type"], +kTensorMapFloat32);
  EXPECT_EQ(elements["BF16"]["type"], +kTensorMapBfloat16);
  for (const auto& [name, element] : elements.items()) {
    EXPECT_EQ(ElementBytes(ElementOf(name)), element["bytes"].get<int64_t>()) << name;
  }
}

TEST(GoldenTensorMaps, SwizzlesAndPromotionsHaveTheDriversNumbers) {
  const nlohmann::json vectors = Golden("tensor_maps");
  const int swizzles[] = {kSwizzleNone, kSwizzle32, kSwizzle64, kSwizzle128};
  const int promotions[] = {kPromotionNone, kPromotion64, kPromotion128, kPromotion256};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(vectors["swizzles"][i]["value"], swizzles[i]);
    EXPECT_EQ(vectors["l2_promotions"][i]["value"], promotions[i]);
  }
}

TEST(GoldenTensorMaps, AreMapsThatTheDriverTakes) {
  for (const auto& vector : Golden("tensor_maps", "calls")) {
    const nlohmann::json& given = vector["map"];
    v1::TensorMap map;
    map.mutable_base()->set_role(v1::BUFFER_ROLE_K);
    map.set_element(ElementOf(given["element"]));
    for (const int64_t dim : given["dims"]) map.add_dims(dim);
    for (const int64_t stride : given["strides"]) map.add_strides(stride);
    for (const int64_t side : given["box"]) map.add_box(side);
    map.set_swizzle_bytes(given["swizzle_bytes"]);
    map.set_l2_promotion_bytes(given["l2_promotion_bytes"]);
    EXPECT_EQ(CheckTensorMap(map), absl::OkStatus()) << vector;
  }
}

}  // namespace
}  // namespace attune::device::cuda
