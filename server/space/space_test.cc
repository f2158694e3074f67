#include "server/space/space.h"

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/builtins.h"
#include "server/space/manifest.h"
#include "server/space/testing/tiles_family.h"

namespace attune::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t TotalRemoved(const Enumeration& enumeration) {
  int64_t total = 0;
  for (const Removed& removed : enumeration.removed) total += removed.count;
  return total;
}

TEST(Enumerate, LeavesWhatSatisfiesEveryConstraintInOrder) {
  const auto enumeration = Enumerate(Make(kTiles), *ParseProblem("b1.h1.q64.d64.f16"), *DeviceProfile("l4"));
  ASSERT_TRUE(enumeration.ok());
  std::vector<std::string> texts;
  for (const Variant& variant : enumeration->variants) texts.push_back(variant.ToText());
  EXPECT_THAT(texts, ElementsAre("tiles:BLOCK_M=16,WARPS=1,KV_SPLITS=1", "tiles:BLOCK_M=32,WARPS=1,KV_SPLITS=1",
                                 "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", "tiles:BLOCK_M=64,WARPS=1,KV_SPLITS=1",
                                 "tiles:BLOCK_M=64,WARPS=2,KV_SPLITS=1", "tiles:BLOCK_M=64,WARPS=4,KV_SPLITS=1"));
}

TEST(Enumerate, CountsWhatEachConstraintRemoved) {
  const auto enumeration = Enumerate(Make(kTiles), *ParseProblem("b1.h1.q64.d64.f16"), *DeviceProfile("l4"));
  ASSERT_TRUE(enumeration.ok());
  EXPECT_EQ(enumeration->product, 3 * 3 * 4);
  std::map<std::string, int64_t> counts;
  for (const Removed& removed : enumeration->removed) counts[removed.reason] = removed.count;
  EXPECT_EQ(counts["a warp needs 16 rows"], 3 * 4);  // (16,2), (16,4) and (32,4), each with four splits
  EXPECT_EQ(counts["splits without keys"], 6 * 3);   // of the six left, all splits but 1
  EXPECT_EQ(TotalRemoved(*enumeration) + static_cast<int64_t>(enumeration->variants.size()), enumeration->product);
}

TEST(Enumerate, NamesConstraintsInTheOrderInWhichTheyFirstRejected) {
  const auto enumeration = Enumerate(Make(kTiles), *ParseProblem("b1.h1.q64.d64.f16"), *DeviceProfile("l4"));
  ASSERT_EQ(enumeration->removed.size(), 2u);  // the device's limits reject nothing
  EXPECT_EQ(enumeration->removed[0].constraint, "KV_SPLITS <= ceil_div(seq_kv, 64)");
  EXPECT_EQ(enumeration->removed[1].constraint, "BLOCK_M >= 16 * WARPS");
}

TEST(Builtins, TellSinksVarlenAndPages) {
  const auto value = [](absl::string_view name, const char* problem) {
    for (const Builtin& builtin : Builtins()) {
      if (builtin.name == name) return builtin.value(*ParseProblem(problem), *DeviceProfile("l4"));
    }
    return -1.0;
  };
  for (absl::string_view name : {"sinks", "is_varlen", "page_size"}) EXPECT_EQ(value(name, "b1.h1.q8.d64.f16"), 0);
  const char* const all = "b2.h1.q8.kv20.d64.f16.causal-br.sinks.varlen.page16";
  EXPECT_EQ(value("sinks", all), 1);
  EXPECT_EQ(value("is_varlen", all), 1);
  EXPECT_EQ(value("is_bshd", all), 1);
  EXPECT_EQ(value("page_size", all), 16);
  EXPECT_EQ(value("causal_offset", all), 12);  // of the longest
}

// Nine parameters of ten values; `rules` says what holds of A to I.
std::shared_ptr<const Family> Huge(const std::string& rules, const std::string& block = "32",
                                   const std::string& binding = "BINDING_LAUNCH_TIME") {
  std::string manifest =
      "name: \"huge\" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: \"huge.cu\" ";
  for (const char name : absl::string_view("ABCDEFGHI")) {
    absl::StrAppend(&manifest, "parameters { name: \"", std::string(1, name),
                    "\" values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] guess: 5 binding: ", binding, " } ");
  }
  absl::StrAppend(&manifest, rules, " launches { entry: \"main\" main: true block_x: \"", block, "\" }");
  return Make(manifest);
}
constexpr int64_t kBillion = 1'000'000'000;

