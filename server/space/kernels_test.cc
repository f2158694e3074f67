// The families that ship, as data: they load, their spaces add up, and nothing is offered that a device cannot hold.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"

namespace attune::space {
namespace {

class Kernels : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  static std::vector<std::shared_ptr<const Family>> Families() {
    auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    EXPECT_TRUE(families.ok()) << families.status();
    return families.ok() ? *families : std::vector<std::shared_ptr<const Family>>();
  }
};

TEST_P(Kernels, SpacesAddUpAndFitTheDevice) {
  const Problem problem = *ParseProblem(std::get<0>(GetParam()));
  const v1::Device device = *DeviceProfile(std::get<1>(GetParam()));
  int64_t variants = 0;
  for (const auto& family : Families()) {
    if (family->manifest.backend() != v1::BACKEND_CUDA || family->manifest.role() > family::v1::ROLE_SEARCH) continue;
    const auto enumeration = Enumerate(family, problem, device);
    ASSERT_TRUE(enumeration.ok()) << enumeration.status();
    int64_t removed = 0;
    for (const Removed& entry : enumeration->removed) {
      removed += entry.count;
      EXPECT_FALSE(entry.reason.empty()) << family->name() << ": " << entry.constraint;
    }
    EXPECT_EQ(removed + static_cast<int64_t>(enumeration->variants.size()), enumeration->product) << family->name();
    variants += static_cast<int64_t>(enumeration->variants.size());
    for (const Variant& variant : enumeration->variants) {
      const auto recipe = RecipeFor(variant, problem, device);
      ASSERT_TRUE(recipe.ok()) << recipe.status();
      EXPECT_LE(recipe->launches(recipe->main_launch()).dynamic_shared_bytes(), device.shared_bytes_per_block())
          << variant.ToText();
    }
  }
  EXPECT_GT(variants, 100);
}

INSTANTIATE_TEST_SUITE_P(All, Kernels,
                         ::testing::Combine(::testing::Values("b1.h1.q128.d64.f16", "b2.h8.q512.d64.bf16.causal",
                                                              "b1.h32.kvh8.q1.kv8192.d128.bf16",
                                                              "b1.h2.q113.kv203.d256.f16.causal-br.lse",
                                                              "b4.h16.q2048.d128.f16.causal-br.sinks.varlen",
                                                              "b1.h32.kvh8.q1.kv8192.d128.bf16.page16"),
                                            ::testing::Values("l4", "h200")));

bool IsGiven(const family::v1::Launch& launch, v1::BufferRole role) {
  return absl::c_any_of(launch.args(),
                        [role](const family::v1::Argument& arg) { return arg.has_buffer() && arg.buffer() == role; });
}

// To the main launch, and where rows begin to every launch that writes results.
bool IsGiven(const Family& family, v1::BufferRole role) {
  return absl::c_all_of(family.manifest.launches(), [role](const family::v1::Launch& launch) {
    const bool needed = launch.main() || (role == v1::BUFFER_ROLE_Q_BOUNDS && IsGiven(launch, v1::BUFFER_ROLE_O));
    return !needed || IsGiven(launch, role);
  });
}

TEST(Families, RefuseWhatTheirKernelsAreNotGiven) {
  struct {
    const char* problem;
    std::vector<v1::BufferRole> roles;
  } const needs[] = {
      {"b2.h4.q64.d64.f16.sinks", {v1::BUFFER_ROLE_SINKS}},
      {"b2.h4.q64.d64.f16.varlen", {v1::BUFFER_ROLE_Q_BOUNDS, v1::BUFFER_ROLE_KV_BOUNDS}},
      {"b2.h4.q64.d64.f16.page16", {v1::BUFFER_ROLE_KV_LENGTHS, v1::BUFFER_ROLE_PAGE_TABLE}},
      {"b2.h4.q64.d64.f16.varlen.page16",
       {v1::BUFFER_ROLE_Q_BOUNDS, v1::BUFFER_ROLE_KV_LENGTHS, v1::BUFFER_ROLE_PAGE_TABLE}},
      {"b2.h4.q64.d64.f16.kve4m3", {v1::BUFFER_ROLE_K_SCALE, v1::BUFFER_ROLE_V_SCALE}},
      {"b2.h4.q64.d64.f16.kve5m2", {v1::BUFFER_ROLE_K_SCALE, v1::BUFFER_ROLE_V_SCALE}},
  };
  for (const char* root : {"/kernels_src", "/tests/families"}) {
    const auto families = LoadFamilies(std::string(ATTUNE_SOURCE_DIR) + root);
    ASSERT_TRUE(families.ok()) << families.status();
    for (const auto& family : *families) {
      if (family->manifest.role() == family::v1::ROLE_FLOOR) continue;
      for (const auto& [problem, roles] : needs) {
        if (!Applies(*family, *ParseProblem(problem), *DeviceProfile("l4")).ok()) continue;
        for (v1::BufferRole role : roles) {
          EXPECT_TRUE(IsGiven(*family, role))
              << family->name() << " takes " << problem << " without " << v1::BufferRole_Name(role);
        }
      }
    }
  }
}

class OneFamily : public ::testing::Test {
 protected:
  explicit OneFamily(absl::string_view name) : name_(name) {}

