#include "server/worker/launch_job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/fake_device.h"
#include "server/verify/testing/fake_kernels.h"
#include "server/verify/verify.h"

namespace attune::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    device_.kernels["kernel"] = [this](const verify::FakeArguments& arguments) {
      ++runs_;
      return look_(arguments);
    };
    *job_.mutable_problem() = ToProto(problem_);
    job_.mutable_candidate()->set_artifact("kernel");
    job_.mutable_candidate()->mutable_recipe()->add_launches()->set_entry("kernel");
    job_.set_runs(1);
  }

  Problem problem_ = *ParseProblem("b1.h2.q8.d16.f16.lse");
  verify::FakeDevice device_;
  worker::v1::LaunchJob job_;
  int runs_ = 0;
  std::function<absl::Status(const verify::FakeArguments&)> look_ = [](const auto&) { return absl::OkStatus(); };
};

TEST_F(LaunchTest, GivesEachBufferExactlyItsBytes) {
  look_ = [](const verify::FakeArguments& arguments) {
    EXPECT_EQ(arguments.q.size, 2U * 8 * 16 * 2);
    EXPECT_EQ(arguments.k.size, 2U * 8 * 16 * 2);
    EXPECT_EQ(arguments.o.size, 2U * 8 * 16 * 2);
    EXPECT_EQ(arguments.lse.size, 2U * 8 * 4);
    EXPECT_EQ(arguments.sinks.data, nullptr);
    return absl::OkStatus();
  };
  EXPECT_TRUE(Launch(device_, job_).ok());
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(device_.allocated, 0U) << "all is freed";
}

TEST_F(LaunchTest, RunsOnTheInputsOfTimings) {
  const verify::Tensors inputs = verify::MakeInputs(problem_, verify::Distribution::kNormal, 1);
  look_ = [&](const verify::FakeArguments& arguments) {
    EXPECT_EQ(std::memcmp(arguments.v.data, inputs.v.data(), arguments.v.size), 0);
    return absl::OkStatus();
  };
  job_.set_runs(2);
  EXPECT_TRUE(Launch(device_, job_).ok());
  EXPECT_EQ(runs_, 2);
}

TEST_F(LaunchTest, ZeroesTheScratchThatMustBe) {
  auto& recipe = *job_.mutable_candidate()->mutable_recipe();
  recipe.add_scratch()->set_bytes(512);
  recipe.add_scratch()->set_bytes(0);
  recipe.add_scratch()->set_bytes(64);
  recipe.mutable_scratch(2)->set_zero_before_first_run(true);
  look_ = [](const verify::FakeArguments& arguments) {
    std::vector<size_t> sizes;
    for (const verify::FakePointer& scratch : arguments.scratch) sizes.push_back(scratch.size);
    EXPECT_THAT(sizes, ElementsAre(512, 0, 64));
    EXPECT_TRUE(std::all_of(arguments.scratch[2].data, arguments.scratch[2].data + 64,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    return absl::OkStatus();
  };
  EXPECT_TRUE(Launch(device_, job_).ok());
  EXPECT_EQ(runs_, 1);
}

TEST_F(LaunchTest, SaysWhatTheDeviceSays) {
  look_ = [](const verify::FakeArguments&) { return absl::AbortedError("illegal address"); };
  EXPECT_THAT(std::string(Launch(device_, job_).message()), HasSubstr("illegal address"));
  job_.mutable_candidate()->set_artifact("nothing");
  EXPECT_EQ(Launch(device_, job_).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attune::worker
