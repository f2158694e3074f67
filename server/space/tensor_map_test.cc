// Tensor maps, clusters and overlapping launches: what a manifest may say of them, and what they come to.
#include "server/space/tensor_map.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/manifest.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBoxes[] = R"pb(
  name: "boxes"
  operation: OPERATION_KIND_ATTENTION_FORWARD
  backend: BACKEND_CUDA
  sources: "boxes.cu"
  parameters {
    name: "CLUSTER"
    values: [ 1, 2, 32 ]
    guess: 1
    binding: BINDING_LAUNCH_TIME
  }
  parameters {
    name: "COPY"
    values: [ 0, 1 ]
    guess: 1
    binding: BINDING_COMPILE_TIME
  }
  scratch { name: "partial" bytes: "1024" }
  launches {
    entry: "attend"
    main: true
    grid_x: "ceil_div(seq_q, 64)"
    cluster_x: "CLUSTER"
    args {
      tensor_map {
        buffer: BUFFER_ROLE_K
        when: "COPY"
        base_offset: "0 - 16 * head_dim"
        dims: [ "head_dim", "seq_kv", "batch * heads_kv" ]
        strides: [ "2 * head_dim", "2 * head_dim * seq_kv" ]
        box: [ "64", "128", "1" ]
        swizzle_bytes: "128"
        l2_promotion_bytes: "256"
      }
    }
    args { tensor_map { scratch: "partial" element: ELEMENT_F32 dims: "256" box: "32" } }
  }
  launches { entry: "combine" overlaps_previous: "1" }
)pb";

std::shared_ptr<const Family> Make(const std::string& manifest) {
  auto family = std::make_shared<Family>();
  family->manifest = *ParseManifest(manifest);
  EXPECT_EQ(CheckManifest(family->manifest), absl::OkStatus());
  return family;
}

const Problem kProblem = *ParseProblem("b2.h8.kvh2.q512.kv1000.d128.bf16");
constexpr char kCopies[] = "boxes:CLUSTER=2,COPY=1";

absl::StatusOr<v1::LaunchRecipe> Recipe(const std::string& manifest, const std::string& variant = kCopies,
                                        const std::string& device = "h200") {
  return RecipeFor(*ParseVariant(variant, {Make(manifest)}), kProblem, *DeviceProfile(device));
}

std::string Changed(const std::string& from, const std::string& to) {
  EXPECT_THAT(std::string(kBoxes), HasSubstr(from));
  return absl::StrReplaceAll(kBoxes, {{from, to}});
}

// Why the manifest alone is refused.
std::string Refused(const std::string& from, const std::string& to) {
  return std::string(CheckManifest(*ParseManifest(Changed(from, to))).message());
}

// Why the manifest has no recipe.
std::string Error(const std::string& from, const std::string& to) {
  return std::string(Recipe(Changed(from, to)).status().message());
}

