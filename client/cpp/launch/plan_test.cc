#include "client/cpp/launch/plan.h"

#include <algorithm>
#include <vector>

#include "client/cpp/launch/code.h"
#include "client/cpp/launch/testing/answers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OneLaunch;
using testing::TwoLaunches;

constexpr char kPlanned[] = "b1.h2.q16.d64.f16";
constexpr Stream kNoStream = nullptr;

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    gpu_ = *Gpu::Open(0);
    code_ = std::make_unique<Code>(gpu_);
  }
  absl::StatusOr<PlanPtr> Make(const v1::GetBestResponse& answer) {
    return code_->PlanOf(std::make_shared<const v1::GetBestResponse>(answer), *FromProto(answer.problem()));
  }
  std::string Refused(const v1::GetBestResponse& answer) { return std::string(Make(answer).status().message()); }

  std::shared_ptr<const Gpu> gpu_;
  std::unique_ptr<Code> code_;
  Tensors tensors_ = testing::kTensorsOfATest;
};

TEST_F(PlanTest, LaunchesInTheGpusContextAndLeavesTheCallersCurrent) {
  const auto plan = *Make(OneLaunch(kPlanned, 7));
  cuda::ContextHandle before = reinterpret_cast<cuda::ContextHandle>(0x77), after = nullptr;
  gpu_->api().CtxPushCurrent(before);
  EXPECT_EQ(plan->Enqueue(tensors_, kNoStream, 0), absl::OkStatus());
  gpu_->api().CtxPopCurrent(&after);
  EXPECT_EQ(after, before);
  EXPECT_THAT(fake::TakeLaunched(), ElementsAre(Field(&fake::Launched::entry, "main")));
}

TEST_F(PlanTest, SaysHowMuchScratchItNeedsAndHowMuchOfItZero) {
  const auto plan = *Make(TwoLaunches(kPlanned, 1000, 4));
  EXPECT_EQ(plan->zeroed_bytes(), 256);
  EXPECT_EQ(plan->scratch_bytes(), 256 + 1024);
}

TEST_F(PlanTest, PutsWhatMustBeZeroFirstInTheCallersScratch) {
  const auto plan = *Make(TwoLaunches(kPlanned, 1000, 4));
  ASSERT_EQ(plan->Enqueue(tensors_, kNoStream, 0x10000), absl::OkStatus());
  const auto address = [](Address value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const fake::Launched& launched : fake::TakeLaunched()) {
    EXPECT_THAT(launched.parameters, ElementsAre(address(0x4000), address(0x10100), address(0x10000)));
  }
}

TEST_F(PlanTest, RefusesScratchThatIsMissingOrNotAligned) {
  const auto plan = *Make(TwoLaunches(kPlanned, 1000, 4));
  for (const Address scratch : {Address{0}, Address{0x10080}}) {
    EXPECT_THAT(std::string(plan->Enqueue(tensors_, kNoStream, scratch).message()),
                HasSubstr("it must be the address of 1280 bytes, a multiple of 256"));
  }
  EXPECT_THAT(fake::TakeLaunched(), IsEmpty());
}

TEST_F(PlanTest, NamesATensorThatIsMissing) {
  const auto plan = *Make(OneLaunch(kPlanned));
  tensors_.k = 0;
  EXPECT_EQ(plan->Enqueue(tensors_, kNoStream, 0), absl::InvalidArgumentError("k is null; the problem asks for it"));
}

TEST_F(PlanTest, NamesATensorThatTheProblemHasNot) {
  const auto plan = *Make(OneLaunch(kPlanned));
  tensors_.lse = 0x5000;
  EXPECT_EQ(plan->Enqueue(tensors_, kNoStream, 0),
            absl::InvalidArgumentError("lse is given; the problem does not ask for it"));
}

TEST_F(PlanTest, NamesATensorThatIsNotAligned) {
  const auto plan = *Make(OneLaunch(kPlanned));
  tensors_.v = 0x3008;
  EXPECT_EQ(plan->Enqueue(tensors_, kNoStream, 0),
            absl::InvalidArgumentError("v is at address 0x3008; it must be a multiple of 16 bytes"));
}

TEST_F(PlanTest, ALaunchThatFailsNamesKernelVariantAndProblem) {
  const auto plan = *Make(OneLaunch(kPlanned));
  fake::Fail("cuLaunchKernelEx", cuda::kIllegalAddress);
  EXPECT_EQ(plan->Enqueue(tensors_, kNoStream, 0),
            absl::AbortedError("cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (kernel main of family:A=1 for "
                               "b1.h2.q16.d64.f16)"));
}

TEST_F(PlanTest, ZeroesAgainWhatAnEarlierLaunchMayHaveLeft) {
  const auto plan = *Make(TwoLaunches(kPlanned, 256, 256));
  std::vector<unsigned char> memory(1024, 0xee);
  const Address scratch = (reinterpret_cast<Address>(memory.data()) + 255) / 256 * 256;
  fake::Fail("cuLaunchKernelEx", cuda::kLaunchOutOfResources, /*after=*/1);
  EXPECT_FALSE(plan->Enqueue(tensors_, kNoStream, scratch).ok());
  const auto* zeroed = reinterpret_cast<const unsigned char*>(scratch);
  EXPECT_EQ(std::count(zeroed, zeroed + 256, 0), 256);
  EXPECT_EQ(zeroed[256], 0xee);
}

