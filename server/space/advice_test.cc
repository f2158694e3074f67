#include "server/space/advice.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/manifest.h"
#include "server/space/space.h"
#include "server/space/testing/tiles_family.h"

namespace attune::space {
namespace {

using ::testing::HasSubstr;

constexpr char kAdvice[] = "constraints { expr: \"KV_SPLITS <= 2\" reason: \"splits do not pay\" advice: true }";

TEST(Advice, IsHeededByASearchUnlessItIsIgnored) {
  const v1::Device l4 = *DeviceProfile("l4");
  const auto plain = Make(kTiles);
  const auto advised = Make(absl::StrCat(kTiles, kAdvice));
  const auto heeded = Enumerate(advised, kProblem, l4);
  const auto ignored = Enumerate(advised, kProblem, l4, nullptr, {Advice::kIgnored});
  const auto all = Enumerate(plain, kProblem, l4);
  EXPECT_EQ(ignored->variants.size(), all->variants.size());
  EXPECT_EQ(heeded->variants.size(), all->variants.size() / 2);
  for (const Variant& variant : heeded->variants) EXPECT_LE(variant.values[2], 2);
  ASSERT_EQ(heeded->removed.front().reason, "splits do not pay");
  EXPECT_TRUE(heeded->removed.front().advice);
  EXPECT_FALSE(heeded->removed.back().advice);
  const int64_t half = static_cast<int64_t>(heeded->variants.size());
  const auto sample = Sample(advised, kProblem, l4, half, 1);
  EXPECT_EQ(sample->size(), heeded->variants.size());
  for (const Variant& drawn : *sample) EXPECT_LE(drawn.values[2], 2);
  EXPECT_EQ(Sample(advised, kProblem, l4, 2 * half, 1, nullptr, {Advice::kIgnored})->size(), all->variants.size());
}

TEST(Advice, ForbidsNothing) {
  const v1::Device l4 = *DeviceProfile("l4");
  const Variant variant = Tiles(Make(absl::StrCat(kTiles, kAdvice)), 32, 2, 8);
  EXPECT_TRUE(Feasible(variant, kProblem, l4).ok());
  EXPECT_TRUE(RecipeFor(variant, kProblem, l4).ok());
  EXPECT_TRUE(SpecFor(variant, kProblem, l4).ok());
  EXPECT_FALSE(Feasible(Tiles(variant.family, 16, 2, 1), kProblem, l4).ok());
}

TEST(Advice, IsForConstraintsAlone) {
  family::v1::KernelFamily manifest = Make(kTiles)->manifest;
  manifest.mutable_problem_limits(0)->set_advice(true);
  EXPECT_THAT(std::string(CheckManifest(manifest).message()), HasSubstr("problem_limits[0].advice is true"));
}

TEST(Guess, HeedsAdviceWhereItCan) {
  const v1::Device h200 = *DeviceProfile("h200");
  EXPECT_EQ(Guess(Make(absl::StrCat(kTiles, kAdvice)), kProblem, h200)->values[2], 2);
  const std::string never = "constraints { expr: \"KV_SPLITS > 8\" reason: \"for the test\" advice: true }";
  EXPECT_EQ(Guess(Make(absl::StrCat(kTiles, never)), kProblem, h200)->ToText(),
            Guess(Make(kTiles), kProblem, h200)->ToText());
}

TEST(Refit, TakesTheFewestStepsAlongLaunchTimeParameters) {
  const v1::Device l4 = *DeviceProfile("l4");
  const auto family = Make(absl::StrCat(kTiles, kAdvice));
  EXPECT_EQ(Refit(Tiles(family, 64, 4, 8), kProblem, l4)->values, Tiles(family, 64, 4, 2).values);
  EXPECT_EQ(Refit(Tiles(family, 64, 4, 1), kProblem, l4)->values, Tiles(family, 64, 4, 1).values);
  // What forbids is kept to as well: 64 keys are one split.
  EXPECT_EQ(Refit(Tiles(family, 64, 4, 8), *ParseProblem("b1.h1.q64.d64.f16"), l4)->values[2], 1);
}

TEST(Refit, ChangesNoCode) {
  const std::string rule = "constraints { expr: \"BLOCK_M < 64\" reason: \"a high tile\" advice: true }";
  const Variant variant = Tiles(Make(absl::StrCat(kTiles, rule)), 64, 2, 1);
  EXPECT_TRUE(absl::IsNotFound(Refit(variant, kProblem, *DeviceProfile("l4")).status()));
}

}  // namespace
}  // namespace attune::space
