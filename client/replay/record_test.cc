#include "client/replay/record.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include "client/replay/recorded_space.h"
#include "server/catalog/testing/fake_host.h"

namespace attune::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

attune::v1::Trial Trial(const std::string& variant, attune::v1::Verdict verdict, double us, int64_t second) {
  attune::v1::Trial trial;
  trial.set_name("trials/" + std::to_string(second));
  trial.set_job("operations/1");
  trial.mutable_variant()->set_family("tiles");
  trial.mutable_variant()->set_text(variant);
  trial.set_verdict(verdict);
  trial.set_policy(attune::v1::POLICY_HOT);
  trial.mutable_timing()->set_median_us(us);
  trial.mutable_timing()->set_samples(7);
  trial.mutable_resources()->set_registers(48);
  trial.set_compile_ms(120);
  trial.mutable_dependencies()->set_source_hash("source one");
  trial.mutable_dependencies()->set_toolchain("fakec 1.0");
  *trial.mutable_finish_time() = google::protobuf::util::TimeUtil::SecondsToTimestamp(second);
  return trial;
}

class RecordTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Recording> Record(const std::vector<attune::v1::Trial>& trials) {
    return MakeRecording(*ParseProblem("b1.h1.q128.d64.f16"), catalog::FakeDevice(), trials,
                         catalog::Families(catalog::SearchFamily()));
  }
};

TEST_F(RecordTest, KeepsOfEachVariantATypicalTrialWithItsFeatures) {
  const auto recording = Record({Trial("tiles:BLOCK=32,SPLITS=2", attune::v1::VERDICT_OK, 40, 30),
                                 Trial("tiles:BLOCK=64,SPLITS=1", attune::v1::VERDICT_TIMEOUT, 0, 28),
                                 Trial("tiles:BLOCK=32,SPLITS=1", attune::v1::VERDICT_OK, 55, 27),
                                 Trial("tiles:BLOCK=32,SPLITS=2", attune::v1::VERDICT_OK, 99, 20),
                                 Trial("tiles:BLOCK=32,SPLITS=2", attune::v1::VERDICT_OK, 38, 19),
                                 Trial("tiles:BLOCK=64,SPLITS=1", attune::v1::VERDICT_OK, 50, 18)});
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->problem(), "b1.h1.q128.d64.f16");
  EXPECT_EQ(recording->toolchain(), "fakec 1.0");
  ASSERT_EQ(recording->families_size(), 1);
  EXPECT_THAT(recording->families(0).parameters(), ElementsAre("BLOCK", "SPLITS"));
  EXPECT_THAT(recording->features(),
              ElementsAre("problem.heads", "problem.group", "problem.seq_q", "problem.seq_kv", "BLOCK", "SPLITS"));
  ASSERT_EQ(recording->rows_size(), 3);
  const v1::Row& row = recording->rows(0);
  EXPECT_THAT(row.values(), ElementsAre(32, 2));
  EXPECT_THAT(row.features(), ElementsAre(1, 1, 128, 128, 32, 2));
  EXPECT_EQ(row.median_us(), 40);
  EXPECT_EQ(row.samples(), 7);
  EXPECT_EQ(row.registers(), 48);
  EXPECT_EQ(row.compile_ms(), 120);
  EXPECT_EQ(row.trial_ms(), 2000);
  EXPECT_TRUE(row.guess());
  EXPECT_EQ(recording->rows(1).verdict(), attune::v1::VERDICT_TIMEOUT);
  EXPECT_EQ(recording->rows(1).median_us(), 0);
  EXPECT_FALSE(recording->rows(2).guess());
  EXPECT_EQ(recording->rows(0).code(), recording->rows(2).code());  // SPLITS is of the launch alone
  EXPECT_NE(recording->rows(0).code(), recording->rows(1).code());
  EXPECT_TRUE(SpaceOf(*recording).ok());
}

TEST_F(RecordTest, LeavesOutOtherSourcesToolchainsAndWhatWasLost) {
  attune::v1::Trial other_source = Trial("tiles:BLOCK=16,SPLITS=1", attune::v1::VERDICT_OK, 1, 9);
  other_source.mutable_dependencies()->set_source_hash("source two");
  attune::v1::Trial other_toolchain = Trial("tiles:BLOCK=16,SPLITS=2", attune::v1::VERDICT_OK, 1, 7);
  other_toolchain.mutable_dependencies()->set_toolchain("fakec 0.9");
  const auto recording = Record({other_source, Trial("tiles:BLOCK=32,SPLITS=2", attune::v1::VERDICT_OK, 40, 8),
                                 other_toolchain, Trial("tiles:BLOCK=64,SPLITS=2", attune::v1::VERDICT_LOST, 0, 6)});
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->rows_size(), 1);
}

TEST_F(RecordTest, OfNothingThereIsNoRecording) {
  const auto recording = Record({});
  EXPECT_TRUE(absl::IsNotFound(recording.status()));
  EXPECT_THAT(std::string(recording.status().message()), HasSubstr("tune it exhaustively first"));
}

}  // namespace
}  // namespace attune::replay