TEST(TensorMapArgument, ComesToNumbersAndTheProblemsElement) {
  const auto recipe = Recipe(kBoxes);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  const v1::TensorMap& map = recipe->launches(0).args(0).tensor_map();
  EXPECT_EQ(map.base().role(), v1::BUFFER_ROLE_K);
  EXPECT_EQ(map.base_offset(), -2048);
  EXPECT_EQ(map.element(), v1::TensorMap::ELEMENT_BF16);
  EXPECT_THAT(map.dims(), ElementsAre(128, 1000, 4));
  EXPECT_THAT(map.strides(), ElementsAre(256, 256'000));
  EXPECT_THAT(map.box(), ElementsAre(64, 128, 1));
  EXPECT_EQ(map.swizzle_bytes(), 128);
  EXPECT_EQ(map.l2_promotion_bytes(), 256);
}

TEST(TensorMapArgument, AScratchBufferIsFoundByName) {
  const auto recipe = Recipe(kBoxes);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  const v1::TensorMap& map = recipe->launches(0).args(1).tensor_map();
  EXPECT_EQ(map.base().role(), v1::BUFFER_ROLE_SCRATCH);
  EXPECT_EQ(map.base().scratch(), 0);
  EXPECT_EQ(map.element(), v1::TensorMap::ELEMENT_F32);
}

TEST(TensorMapArgument, IsEmptyWhereItsConditionDoesNotHold) {
  const auto recipe = Recipe(Changed("\"seq_kv\"", "\"COPY ? seq_kv : 0 / 0\""), "boxes:CLUSTER=1,COPY=0");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_TRUE(recipe->launches(0).args(0).has_tensor_map());
  EXPECT_EQ(recipe->launches(0).args(0).tensor_map().ByteSizeLong(), 0u);
}

TEST(TensorMapArgument, AnErrorNamesTheFieldAndWhatItComesTo) {
  EXPECT_THAT(Error("\"seq_kv\"", "\"seq_kv / 3\""),
              HasSubstr("launches 'attend': args[0].tensor_map.dims[1] is 'seq_kv / 3', which comes to 333.333"));
  EXPECT_THAT(Error("\"2 * head_dim\"", "\"2 * head_dim + 2\""),
              HasSubstr("args[0].tensor_map.strides[0] is 258; allowed: multiples of 16"));
  EXPECT_THAT(Error("[ \"64\"", "[ \"128\""), HasSubstr("args[0].tensor_map.box[0] in bytes is 256; allowed:"));
  EXPECT_THAT(Error("\"128\"\n", "\"2^32 + 128\"\n"), HasSubstr("swizzle_bytes is '2^32 + 128', which comes to"));
}

TEST(TensorMapArgument, AManifestIsRefusedBeforeAnythingIsEvaluated) {
  EXPECT_THAT(Refused("buffer: BUFFER_ROLE_K", ""), HasSubstr("args[0].tensor_map: base is not given"));
  EXPECT_THAT(Refused("buffer: BUFFER_ROLE_K", "buffer: BUFFER_ROLE_SCRATCH"), HasSubstr("scratch buffers go by name"));
  EXPECT_THAT(Refused("scratch: \"partial\"", "scratch: \"part\""), HasSubstr("'part', which is no scratch buffer"));
  EXPECT_THAT(Refused("\"seq_kv\", ", ""), HasSubstr("args[0].tensor_map.strides has 2; allowed: 1"));
  EXPECT_THAT(Refused("\"64\", ", ""), HasSubstr("args[0].tensor_map.box has 2; allowed: 3"));
  EXPECT_THAT(Refused("dims: \"256\"", ""), HasSubstr("args[1].tensor_map.dims has 0; allowed: 1 to 5"));
  EXPECT_THAT(Refused("\"seq_kv\"", "\"seq_keys\""), HasSubstr("args[0].tensor_map.dims[1] is"));
  EXPECT_THAT(Refused("BACKEND_CUDA", "BACKEND_OPENCL"), HasSubstr("args[0].tensor_map is given; allowed with"));
}

TEST(TensorMapArgument, TheTestsFamilyIsForHopperAndWantsItsCluster) {
  const auto family = LoadFamily(ATTUNE_SOURCE_DIR "/tests/families", "tensor_map_cuda");
  ASSERT_TRUE(family.ok()) << family.status();
  const Problem problem = *ParseProblem("b2.h4.kvh2.q100.kv300.d64.f16.causal-br.bshd");
  EXPECT_TRUE(Enumerate(*family, problem, *DeviceProfile("l4"))->variants.empty());
  const auto variants = Enumerate(*family, problem, *DeviceProfile("h200"))->variants;
  EXPECT_EQ(variants.size(), 12u);
  for (const Variant& variant : variants) {
    const auto recipe = RecipeFor(variant, problem, *DeviceProfile("h200"));
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    const v1::KernelLaunch& main = recipe->launches(0);
    EXPECT_THAT(main.args(0).tensor_map().strides(), ElementsAre(2 * 2 * 64, 2 * 64, 2 * 300 * 2 * 64));
    EXPECT_EQ(main.grid().x() % std::max<int64_t>(1, main.cluster().x()), 0);
  }
}

TEST(TensorMapArgument, NeedsADeviceWithTensorCopies) {
  EXPECT_THAT(std::string(Recipe(kBoxes, "boxes:CLUSTER=1,COPY=1", "l4").status().message()),
              HasSubstr("attend: the device has no tensor copies"));
}

TEST(Cluster, IsTheLaunchsAndOneCtaIsNone) {
  const auto two = Recipe(kBoxes);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->launches(0).cluster().x(), 2);
  EXPECT_EQ(two->launches(0).cluster().y(), 1);
  EXPECT_FALSE(two->launches(1).has_cluster());
  EXPECT_FALSE(Recipe(kBoxes, "boxes:CLUSTER=1,COPY=1")->launches(0).has_cluster());
}

TEST(Cluster, DividesTheGridAndHasABound) {
  EXPECT_THAT(Error("\"ceil_div(seq_q, 64)\"", "\"7\""), HasSubstr("attend: clusters do not divide the grid"));
  EXPECT_THAT(
      std::string(Recipe(Changed("ceil_div(seq_q, 64)", "seq_q"), "boxes:CLUSTER=32,COPY=1").status().message()),
      HasSubstr("attend: a cluster larger than CUDA allows"));
}

TEST(Cluster, NeedsADeviceThatHasThem) {
  const std::string manifest =
      absl::StrReplaceAll(kBoxes, {{"when: \"COPY\"", "when: \"0\""},
                                   {"scratch: \"partial\" element", "scratch: \"partial\" when: \"0\" element"},
                                   {"overlaps_previous: \"1\"", ""}});
  EXPECT_TRUE(Recipe(manifest, "boxes:CLUSTER=1,COPY=0", "l4").ok());
  EXPECT_THAT(std::string(Recipe(manifest, "boxes:CLUSTER=2,COPY=0", "l4").status().message()),
              HasSubstr("attend: the device has no clusters"));
}

TEST(OverlapsPrevious, IsForLaterLaunchesAlone) {
  const auto recipe = Recipe(kBoxes);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_FALSE(recipe->launches(0).overlaps_previous());
  EXPECT_TRUE(recipe->launches(1).overlaps_previous());
  EXPECT_THAT(Error("cluster_x: \"CLUSTER\"", "overlaps_previous: \"COPY\""),
              HasSubstr("'attend': overlaps_previous is 'COPY', which holds; the recipe's first launch must not"));
}

}  // namespace
}  // namespace attune::space