TEST(Enumerate, ABillionVariantsThatNoRulePrunesAreCountedAndNotListed) {
  const auto enumeration = Enumerate(Huge(""), kProblem, *DeviceProfile("l4"));
  ASSERT_TRUE(enumeration.ok());
  EXPECT_EQ(enumeration->count, kBillion);
  EXPECT_EQ(enumeration->product, kBillion);
  EXPECT_TRUE(enumeration->counted);
  EXPECT_FALSE(enumeration->listed);
  EXPECT_EQ(enumeration->variants.capacity(), 0u);
}

TEST(Enumerate, ABillionThatRulesPruneToFewAreListed) {
  const auto enumeration = Enumerate(
      Huge(
          "constraints { expr: \"A == B && C <= 2\" reason: \"r\" } constraints { expr: \"D + E + F + G + H + I <= 7\" "
          "reason: \"s\" } constraints { expr: \"D + E + F <= 4\" reason: \"t\" }"),
      kProblem, *DeviceProfile("l4"));
  ASSERT_TRUE(enumeration.ok());
  EXPECT_TRUE(enumeration->listed);
  EXPECT_EQ(enumeration->count, static_cast<int64_t>(enumeration->variants.size()));
  EXPECT_EQ(enumeration->count, 10 * 2 * 7);  // one of the six may be 2
  EXPECT_EQ(enumeration->count + TotalRemoved(*enumeration), kBillion);
}

TEST(Enumerate, WhatCannotBeCountedInTimeSaysSo) {
  const auto enumeration =
      Enumerate(Huge("constraints { expr: \"A + B + C + D + E + F + G + H + I != 45\" reason: \"r\" }"), kProblem,
                *DeviceProfile("l4"));
  ASSERT_TRUE(enumeration.ok());
  EXPECT_FALSE(enumeration->counted);
  EXPECT_FALSE(enumeration->listed);
  EXPECT_GT(enumeration->count, kMostVariants);
  EXPECT_LT(enumeration->count, kBillion);
}

