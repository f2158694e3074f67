#include "proto/attune/domain.h"

#include <google/protobuf/text_format.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using v1::Domain;

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

v1::LaunchRecipe Recipe() {
  return Parsed<v1::LaunchRecipe>(R"(
    scratch { name: "partial" bytes: 64 }
    launches {
      entry: "f" grid { x: 2 y: 3 z: 1 } block { x: 128 y: 1 z: 1 } dynamic_shared_bytes: 512
      args { buffer { role: BUFFER_ROLE_Q } } args { i32: 16 } args { i64: 1024 } args { f32: 0.5 }
      args { tensor_map { base { role: BUFFER_ROLE_K } dims: [64, 16] strides: [128] base_offset: 32 } }
    })");
}

TEST(Domain, AxesAreThoseAlongWhichTheProblemHasNeighbours) {
  EXPECT_THAT(AxesOf(*ParseProblem("b4.h1.q1.kv9.d64.f16")),
              ElementsAre(Domain::AXIS_KV, Domain::AXIS_Q, Domain::AXIS_BATCH));
  EXPECT_THAT(AxesOf(*ParseProblem("b4.h1.q9.d64.f16")), ElementsAre(Domain::AXIS_Q_AND_KV, Domain::AXIS_BATCH));
}

TEST(Domain, ALengthIsSetAlongItsAxisAlone) {
  const Problem problem = *ParseProblem("b4.h1.q2.kv9.d64.f16");
  EXPECT_EQ(ToText(WithLength(Domain::AXIS_KV, 7, problem)), "b4.h1.q2.kv7.d64.f16");
  EXPECT_EQ(ToText(WithLength(Domain::AXIS_Q, 7, problem)), "b4.h1.q7.kv9.d64.f16");
  EXPECT_EQ(ToText(WithLength(Domain::AXIS_Q_AND_KV, 7, problem)), "b4.h1.q7.d64.f16");
  EXPECT_EQ(ToText(WithLength(Domain::AXIS_BATCH, 7, problem)), "b7.h1.q2.kv9.d64.f16");
  EXPECT_EQ(LengthAlong(Domain::AXIS_KV, problem), 9);
  EXPECT_EQ(LengthAlong(Domain::AXIS_Q, problem), 2);
  EXPECT_EQ(LengthAlong(Domain::AXIS_BATCH, problem), 4);
}

TEST(Domain, ARecipeHasTheLengthsNumbers) {
  const auto domain = Parsed<Domain>(R"(
    axis: AXIS_KV low: 1 high: 100
    varying { field: FIELD_SCRATCH_BYTES step { slope: 4 divide: 1 } }
    varying { field: FIELD_GRID index: 1 step { base: 1 slope: 1 add: 15 divide: 16 } }
    varying { field: FIELD_DYNAMIC_SHARED_BYTES step { base: 500 slope: 1 divide: 1 } }
    varying { field: FIELD_ARG index: 1 step { slope: 1 divide: 1 } }
    varying { field: FIELD_ARG index: 2 step { base: -10 slope: 64 divide: 1 } }
    varying { field: FIELD_TENSOR_MAP_DIM index: 4 part: 1 step { slope: 1 divide: 1 } }
    varying { field: FIELD_TENSOR_MAP_STRIDE index: 4 step { slope: 16 divide: 1 } }
    varying { field: FIELD_TENSOR_MAP_OFFSET index: 4 step { base: 16 divide: 1 } })");
  const auto recipe = RecipeAt(Recipe(), domain, 33);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->SerializeAsString(), Parsed<v1::LaunchRecipe>(R"(
    scratch { name: "partial" bytes: 132 }
    launches {
      entry: "f" grid { x: 2 y: 4 z: 1 } block { x: 128 y: 1 z: 1 } dynamic_shared_bytes: 533
      args { buffer { role: BUFFER_ROLE_Q } } args { i32: 33 } args { i64: 2102 } args { f32: 0.5 }
      args { tensor_map { base { role: BUFFER_ROLE_K } dims: [64, 33] strides: [528] base_offset: 16 } }
    })")
                                             .SerializeAsString());
}

TEST(Domain, OneThatDoesNotFitTheRecipeIsRefused) {
  const auto refusal = [](const std::string& varying) {
    return std::string(
        RecipeAt(Recipe(), Parsed<Domain>("low: 1 high: 100 varying {" + varying + "}"), 50).status().message());
  };
  EXPECT_THAT(refusal("field: FIELD_ARG index: 0 step { divide: 1 }"), HasSubstr("1 of its 1 numbers are not in"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 3 step { divide: 1 }"), HasSubstr("not in the recipe")) << "a float";
  EXPECT_THAT(refusal("field: FIELD_ARG launch: 1 index: 1 step { divide: 1 }"), HasSubstr("not in the recipe"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 1 step { slope: 1 }"), HasSubstr("divide 0"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 1 step { slope: 1 add: -51 divide: 1 }"),
              HasSubstr("from 0 to 2^63 - 1"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 1 step { slope: 4294967296 divide: 1 }"),
              HasSubstr("no 32-bit integer"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 2 step { slope: 576460752303423488 divide: 1 }"),
              HasSubstr("no 64-bit integer"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 2 step { base: 9223372036854775807 slope: 1 divide: 1 }"),
              HasSubstr("no 64-bit integer"));
  EXPECT_THAT(refusal("field: FIELD_ARG index: 2 step { add: 9223372036854775807 divide: 1 }"),
              HasSubstr("from 0 to 2^63 - 1"));
}

TEST(Domain, TheTextHasOneRangeOfEachAxis) {
  google::protobuf::RepeatedPtrField<Domain> domains;
  EXPECT_EQ(RangesText(domains), "");
  *domains.Add() = Parsed<Domain>("axis: AXIS_BATCH low: 4 high: 7");
  *domains.Add() = Parsed<Domain>("axis: AXIS_KV low: 897 high: 1000");
  *domains.Add() = Parsed<Domain>("axis: AXIS_KV low: 1001 high: 1152");
  EXPECT_EQ(RangesText(domains), "kv 897..1152, batch 4..7");
}

}  // namespace
}  // namespace attune
