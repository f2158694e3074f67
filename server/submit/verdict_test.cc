#include "server/submit/verdict.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/catalog/testing/fake_host.h"

namespace attune::submit {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kKept = v1::SubmitResult::DECISION_KEEP;
constexpr auto kReverted = v1::SubmitResult::DECISION_REVERT;

v1::Trial TrialOf(double median_us, double half_width = 0.1) {
  v1::Trial trial;
  trial.set_verdict(v1::VERDICT_OK);
  trial.mutable_timing()->set_median_us(median_us);
  trial.mutable_timing()->set_low_us(median_us - half_width);
  trial.mutable_timing()->set_high_us(median_us + half_width);
  trial.mutable_timing()->set_settled(true);
  return trial;
}

measure::Gain GainOf(double trial_us, double base_us) {
  const double middle = base_us / trial_us - 1;
  measure::Gain gain{.low = middle - 0.002, .middle = middle, .high = middle + 0.002};
  if (gain.low > 0.005) gain.answer = measure::Answer::kFaster;
  return gain;
}

v1::SubmitResult::Row RowOf(const v1::Trial& trial, double base_us, const std::string& problem = "p") {
  v1::SubmitResult::Row row;
  row.set_problem(problem);
  *row.mutable_trial() = trial;
  std::optional<measure::Gain> gain;
  if (base_us > 0) {
    *row.mutable_base_trial() = TrialOf(base_us);
    if (trial.has_timing()) gain = GainOf(trial.timing().median_us(), base_us);
  }
  Decide(catalog::FakeDevice(), gain, row);
  return row;
}

TEST(Verdict, KeepsWhatIsFaster) {
  const auto row = RowOf(TrialOf(10), 20);
  EXPECT_EQ(row.decision(), kKept);
  EXPECT_DOUBLE_EQ(row.speedup(), 2);
  EXPECT_EQ(row.reason(), "10.00 us [9.90, 10.10] against the base's 20.00 us [19.90, 20.10], 2.000 times as fast");
}

TEST(Verdict, RevertsWhatIsSlowerAndWhatGainsNothing) {
  EXPECT_EQ(RowOf(TrialOf(21), 20).decision(), kReverted);
  EXPECT_THAT(RowOf(TrialOf(21), 20).reason(), StartsWith("5.0 % slower than the base"));
  EXPECT_EQ(RowOf(TrialOf(19.9), 20).decision(), kReverted);
  EXPECT_THAT(RowOf(TrialOf(19.9), 20).reason(), StartsWith("no gain: "));
  EXPECT_EQ(RowOf(TrialOf(20.2), 20).decision(), kReverted);
}

TEST(Verdict, GoesByTheRoundsThatBothShareAndNotByIntervalsOfTheirOwn) {
  v1::SubmitResult::Row row;
  *row.mutable_trial() = TrialOf(19.5, 2);
  *row.mutable_base_trial() = TrialOf(20, 2);
  Decide(catalog::FakeDevice(), measure::Gain{0.02, 0.025, 0.03, measure::Answer::kFaster}, row);
  EXPECT_EQ(row.decision(), kKept) << row.reason();
  EXPECT_DOUBLE_EQ(row.speedup(), 1.025);
  *row.mutable_trial() = TrialOf(19.5);
  *row.mutable_base_trial() = TrialOf(20);
  Decide(catalog::FakeDevice(), measure::Gain{-0.01, 0.01, 0.03, measure::Answer::kUnclear}, row);
  EXPECT_EQ(row.decision(), kReverted);
  EXPECT_THAT(row.reason(), HasSubstr("it gains -1.0 % to 3.0 %, and more than 0.5 % for certain is asked"));
}

TEST(Verdict, RevertsWhatIsWrongInItsCheckersWords) {
  v1::Trial wrong;
  wrong.set_verdict(v1::VERDICT_WRONG_RESULT);
  wrong.set_detail("O[3] is 1, must be 2");
  const auto row = RowOf(wrong, 20);
  EXPECT_EQ(row.decision(), kReverted);
  EXPECT_EQ(row.speedup(), 0);
  EXPECT_EQ(row.reason(), "WRONG_RESULT: O[3] is 1, must be 2");
}

TEST(Verdict, KeepsTheFirstThatIsRight) {
  EXPECT_EQ(RowOf(TrialOf(10), 0).decision(), kKept);
  EXPECT_THAT(RowOf(TrialOf(10), 0).reason(), HasSubstr("no base"));
}

TEST(Verdict, DecidesNothingOnADeviceThatIsShared) {
  v1::Trial contended = TrialOf(10);
  contended.mutable_timing()->set_contended(true);
  EXPECT_EQ(RowOf(contended, 20).decision(), kReverted);
  EXPECT_THAT(RowOf(contended, 20).reason(), HasSubstr("another process"));
}

v1::SubmitResult ResultOf(const std::vector<v1::SubmitResult::Row>& rows) {
  v1::SubmitResult result;
  for (const auto& row : rows) *result.add_rows() = row;
  DecideAll(result);
  return result;
}

TEST(Verdict, OfSeveralProblemsKeepsWhatIsFasterForOneAndWorseForNone) {
  const auto faster = RowOf(TrialOf(10), 20, "a");
  const auto tied = RowOf(TrialOf(20), 20, "b");
  const auto slower = RowOf(TrialOf(30), 20, "c");
  v1::Trial crash;
  crash.set_verdict(v1::VERDICT_CRASHED);
  EXPECT_EQ(ResultOf({faster}).reason(), faster.reason());
  EXPECT_EQ(ResultOf({tied, faster}).decision(), kKept);
  EXPECT_THAT(ResultOf({tied, faster}).reason(), StartsWith("1 of 2 problems are faster; a: 10.00 us"));
  EXPECT_EQ(ResultOf({tied, tied}).decision(), kReverted);
  EXPECT_EQ(ResultOf({faster, slower}).decision(), kReverted);
  EXPECT_THAT(ResultOf({faster, slower}).reason(), StartsWith("c: 50.0 % slower"));
  EXPECT_EQ(ResultOf({faster, RowOf(crash, 20, "d")}).reason(), "d: CRASHED");
}

}  // namespace
}  // namespace attune::submit
