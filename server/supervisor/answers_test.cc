#include "server/supervisor/answers.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::supervisor {
namespace {

using ::testing::HasSubstr;

class AnswersTest : public ::testing::Test {
 protected:
  AnswersTest() {
    trial().set_verdict(v1::VERDICT_OK);
    trial().mutable_timing()->set_low_us(9);
    trial().mutable_timing()->set_median_us(10);
    trial().mutable_timing()->set_high_us(11);
    request_.mutable_trial();
  }
  worker::v1::TrialResponse& trial() { return *response_.mutable_trial(); }
  std::string Mistake() { return std::string(CheckAnswer(request_, response_).message()); }

  worker::v1::Request request_;
  worker::v1::Response response_;
};

TEST_F(AnswersTest, ATrialWithATimeIsFine) { EXPECT_EQ(Mistake(), ""); }

TEST_F(AnswersTest, AVerdictThatOnlyTheDaemonGivesIsNone) {
  for (const int verdict : {0, -1, 50, static_cast<int>(v1::VERDICT_LOST), static_cast<int>(v1::VERDICT_CRASHED)}) {
    trial().set_verdict(static_cast<v1::Verdict>(verdict));
    EXPECT_THAT(Mistake(), HasSubstr("an answer that no worker gives: verdict"));
  }
}

TEST_F(AnswersTest, TimesAreFiniteAndInOrder) {
  for (const double us :
       {-1.0, 0.5, 12.0, 1e308, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    trial().mutable_timing()->set_median_us(us);
    EXPECT_THAT(Mistake(), HasSubstr("a time of")) << us;
  }
  trial().mutable_timing()->set_median_us(10);
  trial().mutable_timing()->set_high_us(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Mistake(), HasSubstr("a time of"));
}

TEST_F(AnswersTest, QuantilesAre33InOrder) {
  v1::Timing& timing = *trial().mutable_timing();
  timing.add_quantiles_us(9);
  EXPECT_THAT(Mistake(), HasSubstr("1 quantiles; allowed: none or 33"));
  timing.mutable_quantiles_us()->Resize(33, 9.5);
  EXPECT_EQ(Mistake(), "");
  for (const float us : {9.0F, -1.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()}) {
    timing.set_quantiles_us(20, us);
    EXPECT_THAT(Mistake(), HasSubstr("a quantile of")) << us;
  }
}

TEST_F(AnswersTest, WhatIsWrongHasNoTime) {
  trial().set_verdict(v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(Mistake(), HasSubstr("verdict 4"));
  trial().clear_timing();
  EXPECT_EQ(Mistake(), "");
}

TEST_F(AnswersTest, TheKindIsTheRequests) {
  response_.mutable_release();
  EXPECT_THAT(Mistake(), HasSubstr("of kind 8 to a request of kind 4"));
  response_.clear_kind();
  EXPECT_THAT(Mistake(), HasSubstr("of kind 0 to a request of kind 4"));
  response_.set_error_code(5);
  EXPECT_EQ(Mistake(), "");
}

TEST_F(AnswersTest, EveryResultOfAPlayOffIsLookedAt) {
  worker::v1::TrialResponse good = trial();
  good.add_rounds_us(10);
  request_.mutable_play_off()->add_candidates();
  *response_.mutable_play_off()->add_results() = good;
  EXPECT_EQ(Mistake(), "");
  response_.mutable_play_off()->add_results();
  EXPECT_THAT(Mistake(), HasSubstr("2 results of 1 candidates"));
  request_.mutable_play_off()->add_candidates();
  EXPECT_THAT(Mistake(), HasSubstr("verdict 0"));
}

TEST_F(AnswersTest, AnEnergyIsWhatAPlayOffAskedForAndNothingElse) {
  trial().mutable_timing()->mutable_energy();
  EXPECT_THAT(Mistake(), HasSubstr("an energy in a timing"));
  trial().mutable_timing()->clear_energy();
  worker::v1::TrialResponse result = trial();
  result.clear_timing();
  v1::Energy& energy = *result.mutable_energy();
  energy.set_joules(2);
  energy.set_low_joules(1);
  energy.set_high_joules(3);
  energy.set_runs(1);
  energy.set_spans(1);
  request_.mutable_play_off()->add_candidates();
  *response_.mutable_play_off()->add_results() = result;
  EXPECT_THAT(Mistake(), HasSubstr("an energy that nobody asked for"));
  request_.mutable_play_off()->set_energy(true);
  EXPECT_EQ(Mistake(), "");
  v1::Energy& given = *response_.mutable_play_off()->mutable_results(0)->mutable_energy();
  for (const double joules : {0.5, 4.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    given.set_joules(joules);
    EXPECT_THAT(Mistake(), HasSubstr("an energy of ")) << joules;
  }
}

TEST_F(AnswersTest, ContestantsOfAPlayOffHaveTheSameRounds) {
  const worker::v1::TrialResponse good = trial();
  for (int i = 0; i < 2; ++i) {
    request_.mutable_play_off()->add_candidates();
    worker::v1::TrialResponse& result = *response_.mutable_play_off()->add_results();
    result = good;
    result.add_rounds_us(10);
  }
  EXPECT_EQ(Mistake(), "");
  worker::v1::TrialResponse& last = *response_.mutable_play_off()->mutable_results(1);
  last.add_rounds_us(11);
  EXPECT_THAT(Mistake(), HasSubstr("2 rounds of one contestant, 1 of another"));
  last.clear_rounds_us();
  EXPECT_THAT(Mistake(), HasSubstr("0 rounds of one contestant"));
  for (const double us : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    last.clear_rounds_us();
    last.add_rounds_us(us);
    EXPECT_THAT(Mistake(), HasSubstr("a round's us")) << us;
  }
}

TEST_F(AnswersTest, ACompileIsGoodOrNot) {
  request_.mutable_compile();
  response_.mutable_compile()->set_verdict(v1::VERDICT_COMPILE_ERROR);
  EXPECT_EQ(Mistake(), "");
  response_.mutable_compile()->set_verdict(v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(Mistake(), HasSubstr("verdict"));
  response_.mutable_compile()->set_verdict(v1::VERDICT_OK);
  EXPECT_THAT(Mistake(), HasSubstr("code of no bytes"));
  response_.mutable_compile()->set_artifact("code");
  EXPECT_EQ(Mistake(), "");
  response_.mutable_compile()->add_entries()->set_registers(-1);
  EXPECT_THAT(Mistake(), HasSubstr("registers of -1; allowed: 0 to"));
  response_.mutable_compile()->clear_entries();
  response_.mutable_compile()->set_compile_ms(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Mistake(), HasSubstr("a compile's ms of nan"));
}

TEST_F(AnswersTest, NoTimeIsNegativeOrLongerThanACall) {
  trial().mutable_timing()->set_min_us(-1);
  EXPECT_THAT(Mistake(), HasSubstr("at least -1"));
  trial().mutable_timing()->set_min_us(10.5);  // above the median
  EXPECT_THAT(Mistake(), HasSubstr("at least 10.5"));
  trial().mutable_timing()->set_min_us(8);
  trial().mutable_timing()->set_high_us(1e12);
  EXPECT_THAT(Mistake(), HasSubstr("to 1e+12"));
  trial().mutable_timing()->set_high_us(11);
  EXPECT_EQ(Mistake(), "");
  for (const double ms : {-1.0, 1e12, std::numeric_limits<double>::infinity()}) {
    trial().set_check_ms(ms);
    EXPECT_THAT(Mistake(), HasSubstr("a check's ms"));
    trial().set_check_ms(0);
    trial().set_time_ms(ms);
    EXPECT_THAT(Mistake(), HasSubstr("a timing's ms"));
    trial().set_time_ms(0);
  }
}

TEST_F(AnswersTest, CountsAndReadingsAreInRange) {
  trial().mutable_timing()->set_samples(-1);
  EXPECT_THAT(Mistake(), HasSubstr("samples of -1"));
  trial().mutable_timing()->set_samples(5);
  trial().mutable_timing()->set_power_w(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Mistake(), HasSubstr("a power in W of nan"));
  trial().mutable_timing()->set_power_w(0);
  trial().mutable_timing()->set_sm_clock_mhz(-5);
  EXPECT_THAT(Mistake(), HasSubstr("a clock in MHz of -5"));
}

TEST_F(AnswersTest, WhatIsRightIsOffByAFiniteAmount) {
  for (const double error : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    trial().mutable_accuracy()->set_max_abs_error(error);
    EXPECT_THAT(Mistake(), HasSubstr("an error of"));
  }
  trial().set_verdict(v1::VERDICT_WRONG_RESULT);
  trial().clear_timing();
  EXPECT_EQ(Mistake(), "");
}

TEST_F(AnswersTest, APreparationTakesAFiniteTime) {
  request_.mutable_prepare();
  response_.mutable_prepare()->set_prepare_ms(-1);
  EXPECT_THAT(Mistake(), HasSubstr("a preparation's ms of -1"));
}

}  // namespace
}  // namespace attune::supervisor
