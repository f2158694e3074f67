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
  const worker::v1::TrialResponse good = trial();
  request_.mutable_play_off();
  *response_.mutable_play_off()->add_results() = good;
  EXPECT_EQ(Mistake(), "");
  response_.mutable_play_off()->add_results();
  EXPECT_THAT(Mistake(), HasSubstr("verdict 0"));
}

TEST_F(AnswersTest, ACompileIsGoodOrNot) {
  request_.mutable_compile();
  response_.mutable_compile()->set_verdict(v1::VERDICT_COMPILE_ERROR);
  EXPECT_EQ(Mistake(), "");
  response_.mutable_compile()->set_verdict(v1::VERDICT_WRONG_RESULT);
  EXPECT_THAT(Mistake(), HasSubstr("verdict"));
}

}  // namespace
}  // namespace attune::supervisor
