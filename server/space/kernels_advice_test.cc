// What the families that ship advise against, and what they forbid.
#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

using ::testing::HasSubstr;

class Advised : public ::testing::Test {
 protected:
  void SetUp() override {
    auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    ASSERT_TRUE(families.ok()) << families.status();
    for (auto& family : *families) {
      const bool searched = family->manifest.role() <= family::v1::ROLE_SEARCH;
      if (searched && family->manifest.backend() == v1::BACKEND_CUDA) families_.push_back(std::move(family));
    }
    ASSERT_EQ(families_.size(), 4);
  }

  // Why the variant is forbidden; empty when it is not.
  std::string Refusal(const char* variant, const char* problem, const char* device) const {
    const auto parsed = ParseVariant(variant, families_);
    if (!parsed.ok()) return std::string(parsed.status().message());
    return std::string(Feasible(*parsed, *ParseProblem(problem), *DeviceProfile(device)).message());
  }

  // Whether a search tries it.
  bool IsSearched(const char* variant, const char* problem, const char* device) const {
    const Variant parsed = *ParseVariant(variant, families_);
    const auto enumeration = Enumerate(parsed.family, *ParseProblem(problem), *DeviceProfile(device));
    return std::any_of(enumeration->variants.begin(), enumeration->variants.end(),
                       [&](const Variant& one) { return one.values == parsed.values; });
  }

  std::vector<std::shared_ptr<const Family>> families_;
};

constexpr char kProblem[] = "b2.h8.q512.d64.f16";

TEST_F(Advised, IgnoringItAddsVariantsAndTakesNoneAway) {
  const Problem problem = *ParseProblem(kProblem);
  const v1::Device device = *DeviceProfile("h200");
  for (const auto& family : families_) {
    const auto heeded = Enumerate(family, problem, device);
    ASSERT_TRUE(heeded.ok()) << heeded.status();
    const auto ignored = Enumerate(family, problem, device, nullptr, {Advice::kIgnored});
    ASSERT_TRUE(ignored.ok()) << ignored.status();
    EXPECT_GT(ignored->count, heeded->count) << family->name();
    for (const Variant& variant : heeded->variants) {
      EXPECT_TRUE(Feasible(variant, problem, device).ok()) << variant.ToText();
    }
  }
}

TEST_F(Advised, WithoutItNothingIsOfferedThatTheDeviceCannotHold) {
  for (const char* text : {kProblem, "b1.h32.kvh8.q1.kv8192.d128.bf16", "b1.h2.q113.kv203.d256.f16.causal-br.lse",
                           "b4.h32.kvh8.q96.kv300.d128.f16.page24"}) {
    const Problem problem = *ParseProblem(text);
    for (const char* name : {"l4", "h200"}) {
      const v1::Device device = *DeviceProfile(name);
      for (const auto& family : families_) {
        const auto sample = Sample(family, problem, device, 200, /*seed=*/1, nullptr, {Advice::kIgnored});
        ASSERT_TRUE(sample.ok()) << sample.status();
        for (const Variant& variant : *sample) {
          const auto recipe = RecipeFor(variant, problem, device);
          ASSERT_TRUE(recipe.ok()) << variant.ToText() << ": " << recipe.status();
          EXPECT_LE(recipe->launches(recipe->main_launch()).dynamic_shared_bytes(), device.shared_bytes_per_block())
              << variant.ToText();
        }
      }
    }
  }
}

