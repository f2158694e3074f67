// A problem prepared on FakeDevice, and kernels checked there.
#ifndef ATTUNE_SERVER_VERIFY_TESTING_PREPARED_PROBLEM_FIXTURE_H_
#define ATTUNE_SERVER_VERIFY_TESTING_PREPARED_PROBLEM_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/fake_device.h"
#include "server/verify/testing/fake_kernels.h"
#include "server/verify/verify.h"

namespace attune::verify {

// Checked where the parameter says: every cheat has the same verdict on both paths.
class PreparedProblemTest : public ::testing::TestWithParam<PreparedProblem::Look> {
 protected:
  PreparedProblemTest() { device_.inspects = true; }

  // Any problem has large inputs where `large_bytes` is 0.
  void Prepare(const char* text, double large_bytes = kLargeBytes) {
    problem_ = *ParseProblem(text);
    absl::StatusOr<std::unique_ptr<PreparedProblem>> prepared =
        PreparedProblem::Create(device_, problem_, PrepareOn(device_, problem_), inspector(), large_bytes);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    prepared_ = *std::move(prepared);
  }

  // A right kernel, and `mistake` after it.
  FakeKernel RightThen(const std::function<void(const FakeArguments&)>& mistake) {
    return [right = RightKernel(problem_), mistake](const FakeArguments& arguments) {
      absl::Status status = right(arguments);
      mistake(arguments);
      return status;
    };
  }

  worker::v1::TrialResponse Check(const worker::v1::Candidate& candidate) {
    absl::StatusOr<worker::v1::TrialResponse> response = prepared_->Check(candidate, GetParam());
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : worker::v1::TrialResponse();
  }
  worker::v1::TrialResponse Check(FakeKernel kernel, bool deterministic = true) {
    const std::string name = "kernel " + std::to_string(++kernels_);
    device_.kernels[name] = std::move(kernel);
    return Check(CandidateOf(name, deterministic));
  }
  void ExpectVerdict(FakeKernel kernel, v1::Verdict verdict, const char* detail) {
    const worker::v1::TrialResponse response = Check(std::move(kernel));
    EXPECT_EQ(response.verdict(), verdict) << response.detail();
    EXPECT_THAT(response.detail(), ::testing::HasSubstr(detail));
  }

  device::Inspector* inspector() {
    return GetParam() == PreparedProblem::Look::kOnDevice ? device_.inspector() : nullptr;
  }

  FakeDevice device_;
  Problem problem_;
  std::unique_ptr<PreparedProblem> prepared_;
  int kernels_ = 0;
};

inline std::string NameOf(const ::testing::TestParamInfo<PreparedProblem::Look>& look) {
  return look.param == PreparedProblem::Look::kOnDevice ? "OnDevice" : "OnHost";
}
#define ATTUNE_ON_BOTH_PATHS(suite) \
  INSTANTIATE_TEST_SUITE_P(         \
      Looked, suite, ::testing::Values(PreparedProblem::Look::kOnDevice, PreparedProblem::Look::kOnHost), NameOf)

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_TESTING_PREPARED_PROBLEM_FIXTURE_H_
