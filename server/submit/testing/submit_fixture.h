// Submissions through a whole tuner, over fakes.
#ifndef ATTUNE_SERVER_SUBMIT_TESTING_SUBMIT_FIXTURE_H_
#define ATTUNE_SERVER_SUBMIT_TESTING_SUBMIT_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::submit {

class SubmitTest : public jobs::TunerTest {
 protected:
  static constexpr auto kKeep = v1::SubmitResult::DECISION_KEEP;
  static constexpr auto kRevert = v1::SubmitResult::DECISION_REVERT;

  // A kernel that the fakes take `us` for, whatever the problem.
  v1::SubmitRequest RequestOf(int us, const std::string& more = "", const std::string& base = "incumbent") {
    v1::SubmitRequest request;
    *request.add_problems() = ToProto(*ParseProblem(kProblem));
    request.set_device_id("cuda:0");
    request.set_policy(v1::POLICY_HOT);
    request.set_base(base);
    request.set_loop("tiles");
    request.set_hypothesis("fewer barriers");
    v1::SourceFile& file = *request.add_files();
    file.set_path("mine.cu");
    file.set_text(absl::StrCat("/* attune\ndefines { name: \"TAKES\" expr: \"", us, "\" } ", more,
                               "\nlaunches { entry: \"mine\" main: true grid_x: \"seq_q\" block_x: \"128\" }\n*/\n"));
    return request;
  }

  void SetUp() override {
    device_.ScriptUs([](const worker::v1::Candidate& candidate) {
      const size_t at = candidate.artifact().find("-DTAKES=");
      double us = 100;
      if (at != std::string::npos) us = std::stod(candidate.artifact().substr(at + 8));
      return us;
    });
    Start();
    ASSERT_EQ(Tune().state(), v1::Operation::STATE_SUCCEEDED);
  }

  v1::SubmitResult Submit(const v1::SubmitRequest& request, const std::string& principal = "token:ada") {
    const v1::Operation ended = AwaitStarted(tuner_->Submit(request, {.principal = principal}));
    EXPECT_EQ(ended.state(), v1::Operation::STATE_SUCCEEDED) << ended.error().message();
    return ended.submit();
  }
};

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_TESTING_SUBMIT_FIXTURE_H_
