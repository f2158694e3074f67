#include "client/replay/prior.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::replay {
namespace {

using ::testing::HasSubstr;

v1::Recording PriorRecording(const std::string& problem, const std::vector<double>& us) {
  v1::Recording recording;
  recording.set_problem(problem);
  recording.set_device_model("NVIDIA H100");
  recording.set_device_class("class");
  recording.set_policy(attune::v1::POLICY_HOT);
  v1::Family& family = *recording.add_families();
  family.set_name("tiles");
  family.set_source_hash("source");
  family.add_parameters("BLOCK");
  for (size_t i = 0; i < us.size(); ++i) {
    v1::Row& row = *recording.add_rows();
    row.add_values(static_cast<int64_t>(16 * (i + 1)));
    row.set_verdict(us[i] > 0 ? attune::v1::VERDICT_OK : attune::v1::VERDICT_WRONG_RESULT);
    row.set_median_us(us[i]);
  }
  return recording;
}

TEST(LearnPrior, HasTheFastestVariantOfEachProblem) {
  const auto table = LearnPrior(
      {PriorRecording("b2.h1.q64.d64.f16", {0, 20.5, 30}), PriorRecording("b1.h1.q64.d64.f16", {10, 11, 12})}, "tiles",
      90);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(ToText(*table),
            "# Fastest variants of recorded problems. Written by attune-replay prior.\ndevice NVIDIA H100\n"
            "compute_capability 90\npolicy hot\nfamily tiles source\n"
            "b1.h1.q64.d64.f16 10 tiles:BLOCK=16\nb2.h1.q64.d64.f16 20.5 tiles:BLOCK=32\n");
}

TEST(LearnPrior, RefusesWhatDoesNotBelongTogether) {
  const v1::Recording one = PriorRecording("b1.h1.q64.d64.f16", {10});
  v1::Recording other = PriorRecording("b2.h1.q64.d64.f16", {10});
  other.set_device_class("another");
  EXPECT_THAT(LearnPrior({one, other}, "tiles", 90).status().message(), HasSubstr("another class of device"));
  other = PriorRecording("b2.h1.q64.d64.f16", {10});
  other.mutable_families(0)->set_source_hash("another");
  EXPECT_THAT(LearnPrior({one, other}, "tiles", 90).status().message(), HasSubstr("other sources of tiles"));
  EXPECT_THAT(LearnPrior({one}, "waves", 90).status().message(), HasSubstr("no recording has a time"));
}

}  // namespace
}  // namespace attune::replay
