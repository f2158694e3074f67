#include "client/replay/prior.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/replay/testing/recording_of.h"

namespace attune::replay {
namespace {

using ::testing::HasSubstr;

attune::v1::Device Card() {
  attune::v1::Device device;
  device.set_model("a card");
  device.set_compute_capability(90);
  return device;
}

TEST(LearnPrior, HasTheTimesOfEachProblemFastestFirst) {
  const auto table =
      LearnPrior({RecordingOf("b2.h1.q64.d64.f16", {0, 20.5, 30}), RecordingOf("b1.h1.q64.d64.f16", {10, 12, 11})},
                 "tiles", Card());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(ToText(*table),
            "# Times of recorded problems' variants. Written by attune-replay prior.\ndevice a card\n"
            "compute_capability 90\npolicy hot\nfamily tiles source\nparameters BLOCK\n"
            "problem b1.h1.q64.d64.f16 11\n10 0\n11 2\n12 1\n"
            "problem b2.h1.q64.d64.f16 30\n20.5 1\n30 2\n");
}

TEST(LearnPrior, OfAProblemThatWasRecordedTwiceHasTheFirst) {
  const auto table = LearnPrior({RecordingOf("b2.h1.q64.d64.f16", {7}), RecordingOf("b1.h1.q64.d64.f16", {10, 11}),
                                 RecordingOf("b1.h1.q64.d64.f16", {9, 8})},
                                "tiles", Card());
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->tuned.size(), 2);
  EXPECT_EQ(table->tuned[0].rows[0].us, 10);
  EXPECT_EQ(table->tuned[1].rows[0].us, 7);
}

TEST(LearnPrior, OfManyVariantsHasThoseThatOthersLearn) {
  std::vector<double> us;
  for (int i = 0; i < 660; ++i) us.push_back(100 + i);
  const auto table = LearnPrior({RecordingOf("b1.h1.q64.d64.f16", us)}, "tiles", Card());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->tuned[0].level_us, 133);
  ASSERT_EQ(table->tuned[0].rows.size(), 120);
  EXPECT_EQ(table->tuned[0].rows[59].us, 159);
  EXPECT_EQ(table->tuned[0].rows.back().us, 750);
  EXPECT_EQ(table->tuned[0].rows.back().values[0], 650);
}

TEST(LearnPrior, RefusesWhatDoesNotBelongTogether) {
  const v1::Recording one = RecordingOf("b1.h1.q64.d64.f16", {10});
  v1::Recording other = RecordingOf("b2.h1.q64.d64.f16", {10});
  other.set_device_class("another");
  EXPECT_THAT(LearnPrior({one, other}, "tiles", Card()).status().message(), HasSubstr("another class of device"));
  other = RecordingOf("b2.h1.q64.d64.f16", {10});
  other.mutable_families(0)->set_source_hash("another");
  EXPECT_THAT(LearnPrior({one, other}, "tiles", Card()).status().message(), HasSubstr("other sources of tiles"));
  other = RecordingOf("b2.h1.q64.d64.f16", {10});
  other.set_policy(attune::v1::POLICY_COLD);
  EXPECT_THAT(LearnPrior({one, other}, "tiles", Card()).status().message(), HasSubstr("another policy"));
  EXPECT_THAT(LearnPrior({one}, "waves", Card()).status().message(), HasSubstr("no recording has a time"));
}

// Its rows would be held for another card's.
TEST(LearnPrior, RefusesRecordingsOfAnotherModel) {
  attune::v1::Device device = Card();
  device.set_model("another card");
  EXPECT_EQ(LearnPrior({RecordingOf("b1.h1.q64.d64.f16", {10})}, "tiles", device).status().message(),
            "b1.h1.q64.d64.f16 was recorded on a card; the table is for another card");
}

}  // namespace
}  // namespace attune::replay
