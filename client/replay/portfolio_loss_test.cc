#include "client/replay/portfolio_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::replay {
namespace {

using ::testing::HasSubstr;

// `us[i]`: the time with BLOCK=i; 0: it failed.
v1::Recording RecordingOf(const std::string& problem, const std::vector<double>& us) {
  v1::Recording recording;
  recording.set_problem(problem);
  recording.set_device_class("class");
  v1::Family& family = *recording.add_families();
  family.set_name("tiles");
  family.set_source_hash("source");
  family.add_parameters("BLOCK");
  for (size_t i = 0; i < us.size(); ++i) {
    v1::Row& row = *recording.add_rows();
    row.add_values(static_cast<int64_t>(i));
    row.set_verdict(us[i] > 0 ? attune::v1::VERDICT_OK : attune::v1::VERDICT_WRONG_RESULT);
    row.set_median_us(us[i]);
  }
  return recording;
}

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
