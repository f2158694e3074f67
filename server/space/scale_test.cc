// Which arguments of a launch are proportional to the softmax scale, and how far.
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/manifest.h"
#include "server/space/space.h"
#include "server/space/testing/tiles_family.h"

namespace attune::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string WithRatio(const std::string& ratio) {
  return absl::StrReplaceAll(kTiles, {{"f32: \"1 / sqrt(head_dim)\"",
                                       absl::StrCat("f32: \"1 / sqrt(head_dim)\" max_scale_ratio: \"", ratio, "\"")}});
}

absl::StatusOr<v1::LaunchRecipe> Recipe(const std::string& manifest) {
  return RecipeFor(*ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {Make(manifest)}), kProblem,
                   *DeviceProfile("l4"));
}

TEST(ScaleRatio, IsNoneUnlessTheManifestSaysOne) {
  EXPECT_EQ(Recipe(kTiles)->launches(0).args(3).max_scale_ratio(), 0);
}

TEST(ScaleRatio, FollowsFromTheVariantAndTheProblem) {
  EXPECT_EQ(Recipe(WithRatio("softcap > 0 ? 0 : BLOCK_M / 16"))->launches(0).args(3).max_scale_ratio(), 2);
}

TEST(ScaleRatio, IsFiniteAndNotNegative) {
  const auto error = [](const std::string& ratio) { return std::string(Recipe(WithRatio(ratio)).status().message()); };
  EXPECT_THAT(error("-1"), HasSubstr("args[3].max_scale_ratio is '-1', which comes to -1; allowed: 0 to 1e+06"));
  EXPECT_THAT(error("1 / mask"), HasSubstr("which comes to inf"));
}

TEST(ScaleRatio, StandsBesideAFloatAlone) {
  const std::string manifest =
      absl::StrReplaceAll(kTiles, {{"i32: \"seq_q\"", "i32: \"seq_q\" max_scale_ratio: \"1\""}});
  EXPECT_THAT(std::string(CheckManifest(*ParseManifest(manifest)).message()),
              HasSubstr("args[1].max_scale_ratio is given; allowed beside f32 alone"));
}

std::vector<float> RatiosOf(const std::string& variant, const std::string& problem) {
  const auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  const auto recipe = RecipeFor(*ParseVariant(variant, *families), *ParseProblem(problem), *DeviceProfile("h200"));
  EXPECT_TRUE(recipe.ok()) << recipe.status();
  std::vector<float> ratios;
  for (const v1::KernelArg& arg : recipe->launches(recipe->main_launch()).args()) {
    if (arg.max_scale_ratio() > 0) ratios.push_back(arg.max_scale_ratio());
  }
  return ratios;
}

// In f16 P is at most 65504: what is rescaled when a maximum has grown by 2^8 at the usual scale has 2^12 at 1.5 times
// it.
TEST(ScaleRatio, OfAttentionMmaIsBoundedByItsRescaleThreshold) {
  const auto variant = [](int lazy) {
    return absl::StrCat(
        "attention_mma:BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=1,V_STAGES=1,Q_REGISTERS=0,KV_CONVERT=0,"
        "LAZY_RESCALE=",
        lazy, ",MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0");
  };
  EXPECT_THAT(RatiosOf(variant(1), "b4.h16.q4096.d64.f16"), ElementsAre(1.5f));
  EXPECT_THAT(RatiosOf(variant(0), "b4.h16.q4096.d64.f16"), ElementsAre(1e6f));
  EXPECT_THAT(RatiosOf(variant(1), "b4.h16.q4096.d64.f16.softcap30"), ElementsAre(1e6f));
}

}  // namespace
}  // namespace attune::space