TEST_F(Advised, IsNotWhatKeepsSpillsLimitsAndEqualCodesOut) {
  struct {
    const char* variant;
    const char* problem;
    const char* why;
    const char* device = "h200";
  } const forbidden[] = {
      {"attention_mma:BLOCK_M=128,BLOCK_N=128,WARPS_M=4,WARPS_N=1,K_STAGES=1,V_STAGES=1,Q_REGISTERS=0,KV_CONVERT=0,"
       "LAZY_RESCALE=1,"
       "MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       "b4.h16.q4096.d256.f16", "it spills"},
      {"attention_mma:BLOCK_M=128,BLOCK_N=128,WARPS_M=8,WARPS_N=1,K_STAGES=3,V_STAGES=3,Q_REGISTERS=0,KV_CONVERT=0,"
       "LAZY_RESCALE=1,"
       "MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       "b4.h16.q4096.d128.f16", "exceeds what a CTA may have", "l4"},
      {"attention_mma:BLOCK_M=64,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,LAZY_"
       "RESCALE=0,"
       "MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       "b4.h16.q4096.d64.f16.softcap50", "the code is the same"},
      {"attention_mma:BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,LAZY_RESCALE=1,"
       "WARP_SKIP=1,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       "b4.h16.q4096.d64.f16", "no key tile is masked"},
      {"attention_mma:BLOCK_M=16,BLOCK_N=64,WARPS_M=1,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,LAZY_RESCALE=1,"
       "WARP_SKIP=1,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       "b4.h16.q64.d64.f16.causal", "it skips nothing"},
      {"attention_mma:BLOCK_M=16,BLOCK_N=128,WARPS_M=1,WARPS_N=4,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,LAZY_"
       "RESCALE=1,"
       "MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=8,COMBINE=2,PERSISTENT=0,LONGEST_FIRST=0",
       "b1.h1.q1.kv512.d64.f16", "a split without a key"},
      {"attention_hopper:CONSUMERS=3,BLOCK_N=144,STAGES=2,PINGPONG=0,OVERLAP=1,LAZY_RESCALE=1,ONES=0,TEAMS=1,"
       "PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=0",
       "b4.h16.q4096.d128.f16", "it spills"},
      {"attention_hopper:CONSUMERS=2,BLOCK_N=64,STAGES=2,PINGPONG=0,OVERLAP=1,LAZY_RESCALE=1,ONES=0,TEAMS=1,"
       "PACK_GQA=0,SPLIT=1,KV_SPLITS=10,LONGEST_FIRST=0",
       "b1.h1.q128.kv512.d64.f16", "a split without a key"},
      {"attention_simt:MMA=0,ACC=32,BLOCK_M=64,BLOCK_N=64,WARPS=1,CP_ASYNC_STAGES=0,VEC=16,SWIZZLE=1,MIN_CTAS=1,"
       "KV_SPLITS=1,PERSISTENT=0",
       "b4.h16.q4096.d64.f16", "spill"},
      {"attention_wmma:MMA=1,ACC=32,BLOCK_M=128,BLOCK_N=64,WARPS=1,CP_ASYNC_STAGES=0,VEC=16,SWIZZLE=1,MIN_CTAS=1,"
       "KV_SPLITS=1,PERSISTENT=0",
       "b4.h16.q4096.d128.f16", "spill"},
  };
  for (const auto& [variant, problem, why, device] : forbidden) {
    EXPECT_THAT(Refusal(variant, problem, device), HasSubstr(why)) << variant;
  }
}

TEST_F(Advised, IsWhatKeepsSlowButWorkingVariantsOut) {
  struct {
    const char* variant;
    const char* problem;
  } const slow[] = {
      // rescaled in each step, with launch bounds
      {"attention_mma:BLOCK_M=64,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,LAZY_"
       "RESCALE=0,"
       "MIN_CTAS=3,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       kProblem},
      // half of the tile's rows past the last query
      {"attention_mma:BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,LAZY_"
       "RESCALE=1,"
       "MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
       "b64.h16.q40.d64.f16"},
      {"attention_hopper:CONSUMERS=2,BLOCK_N=128,STAGES=2,PINGPONG=0,OVERLAP=0,LAZY_RESCALE=0,ONES=0,TEAMS=1,"
       "PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=0",
       kProblem},
      {"attention_simt:MMA=0,ACC=32,BLOCK_M=16,BLOCK_N=64,WARPS=4,CP_ASYNC_STAGES=0,VEC=4,SWIZZLE=1,MIN_CTAS=1,"
       "KV_SPLITS=1,PERSISTENT=0",
       kProblem},
      {"attention_wmma:MMA=1,ACC=32,BLOCK_M=16,BLOCK_N=32,WARPS=2,CP_ASYNC_STAGES=2,VEC=16,SWIZZLE=0,MIN_CTAS=1,"
       "KV_SPLITS=1,PERSISTENT=0",
       kProblem},
  };
  for (const auto& [variant, problem] : slow) {
    EXPECT_EQ(Refusal(variant, problem, "h200"), "") << variant;
    EXPECT_FALSE(IsSearched(variant, problem, "h200")) << variant;
  }
}

}  // namespace
}  // namespace attune::space
