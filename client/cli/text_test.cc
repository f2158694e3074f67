#include "client/cli/text.h"

#include "client/cli/exit_code.h"
#include "client/cli/trial_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

TEST(ClaimText, SaysHowGoodTheBestIsAndNeverMoreThanItIs) {
  v1::SearchClaim claim;
  claim.set_within(0.02);
  claim.set_confidence(0.9599);
  claim.set_tried(58);
  claim.set_of(840);
  EXPECT_EQ(ClaimText(claim), "within 2 % of the best of 840 with 95 % (58 tried)");
}

TEST(AddGeometry, UsesTheWordsOfTheDevice) {
  v1::Geometry geometry;
  geometry.set_ctas(2);
  geometry.set_threads_per_cta(8);
  geometry.set_sm_count(2);
  geometry.set_ctas_per_sm(1);
  Table of_gpu = FieldTable();
  AddGeometry(geometry, "cuda:0", &of_gpu);
  EXPECT_THAT(of_gpu.Render(0, false), HasSubstr("2 CTAs of 8 threads on 2 SMs: 0.00 waves, 1 CTA per SM,"));
  Table of_cpu = FieldTable();
  AddGeometry(geometry, "opencl:0", &of_cpu);
  EXPECT_THAT(of_cpu.Render(0, false), HasSubstr("2 work-groups of 8 work-items on 2 compute units: 0.00 waves, "
                                                 "1 work-group per compute unit,"));
}

TEST(Text, NumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(Micros(41.2), "41.20");
  EXPECT_EQ(Micros(0), "-");
  EXPECT_EQ(Share(0.934), "93%");
  EXPECT_EQ(Bytes(512), "512 B");
  EXPECT_EQ(Bytes(101376), "99 KiB");
  EXPECT_EQ(Bytes(1536 << 10), "1.5 MiB");
  EXPECT_EQ(Speedup(1.309), "1.31x");
  EXPECT_EQ(ClockText(absl::Seconds(67)), "1:07");
  EXPECT_EQ(ClockText(absl::Seconds(3723)), "1:02:03");
}

TEST(Text, DurationsAndCountsReadAsSentencesHaveThem) {
  EXPECT_EQ(DurationText(absl::Milliseconds(200)), "1 s");
  EXPECT_EQ(DurationText(absl::Seconds(59)), "59 s");
  EXPECT_EQ(DurationText(absl::Seconds(71)), "1 min 11 s");
  EXPECT_EQ(DurationText(absl::Minutes(125)), "2 h 5 min");
  EXPECT_EQ(Counted(1, "CTA"), "1 CTA");
  EXPECT_EQ(Counted(0, "CTA"), "0 CTAs");
  EXPECT_EQ(Tflops(12.34), "12.3 TFLOP/s");
  EXPECT_EQ(Tflops(0.0004), "0.4 GFLOP/s");
  EXPECT_EQ(OneLine("does not compile: CRASHED\nthe compiler was killed\n"),
            "does not compile: CRASHED; the compiler was killed");
}

TEST(Text, EnumsHaveTheirWords) {
  EXPECT_EQ(Word(v1::PROVENANCE_NEAREST), "NEAREST");
  EXPECT_EQ(Word(v1::OperationProgress::PHASE_PLAY_OFF), "play-off");
  EXPECT_EQ(Word(v1::OperationProgress::PHASE_UNSPECIFIED), "");
  EXPECT_EQ(Word(v1::SweepReport::OUTCOME_SLOWER), "SLOWER");
}

TEST(ParseDuration, ReadsNumbersWithUnits) {
  EXPECT_EQ(*ParseDuration("--timeout", "30s"), absl::Seconds(30));
  EXPECT_EQ(*ParseDuration("--timeout", "0.5s"), absl::Milliseconds(500));
  EXPECT_EQ(*ParseDuration("--timeout", "1h30m"), absl::Minutes(90));
  EXPECT_EQ(FromProto(ToProto(absl::Milliseconds(2500))), absl::Milliseconds(2500));
}

TEST(ParseDuration, NamesTheOptionTheValueAndWhatIsAllowed) {
  for (const char* bad : {"", "soon", "0", "-3s", "inf"}) {
    const auto status = ParseDuration("--max-time", bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string("--max-time is '") + bad + "'"));
  }
}

TEST(ParseVerdict, ReadsEveryVerdictInAnyCase) {
  EXPECT_EQ(*ParseVerdict("OK"), v1::VERDICT_OK);
  EXPECT_EQ(*ParseVerdict("wrong_result"), v1::VERDICT_WRONG_RESULT);
  EXPECT_EQ(*ParseVerdict("Lost"), v1::VERDICT_LOST);
  EXPECT_THAT(std::string(ParseVerdict("bad").status().message()), HasSubstr("allowed: OK, INFEASIBLE"));
}

TEST(ResourceName, TakesTheNumberOrTheWholeName) {
  EXPECT_EQ(ResourceName("trials", "12"), "trials/12");
  EXPECT_EQ(ResourceName("trials", "trials/12"), "trials/12");
}

TEST(ExitCodeOf, IsWhatTheDocumentSays) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kError);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), ExitCode::kError);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), ExitCode::kError);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), ExitCode::kOperationFailed);
  EXPECT_EQ(static_cast<int>(ExitCode::kRegression), 5);
  EXPECT_EQ(static_cast<int>(ExitCode::kInterrupted), 130);
}

}  // namespace
}  // namespace attune::cli
