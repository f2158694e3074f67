#include "server/service/views.h"

#include <google/protobuf/util/message_differencer.h>

#include "gtest/gtest.h"

namespace attune::service {
namespace {

TEST(Views, ABasicOperationHasNoResponse) {
  v1::Operation operation;
  operation.set_name("operations/1");
  operation.set_done(true);
  operation.mutable_progress()->set_trials_done(3);
  operation.mutable_progress()->mutable_best()->set_name("trials/1");
  operation.mutable_sweep()->set_markdown("a long report");
  MakeBasic(operation);
  EXPECT_EQ(operation.response_case(), v1::Operation::RESPONSE_NOT_SET);
  EXPECT_FALSE(operation.progress().has_best());
  EXPECT_EQ(operation.progress().trials_done(), 3);
  EXPECT_EQ(operation.name(), "operations/1");
}

TEST(Views, ABasicTrialHasWhatItsCommentSays) {
  v1::Trial trial;
  trial.set_name("trials/1");
  trial.set_problem_text("b1.h1.q128.d64.f16");
  trial.set_device_id("cuda:0");
  trial.mutable_variant()->set_text("tiles:BLOCK=1");
  trial.set_policy(v1::POLICY_COLD);
  trial.set_verdict(v1::VERDICT_TIMEOUT);
  trial.set_detail("no answer");
  trial.mutable_timing()->set_median_us(4);
  trial.mutable_timing()->set_low_us(3);
  trial.mutable_timing()->set_high_us(5);
  trial.set_job("operations/1");
  trial.mutable_finish_time()->set_seconds(7);
  v1::Trial expected = trial;
  trial.mutable_problem()->set_batch(1);
  trial.mutable_timing()->set_power_w(70);
  trial.mutable_accuracy()->set_cases(5);
  trial.mutable_resources()->set_registers(255);
  trial.mutable_geometry()->set_ctas(1);
  trial.mutable_dependencies()->set_driver("580.1");
  trial.mutable_recipe();
  trial.set_artifact_sha256("00");
  MakeBasic(trial);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(trial, expected)) << trial.DebugString();
}

}  // namespace
}  // namespace attune::service
