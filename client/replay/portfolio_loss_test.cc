#include "client/replay/portfolio_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/replay/testing/recording_of.h"

namespace attune::replay {
namespace {

using ::testing::HasSubstr;

TEST(TryPortfolio, SaysWhatAFewVariantsLose) {
  const auto text = TryPortfolio(
      {RecordingOf("b1.h1.q1.kv512.d64.f16", {10, 11, 20}), RecordingOf("b1.h1.q1.kv1024.d64.f16", {24, 22, 20}),
       RecordingOf("b1.h1.q1.kv8192.d64.f16", {0, 88, 80})},
      2);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "| variants | mean loss | worst | the last of them |\n|---|---|---|---|\n"
            "| 1 | 33.3 % | 100.0 % | tiles:BLOCK=2 |\n"
            "| 2 | 0.0 % | 0.0 % | tiles:BLOCK=0 |\n"
            "\n| problem | loss | chosen for the others |\n|---|---|---|\n"
            "| b1.h1.q1.kv512.d64.f16 | 0.0 % | 100.0 % |\n"
            "| b1.h1.q1.kv1024.d64.f16 | 0.0 % | 20.0 % |\n"
            "| b1.h1.q1.kv8192.d64.f16 | 0.0 % | 0.0 % |\n"
            "\nChosen for the others, 3 of 3: mean 40.0 %, worst 100.0 %\n");
}

// BLOCK=6 is the best compromise, but seventh on either.
TEST(TryPortfolio, ChoosesAmongTheFastestOfEach) {
  const auto text =
      TryPortfolio({RecordingOf("b1.h1.q1.kv512.d64.f16", {10, 11, 12, 13, 14, 15, 16, 90, 91, 92, 93, 94, 95}),
                    RecordingOf("b1.h1.q1.kv1024.d64.f16", {90, 91, 92, 93, 94, 95, 16, 10, 11, 12, 13, 14, 15})},
                   1);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("| 1 | 400.0 % | 800.0 % | tiles:BLOCK=0 |\n"));
}

// BLOCK=2 is SLOW where it is fastest, BLOCK=0 where BLOCK=1 is faster.
TEST(TryPortfolio, WhatIsSlowIsNoCandidateButWeighed) {
  v1::Recording slow = RecordingOf("b1.h1.q1.kv1024.d64.f16", {30, 15, 15});
  slow.mutable_rows(0)->set_verdict(attune::v1::VERDICT_SLOW);
  slow.mutable_rows(2)->set_verdict(attune::v1::VERDICT_SLOW);
  const auto text = TryPortfolio({RecordingOf("b1.h1.q1.kv512.d64.f16", {10, 20, 0}), slow}, 1);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("| 1 | 50.0 % | 100.0 % | tiles:BLOCK=0 |\n"));
  slow.mutable_rows(2)->set_median_us(12);
  EXPECT_THAT(*TryPortfolio({RecordingOf("b1.h1.q1.kv512.d64.f16", {10, 20, 0}), slow}, 2),
              HasSubstr("| b1.h1.q1.kv1024.d64.f16 | 25.0 % |"));
}

TEST(TryPortfolio, RefusesWhatCannotBeCompared) {
  const v1::Recording one = RecordingOf("b1.h1.q1.kv512.d64.f16", {1});
  EXPECT_THAT(TryPortfolio({one}, 4).status().message(), HasSubstr("two recordings or more"));
  v1::Recording other = RecordingOf("b1.h1.q1.kv1024.d64.f16", {1});
  other.set_device_class("another");
  EXPECT_THAT(TryPortfolio({one, other}, 4).status().message(), HasSubstr("another class of device"));
  other = RecordingOf("b1.h1.q1.kv1024.d64.f16", {1});
  other.mutable_families(0)->set_source_hash("another");
  EXPECT_THAT(TryPortfolio({one, other}, 4).status().message(), HasSubstr("other sources of tiles"));
}

}  // namespace
}  // namespace attune::replay