TEST_F(PlanTest, ZeroesNothingWhenTheFirstLaunchFails) {
  const auto plan = *Make(TwoLaunches(kPlanned, 256, 256));
  fake::Fail("cuLaunchKernelEx", cuda::kLaunchOutOfResources);
  EXPECT_FALSE(plan->Enqueue(tensors_, kNoStream, 0x10000).ok());
  EXPECT_EQ(fake::Calls("cuMemsetD8Async"), 0);
}

TEST_F(PlanTest, AnAddressThatNoMapTakesIsTheDriversToRefuse) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  v1::TensorMap* map = answer.mutable_recipe()->mutable_launches(0)->mutable_args(4)->mutable_tensor_map();
  map->mutable_base()->set_role(v1::BUFFER_ROLE_LSE);
  *answer.mutable_problem() = ToProto(*ParseProblem("b1.h2.q16.d64.f16.lse"));
  map->set_element(v1::TensorMap::ELEMENT_F32);
  map->add_dims(16);
  map->add_box(16);
  testing::GiveCode(answer);
  const auto plan = Make(answer);
  ASSERT_TRUE(plan.ok()) << plan.status();
  tensors_.lse = 0x5004;
  EXPECT_THAT(std::string((*plan)->Enqueue(tensors_, kNoStream, 0).message()), HasSubstr("cuTensorMapReplaceAddress"));
  EXPECT_THAT(fake::TakeLaunched(), IsEmpty());
}

TEST_F(PlanTest, SharedMemoryIsAllowedAndNeverTakenBack) {
  for (const int bytes : {70'000, 50'000}) {
    v1::GetBestResponse answer = OneLaunch(kPlanned);
    answer.mutable_recipe()->mutable_launches(0)->set_dynamic_shared_bytes(bytes);
    ASSERT_TRUE(Make(answer).ok());
  }
  EXPECT_EQ(fake::FunctionAttributeOf("main", cuda::kFunctionMaxDynamicSharedSizeBytes), 70'000);
}

TEST_F(PlanTest, LoadsAnArtifactOnceAndNeedsItOnlyThen) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  ASSERT_TRUE(Make(answer).ok());
  EXPECT_TRUE(code_->Has(answer.artifact_sha256()));
  answer.clear_artifact();
  ASSERT_TRUE(Make(answer).ok());
  EXPECT_EQ(fake::Calls("cuModuleLoadDataEx"), 1);
}

TEST_F(PlanTest, RefusesAnAnswerWithoutAnArtifact) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  answer.clear_artifact();
  EXPECT_THAT(Refused(answer), HasSubstr("answer: artifact is missing"));
}

TEST_F(PlanTest, RefusesADamagedArtifact) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  answer.mutable_artifact()->append("x");
  EXPECT_EQ(Make(answer).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(fake::Calls("cuModuleLoadDataEx"), 0);
}

TEST_F(PlanTest, RefusesAnotherBackendsArtifact) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  answer.set_device_id("opencl:0");
  EXPECT_THAT(Refused(answer), HasSubstr("device_id is 'opencl:0'; only CUDA's artifacts can be launched"));
}

TEST_F(PlanTest, SaysThatTheArtifactHasNoSuchKernel) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  answer.mutable_recipe()->mutable_launches(0)->set_entry("other");
  EXPECT_THAT(Refused(answer), HasSubstr("entry is 'other'; the artifact has no such kernel"));
}

TEST_F(PlanTest, RefusesArgumentsThatAreNotTheKernels) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  answer.mutable_recipe()->mutable_launches(0)->mutable_args(4)->set_i64(1);
  EXPECT_THAT(Refused(answer), HasSubstr("argument 4 has 8 bytes; the kernel's parameter has 4"));
}

TEST_F(PlanTest, RefusesScratchThatTheRecipeLacks) {
  v1::GetBestResponse answer = TwoLaunches(kPlanned, 256, 256);
  answer.mutable_recipe()->mutable_launches(1)->mutable_args(1)->mutable_buffer()->set_scratch(2);
  EXPECT_EQ(Refused(answer), "recipe: kernel combine: argument 1: scratch is 2; the recipe has 2 scratch buffers");
}

TEST_F(PlanTest, RefusesAFirstLaunchThatOverlaps) {
  v1::GetBestResponse answer = OneLaunch(kPlanned);
  answer.mutable_recipe()->mutable_launches(0)->set_overlaps_previous(true);
  EXPECT_THAT(Refused(answer), HasSubstr("a recipe's first launch must not overlap"));
}

TEST_F(PlanTest, AnErrorOfTheDriverWhileLoadingIsReturned) {
  for (const char* symbol : {"cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncLoad", "cuFuncGetAttribute",
                             "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuCtxPushCurrent_v2"}) {
    fake::Fail(symbol, cuda::kOutOfMemory);
    EXPECT_EQ(Make(OneLaunch(kPlanned)).status().code(), absl::StatusCode::kResourceExhausted) << symbol;
  }
  EXPECT_TRUE(Make(OneLaunch(kPlanned)).ok());
}

TEST(GpuTest, SaysWhichDevicesThereAre) {
  fake::Reset();
  EXPECT_EQ(Gpu::Open(1).status(), absl::InvalidArgumentError("device is 1; this process sees 1 device"));
}

}  // namespace
}  // namespace attune::launch