TEST(Enumerate, OneMoreThanTheMostIsNotListed) {
  const auto many = [](int values, const std::string& rule) {
    std::string manifest = absl::StrReplaceAll(kTiles, {{"values: [ 1, 2, 4, 8 ]", "values: [ @ ]"}});
    std::string list = "1";
    for (int i = 2; i <= values; ++i) absl::StrAppend(&list, ", ", i);
    manifest = absl::StrReplaceAll(
        manifest, {{"[ @ ]", absl::StrCat("[ ", list, " ]")}, {"KV_SPLITS <= ceil_div(seq_kv, 64)", rule}});
    return Enumerate(Make(manifest), *ParseProblem("b1.h1.q64.d64.f16"), *DeviceProfile("l4"));
  };
  static_assert(kMostVariants == 2 * 25'000 && kMostVariants + 1 == 3 * 16'667);
  const auto most = many(25'000, "WARPS == 1 && BLOCK_M <= 32");
  EXPECT_TRUE(most->listed);
  EXPECT_EQ(static_cast<int64_t>(most->variants.size()), kMostVariants);
  const auto more = many(16'667, "WARPS == 1");
  EXPECT_FALSE(more->listed);
  EXPECT_TRUE(more->counted);
  EXPECT_EQ(more->count, kMostVariants + 1);
}

TEST(Enumerate, EndsWhenNobodyWaitsForIt) {
  int asked = 0;
  const auto enumeration =
      Enumerate(Huge("constraints { expr: \"A + B + C + D + E + F + G + H + I != 45\" reason: \"r\" }"), kProblem,
                *DeviceProfile("l4"), [&] { return ++asked == 3; });
  EXPECT_EQ(enumeration.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
}

TEST(Sample, DrawsDifferentFeasibleVariantsOfABillion) {
  const auto family = Huge("constraints { expr: \"A + B + C + D + E + F + G + H + I != 45\" reason: \"r\" }");
  const auto drawn = Sample(family, kProblem, *DeviceProfile("l4"), 1000, 7);
  ASSERT_TRUE(drawn.ok());
  std::set<std::string> texts;
  std::set<int64_t> first;
  for (const Variant& variant : *drawn) {
    EXPECT_TRUE(Feasible(variant, kProblem, *DeviceProfile("l4")).ok());
    texts.insert(variant.ToText());
    first.insert(variant.values[0]);
  }
  EXPECT_EQ(texts.size(), 1000u);
  EXPECT_EQ(first.size(), 10u);
  const auto again = Sample(family, kProblem, *DeviceProfile("l4"), 1000, 7);
  const auto other = Sample(family, kProblem, *DeviceProfile("l4"), 1000, 8);
  EXPECT_EQ(again->back().values, drawn->back().values);
  EXPECT_NE(other->front().values, drawn->front().values);
}

TEST(Sample, ComesBackWithWhatThereIs) {
  EXPECT_EQ(Sample(Make(kTiles), *ParseProblem("b1.h1.q64.d64.f16"), *DeviceProfile("l4"), 100, 1)->size(), 6u);
  EXPECT_TRUE(Sample(Make(kTiles), *ParseProblem("b1.h1.q64.d64.f16.softcap30"), *DeviceProfile("l4"), 9, 1)->empty());
  const auto none = Huge("constraints { expr: \"A + B + C + D + E + F + G + H + I < 0\" reason: \"r\" }");
  EXPECT_TRUE(Sample(none, kProblem, *DeviceProfile("l4"), 9, 1)->empty());
  EXPECT_EQ(Sample(none, kProblem, *DeviceProfile("l4"), 9, 1, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(Guess, IsFoundInABillionWithoutLookingAtThem) {
  const auto launch = Guess(Huge(""), kProblem, *DeviceProfile("l4"));  // a grid of one: never CTAs enough
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->values, std::vector<int64_t>(9, 5));
  const auto compile = Guess(Huge("constraints { expr: \"I > 8\" reason: \"r\" }", "A", "BINDING_COMPILE_TIME"),
                             kProblem, *DeviceProfile("l4"));
  ASSERT_TRUE(compile.ok());
  EXPECT_EQ(compile->values, (std::vector<int64_t>{5, 5, 5, 5, 5, 5, 5, 5, 9}));
  const auto none = Guess(Huge("constraints { expr: \"A + B + C + D + E + F + G + H + I < 0\" reason: \"r\" }"),
                          kProblem, *DeviceProfile("l4"));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
}

TEST(Enumerate, AProblemLimitRemovesTheWholeProduct) {
  const Problem capped = *ParseProblem("b1.h1.q64.d64.f16.softcap30");
  const auto family = Make(kTiles);
  EXPECT_THAT(std::string(Applies(*family, capped, *DeviceProfile("l4")).message()), HasSubstr("no softcap"));
  const auto enumeration = Enumerate(family, capped, *DeviceProfile("l4"));
  EXPECT_TRUE(enumeration->variants.empty());
  EXPECT_EQ(TotalRemoved(*enumeration), enumeration->product);
}

// Pruned and counted by subtree, against every point tried by itself, over random small manifests.
TEST(Enumerate, EqualsFilteringTheWholeProduct) {
  std::mt19937 random(20);
  const auto number = [&random](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  const char* const comparisons[] = {"<=", ">=", "==", "!="};
  for (int round = 0; round < 60; ++round) {
    std::string manifest =
        "name: \"r\" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_OPENCL sources: \"r.cl\" "
        "launches { entry: \"run\" main: true }";
    const int parameters = number(1, 4);
    for (int p = 0; p < parameters; ++p) {
      absl::StrAppend(&manifest, "parameters { name: \"P", p, "\" guess: 1 binding: BINDING_COMPILE_TIME ");
      for (int value = 1, count = number(1, 4); value <= count; ++value) absl::StrAppend(&manifest, " values: ", value);
      absl::StrAppend(&manifest, "}");
    }
    const auto name = [&] { return absl::StrCat("P", number(0, parameters - 1)); };
    absl::StrAppend(&manifest, "lets { name: \"sum\" expr: \"", name(), " + ", name(), "\" }");
    for (int c = number(0, 4); c > 0; --c) {
      absl::StrAppend(&manifest, "constraints { expr: \"", number(0, 1) ? name() : "sum", " * ", name(), " ",
                      comparisons[number(0, 3)], " ", name(), " + ", number(0, 4), "\" reason: \"r\" }");
    }
    const auto family = Make(manifest);
    const v1::Device device = *DeviceProfile("h200");
    const auto enumeration = Enumerate(family, kProblem, device);
    ASSERT_TRUE(enumeration.ok()) << manifest;

    std::set<std::string> expected;
    std::vector<int64_t> values(parameters, 1);
    int64_t product = 0;
    for (int digit = 0; digit < parameters;) {
      ++product;
      const Variant variant{family, values};
      if (Feasible(variant, kProblem, device).ok()) expected.insert(variant.ToText());
      for (digit = 0; digit < parameters; ++digit) {  // the next point, as on an odometer
        if (++values[digit] <= family->manifest.parameters(digit).values_size()) break;
        values[digit] = 1;
      }
    }
    std::set<std::string> got;
    for (const Variant& variant : enumeration->variants) got.insert(variant.ToText());
    EXPECT_EQ(got, expected) << manifest;
    EXPECT_EQ(enumeration->product, product) << manifest;
    EXPECT_EQ(TotalRemoved(*enumeration) + static_cast<int64_t>(got.size()), product) << manifest;
  }
}

TEST(Enumerate, OffersNoMoreThanTheDeviceHas) {
  // 64 rows of 1024 halves are 128 KB: too much for an L4, not for an H200.
  const Problem wide = *ParseProblem("b1.h1.q64.d1024.f16");
  EXPECT_EQ(Enumerate(Make(kTiles), wide, *DeviceProfile("l4"))->variants.size(), 3u);
  EXPECT_EQ(Enumerate(Make(kTiles), wide, *DeviceProfile("h200"))->variants.size(), 6u);
}

TEST(ParseVariant, ReadsWhatToTextWrote) {
  const auto family = Make(kTiles);
  const std::string text = "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4";
  EXPECT_EQ(ParseVariant(text, {family})->ToText(), text);
  EXPECT_EQ(ParseVariant("tiles:KV_SPLITS=4,WARPS=2,BLOCK_M=32", {family})->ToText(), text);
}

TEST(ParseVariant, GivesAParameterThatIsNewerThanTheTextItsValueWhenAbsent) {
  const std::string parameter = absl::StrCat(kTiles, R"(parameters { name: "SKIP" values: [1, 0] guess: 1 when_absent: 0
                                           binding: BINDING_COMPILE_TIME })");
  const auto family = Make(parameter.c_str());
  EXPECT_EQ(ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4", {family})->ToText(),
            "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4,SKIP=0");
  EXPECT_EQ(ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4,SKIP=1", {family})->ToText(),
            "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4,SKIP=1");
}

TEST(ParseVariant, AnErrorNamesWhatIsWrongAndWhatIsAllowed) {
  const auto family = Make(kTiles);
  const auto error = [&](absl::string_view text) {
    return std::string(ParseVariant(text, {family}).status().message());
  };
  EXPECT_THAT(error("tile:BLOCK_M=32"), HasSubstr("family 'tile' is unknown; available: tiles"));
  EXPECT_THAT(error("tiles:BLOCK_M=32,WARPS=2"), HasSubstr("KV_SPLITS is missing; allowed: 1 2 4 8"));
  EXPECT_THAT(error("tiles:BLOCK_M=33,WARPS=2,KV_SPLITS=1"), HasSubstr("BLOCK_M is 33; allowed: 16 32 64"));
  EXPECT_THAT(error("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1,X=1"), HasSubstr("'X' is not a parameter of tiles"));
  EXPECT_THAT(error("tiles:BLOCK_M"), HasSubstr("'BLOCK_M' is not NAME=NUMBER"));
  EXPECT_THAT(error("tiles:BLOCK_M=32,BLOCK_M=32"), HasSubstr("BLOCK_M is given twice"));
}

TEST(SpecFor, LeavesLaunchTimeParametersOut) {
  const auto family = Make(kTiles);
  const v1::Device device = *DeviceProfile("l4");
  const auto one = SpecFor(*ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {family}), kProblem, device);
  const auto four = SpecFor(*ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4", {family}), kProblem, device);
  const auto other = SpecFor(*ParseVariant("tiles:BLOCK_M=64,WARPS=2,KV_SPLITS=4", {family}), kProblem, device);
  EXPECT_THAT(one->options, ElementsAre("-DBLOCK_M=32", "-DWARPS=2", "-DHEAD_DIM=64"));
  EXPECT_THAT(one->entries, ElementsAre("attend", "combine"));
  EXPECT_EQ(one->key, four->key);
  EXPECT_NE(one->key, other->key);
}

TEST(SpecFor, ADefineKeepsEveryBitOfItsNumber) {
  std::string manifest = kTiles;
  absl::StrAppend(&manifest, "defines { name: \"SCALE\" expr: \"1 / 3\" } defines { name: \"NONE\" expr: \"mask\" }",
                  "compile_options: \"-lineinfo\"");
  const auto spec =
      SpecFor(*ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {Make(manifest)}), kProblem, *DeviceProfile("l4"));
  EXPECT_THAT(spec->options, ElementsAre("-DBLOCK_M=32", "-DWARPS=2", "-DHEAD_DIM=64", "-DSCALE=0.33333333333333331",
                                         "-DNONE=0", "-lineinfo"));
}

TEST(SpecFor, ADefineMustBeFinite) {
  std::string manifest = kTiles;
  absl::StrAppend(&manifest, "defines { name: \"SCALE\" expr: \"1 / mask\" }");
  const auto spec =
      SpecFor(*ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {Make(manifest)}), kProblem, *DeviceProfile("l4"));
  EXPECT_THAT(std::string(spec.status().message()),
              HasSubstr("defines 'SCALE': expr is '1 / mask', which comes to inf"));
}

TEST(SpecFor, AnEntryLaunchedTwiceIsCompiledOnce) {
  std::string manifest = kTiles;
  absl::StrAppend(&manifest, "launches { entry: \"combine\" grid_x: \"rows\" }");
  const auto spec =
      SpecFor(*ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {Make(manifest)}), kProblem, *DeviceProfile("l4"));
  EXPECT_THAT(spec->entries, ElementsAre("attend", "combine"));
}

TEST(SpecFor, AnotherTargetIsOtherCode) {
  const Variant variant = *ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {Make(kTiles)});
  EXPECT_NE(SpecFor(variant, kProblem, *DeviceProfile("l4"))->key,
            SpecFor(variant, kProblem, *DeviceProfile("h200"))->key);
}

TEST(RecipeFor, EvaluatesGridsArgumentsAndScratch) {
  const Variant variant = *ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4", {Make(kTiles)});
  const auto recipe = RecipeFor(variant, kProblem, *DeviceProfile("l4"));
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  ASSERT_EQ(recipe->launches_size(), 2);
  EXPECT_EQ(recipe->main_launch(), 1);
  const v1::KernelLaunch& main = recipe->launches(1);
  EXPECT_EQ(main.grid().x(), 16 * 4);
  EXPECT_EQ(main.grid().y(), 16);
  EXPECT_EQ(main.grid().z(), 1);
  EXPECT_EQ(main.block().x(), 64);
  EXPECT_EQ(main.dynamic_shared_bytes(), 32 * 64 * 2);
  EXPECT_EQ(main.args(0).buffer().role(), v1::BUFFER_ROLE_Q);
  EXPECT_EQ(main.args(1).i32(), 512);
  EXPECT_EQ(main.args(2).i64(), 2 * 8 * 512);
  EXPECT_FLOAT_EQ(main.args(3).f32(), 0.125f);
  EXPECT_EQ(main.args(4).buffer().role(), v1::BUFFER_ROLE_SCRATCH);
  EXPECT_EQ(recipe->scratch(0).bytes(), 4 * 2 * 8 * 512 * 4);
  EXPECT_TRUE(recipe->scratch(0).zero_before_first_run());
}

TEST(RecipeFor, LeavesOutLaunchesWhoseConditionDoesNotHold) {
  const Variant variant = *ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1", {Make(kTiles)});
  const auto recipe = RecipeFor(variant, kProblem, *DeviceProfile("l4"));
  ASSERT_EQ(recipe->launches_size(), 1);
  EXPECT_EQ(recipe->main_launch(), 0);
  EXPECT_EQ(recipe->scratch(0).bytes(), 0);
}

TEST(RecipeFor, AnErrorNamesTheFieldAndWhatItComesTo) {
  const auto error = [](const std::string& from, const std::string& to) {
    const Variant variant =
        *ParseVariant("tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4", {Make(absl::StrReplaceAll(kTiles, {{from, to}}))});
    return std::string(RecipeFor(variant, kProblem, *DeviceProfile("l4")).status().message());
  };
  EXPECT_THAT(error("\"tiles * KV_SPLITS\"", "\"tiles / 3\""),
              HasSubstr("KV_SPLITS=4: launches 'attend': grid_x is 'tiles / 3', which comes to 5.33333"));
  EXPECT_THAT(error("\"batch * heads_q\"", "\"batch - 2\""), HasSubstr("grid_y is 'batch - 2', which comes to 0"));
  EXPECT_THAT(error("i32: \"seq_q\"", "i32: \"seq_q * 2^30\""),
              HasSubstr("'attend': args[1] is 'seq_q * 2^30', which comes to 5.49756e+11; allowed: integers"));
  EXPECT_THAT(error("sqrt(head_dim)", "mask"), HasSubstr("args[3] is '1 / mask', which comes to inf"));
  EXPECT_THAT(error("KV_SPLITS * rows * 4 : 0", "0 - rows : 0"), HasSubstr("scratch 'partial': bytes is"));
}

TEST(RecipeFor, RefusesAnInfeasibleVariant) {
  const Variant variant = *ParseVariant("tiles:BLOCK_M=16,WARPS=4,KV_SPLITS=1", {Make(kTiles)});
  EXPECT_THAT(std::string(RecipeFor(variant, kProblem, *DeviceProfile("l4")).status().message()),
              HasSubstr("a warp needs 16 rows"));
}

// Worked by hand with the CUDA occupancy calculator's rules: 4 warps, 128 registers: 65536 / (128 * 32) = 16 warps.
TEST(GeometryOf, FollowsCudasOccupancyRules) {
  const v1::Device l4 = *DeviceProfile("l4");
  v1::LaunchRecipe recipe;
  v1::KernelLaunch& main = *recipe.add_launches();
  main.mutable_grid()->set_x(116);
  main.mutable_grid()->set_y(1);
  main.mutable_grid()->set_z(1);
  main.mutable_block()->set_x(128);
  main.mutable_block()->set_y(1);
  main.mutable_block()->set_z(1);
  v1::Resources resources;
  resources.set_registers(128);
  v1::Geometry geometry = GeometryOf(recipe, resources, l4);
  EXPECT_EQ(geometry.ctas_per_sm(), 4);
  EXPECT_DOUBLE_EQ(geometry.occupancy(), 16.0 / 48);
  EXPECT_DOUBLE_EQ(geometry.waves(), 116.0 / (58 * 4));
  resources.set_shared_bytes(48 * 1024);  // and 1 KB the driver keeps: two fit 100 KB
  EXPECT_EQ(GeometryOf(recipe, resources, l4).ctas_per_sm(), 2);
  resources.set_shared_bytes(101377);
  EXPECT_EQ(GeometryOf(recipe, resources, l4).ctas_per_sm(), 0);
  resources.set_shared_bytes(0);
  resources.set_registers(16);
  main.mutable_block()->set_x(32);
  EXPECT_EQ(GeometryOf(recipe, resources, l4).ctas_per_sm(), 24);  // the limit on blocks
}

TEST(Guess, StartsFromTheManifestsValuesAndRaisesParallelism) {
  // 512 / 32 = 16 tiles of 16 heads are 256 CTAs: 58 SMs want 232, so one split is enough; 132 SMs want 528, so four.
  EXPECT_EQ(Guess(Make(kTiles), kProblem, *DeviceProfile("l4"))->ToText(), "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1");
  EXPECT_EQ(Guess(Make(kTiles), kProblem, *DeviceProfile("h200"))->ToText(), "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=4");
}

TEST(Guess, KeepsTheLaunchTimeGuessesWhenTheyAreEnough) {
  // Both grids have 4 CTAs an SM or more; the persistent one has fewer, but the plain one is the guess.
  std::string manifest = absl::StrReplaceAll(
      kTiles, {{"grid_x: \"tiles * KV_SPLITS\"", "grid_x: \"PERSISTENT ? PERSISTENT * sm_count : tiles * KV_SPLITS\""},
               {"grid_y: \"batch * heads_q\"", "grid_y: \"PERSISTENT ? 1 : batch * heads_q\""}});
  absl::StrAppend(&manifest,
                  "parameters { name: \"PERSISTENT\" values: [0, 2, 4] guess: 0 binding: BINDING_LAUNCH_TIME }");
  EXPECT_EQ(Guess(Make(manifest), *ParseProblem("b4.h32.q4096.d64.f16"), *DeviceProfile("l4"))->ToText(),
            "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1,PERSISTENT=0");
}

TEST(Guess, KeepsRulesThatVariantsNeedNot) {
  const std::string rule = "constraints { expr: \"KV_SPLITS == 1\" reason: \"for the test\" guess_only: true }";
  const auto family = Make(absl::StrCat(kTiles, rule));
  EXPECT_EQ(Guess(family, kProblem, *DeviceProfile("h200"))->ToText(), "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=1");
  const auto variants = Enumerate(family, kProblem, *DeviceProfile("h200"))->variants;
  EXPECT_EQ(variants.size(), Enumerate(Make(kTiles), kProblem, *DeviceProfile("h200"))->variants.size());
}

TEST(Guess, MovesToTheNearestFeasibleCompileTimeValues) {
  std::string manifest = kTiles;
  absl::StrAppend(&manifest, "constraints { expr: \"BLOCK_M != 32 && WARPS > 1\" reason: \"for the test\" }");
  // (16, 2) breaks the rows of a warp; (64, 2) is one step away, (64, 4) two.
  EXPECT_EQ(Guess(Make(manifest), kProblem, *DeviceProfile("l4"))->ToText(), "tiles:BLOCK_M=64,WARPS=2,KV_SPLITS=2");
}

// Against the definition, tried on every feasible variant.
TEST(Guess, IsNoFartherThanAnyFeasibleVariant) {
  const auto family = Make(kTiles);
  for (const char* text : {"b1.h1.q64.d64.f16", "b1.h4.q512.d64.f16", "b2.h8.q4096.d128.f16"}) {
    const Problem problem = *ParseProblem(text);
    const v1::Device device = *DeviceProfile("h200");
    const auto rank = [&](const Variant& variant) {
      const v1::LaunchRecipe recipe = *RecipeFor(variant, problem, device);
      const int64_t ctas = GeometryOf(recipe, v1::Resources(), device).ctas();
      const auto index = [&](int p) {
        const auto& values = family->manifest.parameters(p).values();
        return std::find(values.begin(), values.end(), variant.values[p]) - values.begin();
      };
      return std::make_tuple(std::abs(index(0) - 1) + std::abs(index(1) - 1), std::max<int64_t>(0, 4 * 132 - ctas),
                             index(2));
    };
    const Variant guess = *Guess(family, problem, device);
    const Enumeration enumeration = *Enumerate(family, problem, device);
    for (const Variant& variant : enumeration.variants) {
      EXPECT_LE(rank(guess), rank(variant)) << guess.ToText() << " against " << variant.ToText();
    }
  }
}

TEST(Guess, TakesTheMostCtasThereAreWhenNothingIsEnough) {
  EXPECT_EQ(Guess(Make(kTiles), *ParseProblem("b1.h1.q128.d64.f16"), *DeviceProfile("l4"))->ToText(),
            "tiles:BLOCK_M=32,WARPS=2,KV_SPLITS=2");
}

TEST(Guess, FindsNothingWhereNothingIsFeasible) {
  EXPECT_TRUE(
      absl::IsNotFound(Guess(Make(kTiles), *ParseProblem("b1.h1.q8.d64.f16.softcap2"), *DeviceProfile("l4")).status()));
}

}  // namespace
}  // namespace attune::space
