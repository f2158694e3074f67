#include "server/verify/sequence_inputs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/half.h"
#include "server/verify/row_map.h"

namespace attune::verify {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(LengthsFor, NormalIsWhatAProblemIsTunedOn) {
  const Problem problem = *ParseProblem("b4.h1.q8.kv12.d8.f16.varlen");
  EXPECT_THAT(LengthsFor(problem, Distribution::kNormal).q, ElementsAre(8, 6, 4, 2));
  EXPECT_THAT(LengthsFor(problem, Distribution::kNormal).kv, ElementsAre(12, 9, 6, 3));
}

TEST(LengthsFor, EveryDistributionHasTheSameTotalsWithinTheLongest) {
  for (const char* text : {"b1.h1.q7.d8.f16.varlen", "b2.h1.q30.kv50.d8.f16.varlen", "b3.h1.q1.kv9.d8.f16.varlen.page4",
                           "b7.h1.q100.kv3.d8.f16.varlen", "b5.h1.q4.kv33.d8.f16.page16"}) {
    const Problem problem = *ParseProblem(text);
    const Lengths tuned = SequenceLengths(problem);
    for (Distribution distribution : Distributions()) {
      const Lengths lengths = LengthsFor(problem, distribution);
      EXPECT_EQ(lengths.total_q(), tuned.total_q()) << text;
      if (distribution == Distribution::kCounting && problem.page_size > 0) {
        EXPECT_LE(lengths.total_kv(), tuned.total_kv()) << text;
      } else {
        EXPECT_EQ(lengths.total_kv(), tuned.total_kv()) << text;
      }
      EXPECT_LE(*std::max_element(lengths.q.begin(), lengths.q.end()), problem.seq_q);
      EXPECT_LE(*std::max_element(lengths.kv.begin(), lengths.kv.end()), problem.seq_kv);
    }
  }
}

TEST(LengthsFor, SomeSequenceHasMoreQueriesThanKeysSomeNoneOfEither) {
  const Problem problem = *ParseProblem("b4.h1.q80.d8.f16.varlen");
  EXPECT_THAT(LengthsFor(problem, Distribution::kOffsetMean).kv, ElementsAre(13, 47, 71, 69));
  EXPECT_THAT(LengthsFor(problem, Distribution::kLargeLogits).kv, ElementsAre(73, 67, 60, 0));
  EXPECT_THAT(LengthsFor(problem, Distribution::kDominantKey).q, ElementsAre(0, 60, 71, 69));
}

TEST(LengthsFor, SomeSequencesHaveOneTokenOrOneMoreThanTilesOrPages) {
  const Problem varlen = *ParseProblem("b8.h1.q2048.d8.f16.varlen");
  EXPECT_THAT(LengthsFor(varlen, Distribution::kCounting).q, ::testing::Contains(1));
  EXPECT_THAT(LengthsFor(varlen, Distribution::kCounting).kv, ::testing::Contains(1));
  const Problem paged = *ParseProblem("b8.h1.q1.kv2048.d8.f16.page16");
  EXPECT_THAT(LengthsFor(paged, Distribution::kCounting).kv, ElementsAre(2041, 1781, 1521, 1276, 1016, 0, 497, 1));
}

// Of powers of two, whose parts are multiples of every tile.
TEST(LengthsFor, MostLengthsAreMultiplesOfNothing) {
  for (const char* text : {"b8.h1.q4096.d8.f16.varlen", "b32.h1.q1.kv8192.d8.f16.page16", "b8.h1.q2048.d8.f16.varlen",
                           "b2.h1.q1.kv4096.d8.f16.varlen", "b1.h1.q1.kv4096.d8.f16.page16"}) {
    const Problem problem = *ParseProblem(text);
    for (const Distribution distribution :
         {Distribution::kOffsetMean, Distribution::kLargeLogits, Distribution::kCounting}) {
      if (problem.batch == 1 && distribution != Distribution::kCounting) continue;  // its only length is the longest
      int64_t ragged = 0;
      for (const int64_t length : LengthsFor(problem, distribution).kv) ragged += length % 16 != 0 ? 1 : 0;
      EXPECT_GE(ragged, (problem.batch + 1) / 2) << text << ", " << Name(distribution);
    }
  }
}

TEST(LengthsFor, WhatTheProblemFixesStays) {
  for (Distribution distribution : Distributions()) {
    EXPECT_THAT(LengthsFor(*ParseProblem("b4.h1.q8.d8.f16.page2"), distribution).q, Each(8));
    EXPECT_THAT(LengthsFor(*ParseProblem("b4.h1.q8.d8.f16"), distribution).kv, Each(8));
  }
}

TEST(ShufflePages, GivesEveryPageToOneSequenceAndOneToNobody) {
  const Problem problem = *ParseProblem("b3.h1.q1.kv40.d8.f16.page8");
  const Paging paging = ShufflePages(problem, {40, 17, 0}, 1);
  EXPECT_EQ(paging.pages, 5 + 3 + 1);
  ASSERT_EQ(paging.table.size(), 3 * 5);
  const std::set<int32_t> used(paging.table.begin(), paging.table.end());
  EXPECT_EQ(used.size(), 8 + 1);  // and -1
  EXPECT_EQ(*used.begin(), -1);
  EXPECT_LT(*used.rbegin(), paging.pages);
  EXPECT_THAT(std::vector<int32_t>(paging.table.begin() + 8, paging.table.end()), Each(-1));
  EXPECT_FALSE(std::is_sorted(paging.table.begin(), paging.table.begin() + 8));
}

TEST(SequenceInputs, AreOnlyThereWhenTheProblemHasThem) {
  const Tensors plain = MakeInputs(*ParseProblem("b2.h4.q3.d8.f16"), Distribution::kNormal, 1);
  EXPECT_TRUE(plain.sinks.empty() && plain.q_bounds.empty() && plain.kv_bounds.empty());
  EXPECT_TRUE(plain.kv_lengths.empty() && plain.page_table.empty());
  const Tensors varlen = MakeInputs(*ParseProblem("b2.h4.q4.kv6.d8.f16.varlen"), Distribution::kNormal, 1);
  EXPECT_THAT(varlen.q_bounds, ElementsAre(0, 4, 6));
  EXPECT_THAT(varlen.kv_bounds, ElementsAre(0, 6, 9));
  EXPECT_EQ(varlen.q.size(), 6 * 4 * 8);
  EXPECT_EQ(varlen.k.size(), 9 * 4 * 8);
  const Tensors both = MakeInputs(*ParseProblem("b2.h4.q4.kv6.d8.f16.varlen.page2"), Distribution::kNormal, 1);
  EXPECT_TRUE(both.kv_bounds.empty());
  EXPECT_THAT(both.kv_lengths, ElementsAre(6, 3));
  EXPECT_EQ(both.page_table.size(), 2 * 3);
}

TEST(SequenceInputs, WhatNobodyMayReadIsNaN) {
  const Problem problem = *ParseProblem("b2.h2.kvh1.q1.kv6.d8.f16.page4");
  const Tensors inputs = MakeInputs(problem, Distribution::kNormal, 1);
  const auto nan_rows = [](const std::vector<uint16_t>& cache) {
    int64_t rows = 0;
    for (size_t i = 0; i < cache.size(); i += 8) rows += std::isnan(F16ToFloat(cache[i])) ? 1 : 0;
    return rows;
  };
  // Lengths 6 and 3 leave 2 rows of 8 and 1 of 4; and a page of 4.
  EXPECT_EQ(inputs.k.size(), 16 * 8);
  EXPECT_EQ(nan_rows(inputs.k), 2 + 1 + 4);
  EXPECT_EQ(nan_rows(inputs.v), 2 + 1 + 4);
}

TEST(SequenceInputs, SinksAreNormalAndFarOutWithLargeLogits) {
  const Problem problem = *ParseProblem("b1.h1024.q1.d8.f16.sinks");
  const std::vector<float> sinks = MakeInputs(problem, Distribution::kNormal, 1).sinks;
  ASSERT_EQ(sinks.size(), 1024);
  double squares = 0;
  for (float sink : sinks) squares += sink * sink;
  EXPECT_NEAR(std::sqrt(squares / 1024), 1, 0.1);
  const std::vector<float> far = MakeInputs(problem, Distribution::kLargeLogits, 1).sinks;
  EXPECT_EQ(far.front(), 100);
  EXPECT_EQ(far.back(), -100);
}

TEST(RowMap, NumbersEveryQueryRowOnceAndSkipsEmptySequences) {
  const Problem problem = *ParseProblem("b3.h2.q4.d8.f16.varlen");
  const RowMap map(problem, {{0, 3, 1}, {1, 1, 1}}, {});
  std::set<int64_t> places, lse;
  for (int64_t number = 0; number < 4 * 2; ++number) {
    EXPECT_NE(map.At(number).sequence, 0);
    places.insert(map.Query(map.At(number)));
    lse.insert(map.Lse(map.At(number)));
  }
  EXPECT_EQ(places.size(), 8);
  EXPECT_EQ(*places.rbegin(), 7 * 8);
  EXPECT_EQ(lse.size(), 8);
  EXPECT_EQ(*lse.rbegin(), 7);
}

}  // namespace
}  // namespace attune::verify
