#include "client/replay/advice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/base/device_profile.h"
#include "server/space/family.h"
#include "server/space/space.h"

namespace attune::replay {
namespace {

using ::testing::HasSubstr;

constexpr char kSources[] = ATTUNE_SOURCE_DIR "/kernels_src";

// Two splits of one variant of attention_mma: a single CTA a head leaves the chip idle.
class AdviceTest : public ::testing::Test {
 protected:
  AdviceTest() : families_(*space::LoadFamilies(kSources)), device_(*DeviceProfile("h100")) {
    for (const auto& family : families_) {
      if (family->name() == "attention_mma") family_ = family;
    }
    recording_.set_problem("b1.h1.q64.kv4096.d64.f16");
    v1::Family& recorded = *recording_.add_families();
    recorded.set_name(family_->name());
    recorded.set_source_hash(family_->source_hash);
    guess_ = *space::Guess(family_, *ParseProblem(recording_.problem()), device_);
  }

  // A row of the guess with other values of its parameters.
  void Add(const std::map<std::string, int64_t>& values, double us) {
    v1::Row& row = *recording_.add_rows();
    row.set_verdict(attune::v1::VERDICT_OK);
    row.set_median_us(us);
    const auto& parameters = family_->manifest.parameters();
    for (int i = 0; i < parameters.size(); ++i) {
      const auto found = values.find(parameters[i].name());
      row.add_values(found != values.end() ? found->second : guess_.values[static_cast<size_t>(i)]);
    }
  }

  std::vector<std::shared_ptr<const space::Family>> families_;
  std::shared_ptr<const space::Family> family_;
  attune::v1::Device device_;
  v1::Recording recording_;
  space::Variant guess_;
};

TEST_F(AdviceTest, CountsWhetherTheRecordedNeighbourIsFaster) {
  for (int64_t splits : {1, 2, 4, 8, 16, 32, 64}) Add({{"KV_SPLITS", splits}}, 100.0 / static_cast<double>(splits));
  const absl::StatusOr<AdviceTally> tally = TryAdvice({recording_}, families_, device_, 100, 1);
  ASSERT_TRUE(tally.ok()) << tally.status();
  EXPECT_EQ(tally->trials, 7);
  EXPECT_GT(tally->faster, 0);
  EXPECT_EQ(tally->slower, 0);
  EXPECT_EQ(tally->by_change.begin()->first, "raise KV_SPLITS");
  EXPECT_THAT(Markdown(*tally), HasSubstr("(100 %)"));
}

TEST_F(AdviceTest, AndWhetherItIsNot) {
  for (int64_t splits : {1, 2, 4, 8, 16, 32, 64}) Add({{"KV_SPLITS", splits}}, 100.0 + static_cast<double>(splits));
  const absl::StatusOr<AdviceTally> tally = TryAdvice({recording_}, families_, device_, 100, 1);
  ASSERT_TRUE(tally.ok()) << tally.status();
  EXPECT_EQ(tally->faster, 0);
  EXPECT_GT(tally->slower, 0);
}

TEST_F(AdviceTest, RefusesRecordingsOfOtherSources) {
  recording_.mutable_families(0)->set_source_hash("another");
  EXPECT_EQ(TryAdvice({recording_}, families_, device_, 1, 1).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace attune::replay
