// What tools say of a trial's code.
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::ElementsAre;

v1::Profile SampleProfile(double us) {
  v1::Profile profile;
  v1::KernelProfile& kernel = *profile.add_kernels();
  kernel.set_entry("attention");
  v1::Counter& counter = *kernel.add_counters();
  counter.set_name("duration_us");
  counter.set_value(us);
  v1::Stall& stall = *kernel.add_stalls();
  stall.set_reason("barrier");
  stall.set_share(0.25);
  profile.set_operation("operations/5");
  return profile;
}

v1::Sanitizing SampleRun(v1::SanitizerTool tool, int64_t errors) {
  v1::Sanitizing sanitizing;
  v1::SanitizerRun& run = *sanitizing.add_runs();
  run.set_tool(tool);
  run.set_errors(errors);
  if (errors > 0) run.add_findings("Invalid __global__ read of size 4 bytes");
  sanitizing.set_operation("operations/6");
  return sanitizing;
}

class ReportContract : public StoreContract {};

TEST_P(ReportContract, AreTheTrialsOwnAcrossReopening) {
  Append(SampleTrial());
  const std::string name = Append(SampleTrial());
  ASSERT_TRUE(store().RecordProfile(name, SampleProfile(10), {}).ok());
  ASSERT_TRUE(store().RecordSanitizing(name, SampleRun(v1::SANITIZER_TOOL_MEMCHECK, 2), {}).ok());
  Reopen();
  const absl::StatusOr<v1::Trial> trial = store().GetTrial(name);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_TRUE(MessageDifferencer::Equals(trial->profile(), SampleProfile(10))) << trial->DebugString();
  EXPECT_TRUE(MessageDifferencer::Equals(trial->sanitizing(), SampleRun(v1::SANITIZER_TOOL_MEMCHECK, 2)));
  EXPECT_GT(trial->timing().median_us(), 0);
  EXPECT_FALSE(store().GetTrial("trials/1")->has_profile());
}

TEST_P(ReportContract, OfProfilesTheLastIsKept) {
  const std::string name = Append(SampleTrial());
  ASSERT_TRUE(store().RecordProfile(name, SampleProfile(10), {}).ok());
  ASSERT_TRUE(store().RecordProfile(name, SampleProfile(20), {}).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(store().GetTrial(name)->profile(), SampleProfile(20)));
}

TEST_P(ReportContract, OfEachSanitizerTheLastRunIsKept) {
  const std::string name = Append(SampleTrial());
  for (const auto& [tool, errors] :
       {std::pair(v1::SANITIZER_TOOL_RACECHECK, 1), std::pair(v1::SANITIZER_TOOL_MEMCHECK, 2),
        std::pair(v1::SANITIZER_TOOL_RACECHECK, 0)}) {
    ASSERT_TRUE(store().RecordSanitizing(name, SampleRun(tool, errors), {}).ok());
  }
  std::vector<std::pair<v1::SanitizerTool, int64_t>> runs;
  const absl::StatusOr<v1::Trial> trial = store().GetTrial(name);
  for (const v1::SanitizerRun& run : trial->sanitizing().runs()) runs.emplace_back(run.tool(), run.errors());
  EXPECT_THAT(runs, ElementsAre(std::pair(v1::SANITIZER_TOOL_MEMCHECK, 2), std::pair(v1::SANITIZER_TOOL_RACECHECK, 0)));
}

TEST_P(ReportContract, AreNotFoundOfNoTrial) {
  EXPECT_EQ(store().RecordProfile("trials/9", SampleProfile(1), {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().RecordSanitizing("x", SampleRun(v1::SANITIZER_TOOL_MEMCHECK, 0), {}).code(),
            absl::StatusCode::kNotFound);
}

// Listings are of what searches need, and a trial that is appended again is another.
TEST_P(ReportContract, AreLeftOutOfListingsAndNeverAppended) {
  const std::string name = Append(SampleTrial());
  ASSERT_TRUE(store().RecordProfile(name, SampleProfile(10), {}).ok());
  const auto page = store().ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "");
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_FALSE(page->items[0].has_profile());
  const std::string again = Append(*store().GetTrial(name));
  EXPECT_FALSE(store().GetTrial(again)->has_profile());
}

TEST_P(ReportContract, AreRefusedUnderALeaseThatNobodyHas) {
  const std::string name = Append(SampleTrial());
  EXPECT_FALSE(store().RecordProfile(name, SampleProfile(1), {{"operations/1", 7}, 1}).ok());
  EXPECT_FALSE(store().GetTrial(name)->has_profile());
}

INSTANTIATE_TEST_SUITE_P(Stores, ReportContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