  void SetUp() override {
    const auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
    ASSERT_TRUE(families.ok()) << families.status();
    for (const auto& family : *families) {
      if (family->name() == name_) family_ = family;
    }
    ASSERT_NE(family_, nullptr);
  }

  std::string GuessFor(const char* problem, const char* device) const {
    const auto guess = Guess(family_, *ParseProblem(problem), *DeviceProfile(device));
    return guess.ok() ? guess->ToText() : guess.status().ToString();
  }

  // That a search of the problem has a variant to try, and the guess is one.
  void ExpectAdvisedGuess(const std::string& text, const char* device_name) const {
    const Problem problem = *ParseProblem(text);
    const v1::Device device = *DeviceProfile(device_name);
    const auto guess = Guess(family_, problem, device);
    ASSERT_TRUE(guess.ok()) << text << " " << device_name;
    const auto advised = Refit(*guess, problem, device);
    ASSERT_TRUE(advised.ok()) << text << " " << device_name << ": " << advised.status();
    EXPECT_EQ(advised->values, guess->values) << text << " " << device_name;
  }

  const absl::string_view name_;
  std::shared_ptr<const Family> family_;
};

// The family that answers most problems: never without a variant, neither few nor too many to search, and its first
// answer is one of the fastest that an H200 measured.
class AttentionMma : public OneFamily {
 protected:
  AttentionMma() : OneFamily("attention_mma") {}
};

TEST_F(AttentionMma, HasAVariantForEveryHeadDimAndLength) {
  for (const char* device : {"l4", "h200"}) {
    for (const char* dim : {"d8", "d32", "d40", "d64", "d80", "d96", "d128", "d160", "d192", "d256"}) {
      for (const char* lengths : {"q1", "q1.kv100000", "q3.kv1000", "q65.kv700", "q300.kv1", "q1000", "q17.kv40000",
                                  "q100.kv30000", "q5000"}) {
        for (const char* heads : {"b1.h1", "b1.h32.kvh8", "b3.h8.kvh1", "b64.h16"}) {
          const std::string problem = absl::StrCat(heads, ".", lengths, ".", dim, ".f16.causal-br");
          ExpectAdvisedGuess(problem, device);
        }
      }
    }
  }
}

TEST_F(AttentionMma, HasAVariantForSinksVarlenAndPages) {
  for (const char* device : {"l4", "h200"}) {
    for (const char* dim : {"d8", "d40", "d64", "d128", "d256"}) {
      for (const char* lengths : {"q1", "q1.kv100000", "q65.kv700", "q1000"}) {
        for (const char* features :
             {".sinks", ".varlen", ".page1", ".page16.bshd", ".softcap5.sinks.varlen.page4096"}) {
          const std::string problem = absl::StrCat("b3.h8.kvh2.", lengths, ".", dim, ".bf16.window64", features);
          ExpectAdvisedGuess(problem, device);
        }
      }
    }
  }
}

TEST_F(AttentionMma, HasAVariantFor8BitKeys) {
  for (const char* device : {"l4", "h200"}) {
    for (const char* dim : {"d16", "d48", "d64", "d128", "d256"}) {
      for (const char* lengths : {"q1", "q1.kv100000", "q65.kv700", "q1000"}) {
        for (const char* features : {".kve4m3", ".kve5m2.varlen", ".kve4m3.page1", ".kve4m3.softcap5.sinks.causal"}) {
          ExpectAdvisedGuess(absl::StrCat("b3.h8.kvh2.", lengths, ".", dim, ".bf16", features), device);
        }
      }
    }
  }
}

TEST_F(AttentionMma, Takes8BitKeysInRowsOfWholeChunks) {
  const v1::Device device = *DeviceProfile("l4");
  EXPECT_TRUE(Guess(family_, *ParseProblem("b1.h1.q64.d40.f16"), device).ok());
  EXPECT_FALSE(Guess(family_, *ParseProblem("b1.h1.q64.d40.f16.kve4m3"), device).ok());
}

TEST_F(AttentionMma, Gives8BitKeysHalfTheSharedMemory) {
  const v1::Device device = *DeviceProfile("h200");
  const auto shared_bytes = [&](const char* text) {
    const auto variant = ParseVariant(
        "attention_mma:BLOCK_M=16,BLOCK_N=128,WARPS_M=1,WARPS_N=4,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,"
        "LAZY_RESCALE=1,"
        "MIN_CTAS=1,PACK_GQA=1,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0",
        {family_});
    const auto recipe = RecipeFor(*variant, *ParseProblem(text), device);
    return recipe->launches(recipe->main_launch()).dynamic_shared_bytes();
  };
  constexpr int kQueries = 16 * 128 * 2;
  EXPECT_EQ(shared_bytes("b8.h32.kvh8.q1.kv4096.d128.f16"), kQueries + 4 * 128 * 128 * 2);
  EXPECT_EQ(shared_bytes("b8.h32.kvh8.q1.kv4096.d128.f16.kve4m3"), kQueries + 4 * 128 * 128);
}

TEST_F(AttentionMma, GivesConvertedTilesSharedMemoryOfTheirOwn) {
  const v1::Device device = *DeviceProfile("h200");
  const auto shared_bytes = [&](int k_stages, int q_registers, int convert) {
    const auto variant = ParseVariant(
        absl::StrCat("attention_mma:BLOCK_M=64,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=", k_stages,
                     ",V_STAGES=1,Q_REGISTERS=", q_registers, ",KV_CONVERT=", convert,
                     ",LAZY_RESCALE=1,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0"),
        {family_});
    const auto recipe = RecipeFor(*variant, *ParseProblem("b4.h16.q4096.d64.f16.kve4m3"), device);
    return recipe->launches(recipe->main_launch()).dynamic_shared_bytes();
  };
  constexpr int kBytes = 64 * 64;  // of 8-bit K, or V; Q has twice of it, as has a converted tile
  EXPECT_EQ(shared_bytes(1, 0, 0), (2 + 2) * kBytes);
  EXPECT_EQ(shared_bytes(2, 0, 1), (2 + 3 + 2) * kBytes);
  EXPECT_EQ(shared_bytes(1, 0, 2), (2 + 2 + 4) * kBytes);
  EXPECT_EQ(shared_bytes(1, 1, 2), (2 + 4) * kBytes) << "Q is where V's tile will be";
}

TEST_F(AttentionMma, FindsKeysInPagesWhateverTheLayoutOfQueries) {
  const Problem problem = *ParseProblem("b2.h8.kvh2.q32.kv64.d64.f16.page16");
  const v1::Device device = *DeviceProfile("h200");
  const auto guess = Guess(family_, problem, device);
  ASSERT_TRUE(guess.ok()) << guess.status();
  const auto recipe = RecipeFor(*guess, problem, device);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  std::map<std::string, int64_t> strides;
  for (const auto& argument : recipe->launches(recipe->main_launch()).args()) {
    if (!argument.has_stride()) continue;
    strides[absl::StrCat(v1::BufferRole_Name(argument.stride().role()), " ",
                         v1::Stride::Dimension_Name(argument.stride().dimension()))] = argument.i64();
  }
  ASSERT_EQ(strides.size(), 12 + 4) << "those of scales that there are not are 0";
  EXPECT_EQ(strides["BUFFER_ROLE_Q DIMENSION_HEAD"], 32 * 64) << "queries are bhsd";
  for (const std::string role : {"BUFFER_ROLE_K ", "BUFFER_ROLE_V "}) {
    EXPECT_EQ(strides[role + "DIMENSION_BATCH"], 16 * 2 * 64) << "a page's";
    EXPECT_EQ(strides[role + "DIMENSION_HEAD"], 64);
    EXPECT_EQ(strides[role + "DIMENSION_ROW"], 2 * 64);
  }
}

TEST_F(AttentionMma, IsTheSameCodeInBothLayouts) {
  const v1::Device device = *DeviceProfile("h200");
  const Problem bhsd = *ParseProblem("b2.h8.kvh2.q512.d64.f16");
  const Problem bshd = *ParseProblem("b2.h8.kvh2.q512.d64.f16.bshd");
  const auto guess = Guess(family_, bhsd, device);
  ASSERT_TRUE(guess.ok()) << guess.status();
  EXPECT_EQ(SpecFor(*guess, bhsd, device)->key, SpecFor(*guess, bshd, device)->key);
}

TEST_F(AttentionMma, CompilesFeaturesInOnlyWhereAProblemHasThem) {
  const v1::Device device = *DeviceProfile("h200");
  const auto options_for = [&](const char* text) {
    const Problem problem = *ParseProblem(text);
    return SpecFor(*Guess(family_, problem, device), problem, device)->options;
  };
  EXPECT_THAT(options_for("b2.h8.q512.d64.f16"), ::testing::IsSupersetOf({"-DSINKS=0", "-DVARLEN=0", "-DPAGE_SIZE=0"}));
  EXPECT_THAT(options_for("b2.h8.q512.d64.f16.sinks.varlen.page16"),
              ::testing::IsSupersetOf({"-DSINKS=1", "-DVARLEN=1", "-DPAGE_SIZE=16"}));
}

TEST_F(AttentionMma, HasThousandsOfVariantsOfFewCodesForAnL4) {
  const Problem problem = *ParseProblem("b1.h16.q2048.d128.f16.causal");
  const v1::Device device = *DeviceProfile("l4");
  const auto enumeration = Enumerate(family_, problem, device);
  ASSERT_TRUE(enumeration.ok()) << enumeration.status();
  std::set<std::string> codes;
  for (const Variant& variant : enumeration->variants) codes.insert(SpecFor(variant, problem, device)->key);
  EXPECT_GE(enumeration->variants.size(), 1500);
  EXPECT_LE(enumeration->variants.size(), 3000);
  EXPECT_LE(codes.size(), 500);
}

// The parameters of a problem's variants for an L4.
using Values = std::map<std::string, int64_t>;
std::vector<Values> VariantsOf(const std::shared_ptr<const Family>& family, const char* problem) {
  const auto enumeration = Enumerate(family, *ParseProblem(problem), *DeviceProfile("l4"));
  EXPECT_TRUE(enumeration.ok()) << enumeration.status();
  std::vector<Values> all;
  for (const Variant& variant : enumeration->variants) {
    Values values;
    for (size_t i = 0; i < variant.values.size(); ++i) {
      values[family->manifest.parameters(static_cast<int>(i)).name()] = variant.values[i];
    }
    all.push_back(std::move(values));
  }
  return all;
}

int64_t CountOf(const std::vector<Values>& variants, const char* name, int64_t value) {
  return std::count_if(variants.begin(), variants.end(),
                       [&](const Values& values) { return values.at(name) == value; });
}

TEST_F(AttentionMma, ConvertsOnceWhereManyRowsReadKeysOf8Bits) {
  const char* prefill = "b4.h16.q2048.d128.f16.kve5m2";
  for (const int convert : {0, 1, 2}) EXPECT_GT(CountOf(VariantsOf(family_, prefill), "KV_CONVERT", convert), 0);
  for (const char* problem : {"b4.h16.q2048.d128.f16", "b32.h32.kvh8.q1.kv4096.d128.bf16.kve4m3"}) {
    const auto variants = VariantsOf(family_, problem);
    EXPECT_EQ(CountOf(variants, "KV_CONVERT", 0), static_cast<int64_t>(variants.size())) << problem;
  }
}

TEST_F(AttentionMma, HasNoTwoVariantsOfOneCodeWithASoftcap) {
  const auto variants = VariantsOf(family_, "b4.h16.q2048.d128.bf16.softcap50.causal");
  EXPECT_FALSE(variants.empty());
  EXPECT_EQ(CountOf(variants, "LAZY_RESCALE", 0), 0);
}

TEST_F(AttentionMma, SplitsPrefillsOfOneOrTwoWavesAndGuessesThemWhole) {
  for (const char* problem : {"b1.h16.q1024.d128.f16", "b1.h16.q1024.d128.f16.causal", "b1.h8.q1024.d128.f16",
                              "b1.h12.q2048.d128.f16.causal"}) {
    const auto variants = VariantsOf(family_, problem);
    const auto whole = CountOf(variants, "KV_SPLITS", 1);
    EXPECT_LT(whole, variants.size()) << problem;
    EXPECT_GT(2 * whole, variants.size()) << problem << ": splits are a part of the space";
    EXPECT_THAT(GuessFor(problem, "l4"), ::testing::HasSubstr("KV_SPLITS=1,"));
  }
  const auto many = VariantsOf(family_, "b4.h16.q4096.d128.f16");
  EXPECT_EQ(CountOf(many, "KV_SPLITS", 1), many.size());
}

TEST_F(AttentionMma, HasTilesOf256RowsForShortHeadDims) {
  EXPECT_GT(CountOf(VariantsOf(family_, "b4.h16.q2048.d64.f16"), "BLOCK_M", 256), 0);
  EXPECT_EQ(CountOf(VariantsOf(family_, "b4.h16.q2048.d128.f16"), "BLOCK_M", 256), 0);
}

TEST_F(AttentionMma, TriesFullTilesOnSequencesOfTheirOwnLengths) {
  for (const char* problem : {"b8.h32.kvh8.q4096.d128.f16.varlen", "b8.h32.kvh8.q4096.d128.bf16.causal.varlen"}) {
    const auto variants = VariantsOf(family_, problem);
    EXPECT_TRUE(std::any_of(variants.begin(), variants.end(), [](const Values& values) {
      return values.at("BLOCK_M") == 128 && values.at("BLOCK_N") == 64 && values.at("WARPS_M") == 4;
    })) << problem;
  }
}

TEST_F(AttentionMma, SkipsTilesWarpByWarpWhereAWindowHidesManyOfThem) {
  for (const char* problem : {"b4.h16.q4096.d64.bf16.window128.sinks", "b4.h16.q4096.d128.f16.window256",
                              "b2.h40.q515.kv300.d64.f16.window64.lse"}) {
    const auto variants = VariantsOf(family_, problem);
    EXPECT_GT(CountOf(variants, "WARP_SKIP", 1), 0) << problem;
    EXPECT_LT(3 * CountOf(variants, "WARP_SKIP", 1), variants.size()) << problem << ": a part of the space";
    EXPECT_THAT(GuessFor(problem, "l4"), ::testing::HasSubstr("WARP_SKIP=0,"));
  }
  for (const char* problem :
       {"b8.h16.q512.d128.f16", "b8.h16.q512.d128.f16.causal", "b64.h16.q1.kv500.d64.f16.causal-br"}) {
    EXPECT_EQ(CountOf(VariantsOf(family_, problem), "WARP_SKIP", 1), 0) << problem;
  }
}

TEST_F(AttentionMma, GuessesWhatAnH200RanFastest) {
  EXPECT_EQ(GuessFor("b4.h16.q4096.d128.f16", "h200"),
            "attention_mma:BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,"
            "LAZY_RESCALE=1,WARP_SKIP=0,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0");
  EXPECT_EQ(GuessFor("b4.h16.q4096.d128.f16.causal", "h200"),
            "attention_mma:BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,"
            "LAZY_RESCALE=1,WARP_SKIP=0,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=1");
  EXPECT_EQ(GuessFor("b1.h1.q128.d64.f16", "h200"),
            "attention_mma:BLOCK_M=16,BLOCK_N=128,WARPS_M=1,WARPS_N=4,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,"
            "LAZY_RESCALE=1,WARP_SKIP=0,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0");
  EXPECT_EQ(GuessFor("b1.h32.kvh8.q1.kv8192.d128.f16", "h200"),
            "attention_mma:BLOCK_M=16,BLOCK_N=128,WARPS_M=1,WARPS_N=4,K_STAGES=2,V_STAGES=2,Q_REGISTERS=0,KV_CONVERT=0,"
            "LAZY_RESCALE=1,WARP_SKIP=0,MIN_CTAS=1,PACK_GQA=1,KV_SPLITS=16,COMBINE=2,PERSISTENT=0,LONGEST_FIRST=0");
  EXPECT_EQ(GuessFor("b4.h16.q4096.d128.f16.kve4m3", "h200"),
            "attention_mma:BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=1,V_STAGES=1,Q_REGISTERS=0,KV_CONVERT=2,"
            "LAZY_RESCALE=1,WARP_SKIP=0,MIN_CTAS=1,PACK_GQA=0,KV_SPLITS=1,COMBINE=0,PERSISTENT=0,LONGEST_FIRST=0");
}

// The family for long prefills on Hopper.
class AttentionHopper : public OneFamily {
 protected:
  AttentionHopper() : OneFamily("attention_hopper") {}

  std::string Refusal(const char* problem, const char* device) const {
    return std::string(Applies(*family_, *ParseProblem(problem), *DeviceProfile(device)).message());
  }
};

TEST_F(AttentionHopper, NeedsHopper) {
  for (const char* device : {"a100", "l4", "rtx4090"}) {
    EXPECT_THAT(Refusal("b4.h16.q4096.d128.f16", device), ::testing::HasSubstr("sm_90a")) << device;
  }
  for (const char* device : {"h100", "h200"}) EXPECT_EQ(Refusal("b4.h16.q4096.d128.f16", device), "") << device;
}

TEST_F(AttentionHopper, LeavesToOthersWhatItDoesNotCompute) {
  for (const char* problem : {"b32.h32.kvh8.q1.kv4096.d128.f16", "b1.h32.q32.kv4096.d128.f16", "b4.h16.q4096.d80.f16",
                              "b4.h24.kvh8.q32.kv4096.d128.f16", "b4.h16.q4096.d128.f16.page12"}) {
    EXPECT_NE(Refusal(problem, "h200"), "") << problem;
  }
}

TEST_F(AttentionHopper, HasAVariantForWhateverItAppliesTo) {
  int applies = 0;
  for (const char* dim : {"d64", "d96", "d128", "d160", "d192", "d224", "d256"}) {
    for (const char* lengths :
         {"q64", "q65.kv1", "q100.kv700", "q129.kv30", "q1000", "q300.kv30000", "q5000", "q20.kv7000"}) {
      for (const char* heads : {"b1.h1", "b1.h32.kvh8", "b3.h8.kvh1", "b64.h16"}) {
        for (const char* features : {".f16", ".bf16.causal-br.sinks.lse", ".f16.window64.softcap5.bshd", ".f16.page48",
                                     ".bf16.causal.varlen", ".f16.window64.softcap5.sinks.varlen.page16.lse"}) {
          const std::string problem = absl::StrCat(heads, ".", lengths, ".", dim, features);
          if (!Refusal(problem.c_str(), "h200").empty()) continue;
          ++applies;
          ExpectAdvisedGuess(problem, "h200");
        }
      }
    }
  }
  EXPECT_GT(applies, 400);
}

TEST_F(AttentionHopper, HasDozensOfVariants) {
  for (const char* problem : {"b4.h16.q4096.d128.f16", "b4.h32.q4096.d64.f16.causal", "b2.h16.q2048.d96.f16"}) {
    const auto enumeration = Enumerate(family_, *ParseProblem(problem), *DeviceProfile("h200"));
    ASSERT_TRUE(enumeration.ok()) << enumeration.status();
    EXPECT_GE(enumeration->variants.size(), 12) << problem;
    EXPECT_LE(enumeration->variants.size(), 150) << problem;
  }
}

// docs/benchmarks/2026-11-22-h200-hopper.md: the fastest tiles there, or within 2 % of them.
TEST_F(AttentionHopper, GuessesWhatAnH200RanFastest) {
  const auto expect = [this](const char* problem, const char* tile, const char* sums, const char* rest) {
    EXPECT_EQ(GuessFor(problem, "h200"),
              absl::StrCat("attention_hopper:", tile, ",OVERLAP=1,LAZY_RESCALE=1,", sums, ",", rest))
        << problem;
  };
  expect("b4.h16.q4096.d128.f16", "CONSUMERS=3,BLOCK_N=64,STAGES=2,PINGPONG=0", "ONES=1",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=0");
  expect("b1.h16.q16384.d128.f16.causal", "CONSUMERS=3,BLOCK_N=64,STAGES=2,PINGPONG=0", "ONES=1",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=1");
  expect("b4.h16.q4096.d128.bf16", "CONSUMERS=3,BLOCK_N=80,STAGES=2,PINGPONG=0", "ONES=0",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=0");
  expect("b1.h32.kvh8.q2048.d128.f16.causal", "CONSUMERS=2,BLOCK_N=128,STAGES=2,PINGPONG=1", "ONES=1",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=1");
  expect("b4.h32.q4096.d64.f16.causal", "CONSUMERS=3,BLOCK_N=128,STAGES=2,PINGPONG=1", "ONES=1",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=1");
  expect("b2.h16.q2048.d96.f16", "CONSUMERS=3,BLOCK_N=80,STAGES=2,PINGPONG=1", "ONES=1",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=0");
  expect("b2.h16.q2048.d256.f16.causal", "CONSUMERS=2,BLOCK_N=64,STAGES=2,PINGPONG=1", "ONES=0",
         "TEAMS=1,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=1");
  expect("b2.h8.q512.d64.f16", "CONSUMERS=2,BLOCK_N=128,STAGES=2,PINGPONG=0", "ONES=1",
         "TEAMS=2,PACK_GQA=0,SPLIT=0,KV_SPLITS=1,LONGEST_FIRST=0");
  expect("b1.h32.kvh8.q128.kv8192.d128.f16", "CONSUMERS=2,BLOCK_N=128,STAGES=2,PINGPONG=1", "ONES=1",
         "TEAMS=1,PACK_GQA=0,SPLIT=1,KV_SPLITS=4,LONGEST_FIRST=0");
  expect("b4.h32.kvh8.q32.kv4096.d128.f16", "CONSUMERS=2,BLOCK_N=128,STAGES=2,PINGPONG=1", "ONES=1",
         "TEAMS=1,PACK_GQA=1,SPLIT=1,KV_SPLITS=4,LONGEST_FIRST=0");
}

// Copies of a tile whose keys lie in pages, as the maps of K have them.
TEST_F(AttentionHopper, CopiesNoKeysOfTwoPagesAtOnce) {
  const v1::Device device = *DeviceProfile("h200");
  for (const int page : {8, 16, 24, 32, 48, 64, 80, 128, 256, 1024}) {
    const Problem problem = *ParseProblem(absl::StrCat("b4.h8.q300.kv4000.d128.f16.page", page));
    const auto enumeration = Enumerate(family_, problem, device);
    ASSERT_TRUE(enumeration.ok()) << enumeration.status();
    ASSERT_FALSE(enumeration->variants.empty()) << page;
    for (const Variant& variant : enumeration->variants) {
      const v1::TensorMap k = RecipeFor(variant, problem, device)->launches(0).args(1).tensor_map();
      EXPECT_EQ(page % k.box(1), 0) << variant.ToText();
    }
  }
}

TEST_F(AttentionHopper, HasNoMoreCtasThanAreResidentAndACounterOnlyForMoreItems) {
  const v1::Device device = *DeviceProfile("h200");
  const auto recipe_for = [&](const char* text) {
    const Problem problem = *ParseProblem(text);
    return *RecipeFor(*Guess(family_, problem, device), problem, device);
  };
  const v1::LaunchRecipe many = recipe_for("b4.h16.q4096.d128.f16");
  EXPECT_EQ(many.launches(0).grid().x(), 132);
  EXPECT_EQ(many.scratch(0).bytes(), 4);
  const v1::LaunchRecipe few = recipe_for("b2.h8.q512.d64.f16");
  EXPECT_EQ(few.launches(0).grid().x(), 2 * 8 * 512 / 64);
  EXPECT_EQ(few.scratch(0).bytes(), 0);
}

// What the parameters of a kernel take, in order: "pointer i32 ...".
std::vector<std::string> ParametersOf(const Family& family, const std::string& entry) {
  for (const auto& [path, text] : family.sources) {
    const size_t begin = text.find(" " + entry + "(");
    if (begin == std::string::npos) continue;
    const size_t open = text.find('(', begin) + 1;
    std::vector<std::string> kinds;
    const std::string list = text.substr(open, text.find(')', open) - open);
    for (const absl::string_view parameter : absl::StrSplit(list, ',', absl::SkipWhitespace())) {
      const auto has = [&](absl::string_view word) { return absl::StrContains(parameter, word); };
      kinds.push_back(has("*")           ? "pointer"
                      : has("TensorMap") ? "map"
                      : has("long long") ? "i64"
                      : has("float")     ? "f32"
                                         : "i32");
    }
    return kinds;
  }
  return {};
}

std::vector<std::string> ArgumentsOf(const family::v1::Launch& launch) {
  std::vector<std::string> kinds;
  for (const family::v1::Argument& argument : launch.args()) {
    kinds.push_back(argument.has_tensor_map() ? "map"
                    : argument.has_i32()      ? "i32"
                    : argument.has_i64()      ? "i64"
                    : argument.has_stride()   ? "i64"
                    : argument.has_f32()      ? "f32"
                                              : "pointer");
  }
  return kinds;
}

TEST(KernelArguments, AreWhatTheKernelTakes) {
  const auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  ASSERT_TRUE(families.ok()) << families.status();
  for (const auto& family : *families) {
    if (family->manifest.backend() != v1::BACKEND_CUDA) continue;
    for (const family::v1::Launch& launch : family->manifest.launches()) {
      EXPECT_EQ(ArgumentsOf(launch), ParametersOf(*family, launch.entry())) << family->name() << " " << launch.entry();
    }
  }
}

TEST(KernelRoles, EveryBackEndHasAReferenceAndAFloor) {
  const auto families = LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  ASSERT_TRUE(families.ok()) << families.status();
  for (const v1::Backend backend : {v1::BACKEND_CUDA, v1::BACKEND_OPENCL}) {
    for (const family::v1::Role role : {family::v1::ROLE_REFERENCE, family::v1::ROLE_FLOOR, family::v1::ROLE_SEARCH}) {
      EXPECT_TRUE(std::any_of(
          families->begin(), families->end(),
          [&](const auto& family) { return family->manifest.backend() == backend && family->manifest.role() == role; }))
          << Backend_Name(backend) << " " << Role_Name(role);
    }
  }
}

}  // namespace
}  // namespace attune::space
