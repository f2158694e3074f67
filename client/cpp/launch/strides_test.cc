#include "client/cpp/launch/strides.h"

#include <cmath>
#include <cstring>

#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/attune_launch.h"
#include "client/cpp/launch/runtime.h"
#include "client/cpp/launch/testing/answers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

using ::testing::HasSubstr;

namespace fake = ::attune::device::cuda::testing;

constexpr char kStrided[] = "b2.h4.kvh2.q16.kv100.d64.f16";
constexpr Shape kStridedShape = {.batch = 2, .seq_q = 16, .seq_kv = 100};

void AddStride(v1::GetBestResponse& answer, v1::BufferRole role, v1::Stride::Dimension dimension, int64_t own) {
  v1::KernelArg* arg = answer.mutable_recipe()->mutable_launches(0)->add_args();
  arg->set_i64(own);
  arg->mutable_stride()->set_role(role);
  arg->mutable_stride()->set_dimension(dimension);
}

// An answer whose kernel takes K's strides of sequences and heads, and O's of heads.
v1::GetBestResponse Strided() {
  v1::GetBestResponse answer = testing::OneLaunch(kStrided);
  AddStride(answer, v1::BUFFER_ROLE_K, v1::Stride::DIMENSION_BATCH, 12800);
  AddStride(answer, v1::BUFFER_ROLE_K, v1::Stride::DIMENSION_HEAD, 6400);
  AddStride(answer, v1::BUFFER_ROLE_O, v1::Stride::DIMENSION_HEAD, 1024);
  testing::GiveCode(answer);
  return answer;
}

class StridesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    runtime_ = *Runtime::Open({});
    ASSERT_EQ(runtime_->Load(Strided()), absl::OkStatus());
    attention_ = *runtime_->Prepare(*ParseProblem(kStrided));
    placement_ = OwnPlacement(*ParseProblem(kStrided));
  }
  absl::Status Run() {
    return attention_->RunPlaced(testing::kStreamOfATest, testing::kTensorsOfATest, kStridedShape, placement_);
  }
  std::string Refused() { return std::string(Run().message()); }
  // The launched kernel's i64 at `index`.
  static int64_t Number(const fake::Launched& launched, size_t index) {
    int64_t number = 0;
    std::memcpy(&number, launched.parameters.at(index).data(), sizeof number);
    return number;
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Attention> attention_;
  Placement placement_;
};

TEST_F(StridesTest, AKernelGetsTheStridesOfItsTensors) {
  placement_.k.batch = 65536;
  placement_.k.head = 8192;
  ASSERT_EQ(Run(), absl::OkStatus());
  const fake::Launched launched = fake::TakeLaunched()[0];
  EXPECT_EQ(Number(launched, 5), 65536);
  EXPECT_EQ(Number(launched, 6), 8192);
  EXPECT_EQ(Number(launched, 7), 1024);
}

TEST_F(StridesTest, ThoseOfTheProblemsOwnLayoutAreTheRecipes) {
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(Number(fake::TakeLaunched()[0], 5), 12800);
}

TEST_F(StridesTest, APlacementIsPlannedOnce) {
  placement_.k.head = 8192;
  ASSERT_EQ(Run(), absl::OkStatus());
  const int before = fake::Calls("cuModuleGetFunction");
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(fake::Calls("cuModuleGetFunction"), before);
}

TEST_F(StridesTest, AnotherAnswerIsPlannedAnew) {
  placement_.k.head = 8192;
  ASSERT_EQ(Run(), absl::OkStatus());
  v1::GetBestResponse other = Strided();
  other.mutable_recipe()->mutable_launches(0)->mutable_args(4)->set_i32(9);
  ASSERT_EQ(runtime_->Load(other), absl::OkStatus());
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_EQ(fake::TakeLaunched().back().parameters[4][0], 9);
}

TEST_F(StridesTest, AStrideThatTheRecipeDoesNotNameMustBeTheLayouts) {
  placement_.k.row = 128;
  EXPECT_EQ(Refused(), "k has 128 elements from one row to the next; this kernel reads 64 alone");
}

TEST_F(StridesTest, AStrideThatIsNoMultipleOfSixteenBytesIsRefused) {
  placement_.k.head = 6404;
  EXPECT_EQ(Refused(), "k has 6404 elements from one head to the next; it must be a multiple of 8, at least 0");
}

TEST_F(StridesTest, KeysMayBeOneForAllHeadsAndOutputsNot) {
  placement_.k.head = 0;
  EXPECT_EQ(Run(), absl::OkStatus());
  placement_.o.head = 0;
  EXPECT_EQ(Refused(), "o has 0 elements from one head to the next; it must be a multiple of 8, at least 8");
}

TEST_F(StridesTest, AStrideThatThirtyTwoBitsDoNotHoldIsRefused) {
  placement_.k.head = int64_t{1} << 31;
  EXPECT_EQ(Refused(), "k has 2147483648 elements from one head to the next; it must be less than 2147483648");
  placement_.k.head = 6400;
  placement_.k.batch = int64_t{1} << 31;
  EXPECT_EQ(Run(), absl::OkStatus());
}

TEST_F(StridesTest, ADimensionOfOneEntryMayHaveAnyStride) {
  v1::GetBestResponse one = testing::OneLaunch("b1.h1.q1.kv100.d64.f16");
  const Problem problem = *FromProto(one.problem());
  Placement placement = OwnPlacement(problem);
  placement.q = {7, 7, 7};
  EXPECT_TRUE(PlacedRecipe(one.recipe(), problem, placement).ok());
}

TEST_F(StridesTest, ATensorMapsStrideIsWorkedOutAnew) {
  v1::LaunchRecipe recipe = Strided().recipe();
  v1::TensorMap* map = recipe.mutable_launches(0)->add_args()->mutable_tensor_map();
  for (const int64_t stride : {128, 12800}) map->add_strides(stride);
  v1::TensorMap::Term* term = map->add_terms();
  term->set_index(1);
  term->mutable_stride()->set_role(v1::BUFFER_ROLE_V);
  term->mutable_stride()->set_dimension(v1::Stride::DIMENSION_HEAD);
  term->set_factor(2);
  term->set_offset(16);
  placement_.v.head = 8192;
  const auto placed = PlacedRecipe(recipe, *ParseProblem(kStrided), placement_);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->launches(0).args(8).tensor_map().strides(1), 16 + 2 * 8192);
  EXPECT_EQ(placed->launches(0).args(8).tensor_map().strides(0), 128);
  placement_.v.head = 0;
  EXPECT_FALSE(PlacedRecipe(recipe, *ParseProblem(kStrided), placement_).ok());
}

// A recipe with an argument of the scale 1/8, one that has nothing to do with it, and one of another ratio.
v1::LaunchRecipe Scaled() {
  v1::LaunchRecipe recipe = Strided().recipe();
  const std::pair<float, float> args[] = {{0.25f, 1e6f}, {3.0f, 0.0f}, {1.0f, 1.5f}};
  for (const auto& [value, ratio] : args) {
    v1::KernelArg* arg = recipe.mutable_launches(0)->add_args();
    arg->set_f32(value);
    arg->set_max_scale_ratio(ratio);
  }
  return recipe;
}

absl::StatusOr<v1::LaunchRecipe> ScaledBy(double scale, const v1::LaunchRecipe& recipe = Scaled()) {
  Placement placement = OwnPlacement(*ParseProblem(kStrided));
  placement.softmax_scale = scale;
  return PlacedRecipe(recipe, *ParseProblem(kStrided), placement);
}

TEST(SoftmaxScale, IsInAllArgumentsThatAreProportionalToIt) {
  const auto recipe = ScaledBy(0.1875);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  const auto& args = recipe->launches(0).args();
  EXPECT_FLOAT_EQ(args.at(args.size() - 3).f32(), 0.375f);
  EXPECT_FLOAT_EQ(args.at(args.size() - 2).f32(), 3.0f);
  EXPECT_FLOAT_EQ(args.at(args.size() - 1).f32(), 1.5f);
}

TEST(SoftmaxScale, IsPositiveAndNoLargerThanTheKernelComputes) {
  const auto error = [](double scale) { return std::string(ScaledBy(scale).status().message()); };
  EXPECT_THAT(error(0.2), HasSubstr("softmax_scale is 0.2; this kernel computes those above 0, up to 0.1875"));
  EXPECT_THAT(error(-0.1), HasSubstr("softmax_scale is -0.1; this kernel computes those above 0"));
  EXPECT_THAT(error(std::nan("")), HasSubstr("softmax_scale is nan; this kernel computes those above 0"));
}

TEST(SoftmaxScale, IsTheUsualOneForAKernelThatComputesNoOther) {
  EXPECT_TRUE(ScaledBy(0, Strided().recipe()).ok());
  EXPECT_THAT(std::string(ScaledBy(0.1, Strided().recipe()).status().message()),
              HasSubstr("softmax_scale is 0.1; this kernel computes 1/sqrt(head_dim), 0.125, alone"));
}

TEST_F(StridesTest, TheOwnPlacementIsTheLayouts) {
  const auto k_of = [](const char* problem) { return OwnPlacement(*ParseProblem(problem)).k; };
  EXPECT_EQ(k_of("b2.h4.kvh2.q16.kv100.d64.f16"), (Spacing{12800, 6400, 64}));
  EXPECT_EQ(k_of("b2.h4.kvh2.q16.kv100.d64.f16.bshd"), (Spacing{12800, 64, 128}));
  EXPECT_EQ(k_of("b2.h4.kvh2.q16.kv100.d64.f16.varlen"), (Spacing{0, 64, 128}));
  EXPECT_EQ(k_of("b2.h4.kvh2.q16.kv100.d64.f16.page16"), (Spacing{2048, 64, 128}));
}

TEST_F(StridesTest, ScalesHaveTheirsWhicheverHeadsShareThem) {
  const Problem problem = *ParseProblem("b2.h4.kvh2.q16.kv100.d64.f16.kve4m3");
  Placement placement = OwnPlacement(problem);
  EXPECT_EQ(placement.k_scale, (Spacing{2, 1, 0}));
  v1::GetBestResponse answer = testing::OneLaunch("b2.h4.kvh2.q16.kv100.d64.f16.kve4m3");
  const int first = answer.recipe().launches(0).args_size();
  AddStride(answer, v1::BUFFER_ROLE_K_SCALE, v1::Stride::DIMENSION_BATCH, 2);
  AddStride(answer, v1::BUFFER_ROLE_K_SCALE, v1::Stride::DIMENSION_HEAD, 1);
  for (const Spacing spacing : {Spacing{0, 0, 0}, Spacing{0, 1, 0}, Spacing{7, 3, 0}}) {
    placement.k_scale = spacing;
    const auto placed = PlacedRecipe(answer.recipe(), problem, placement);
    ASSERT_TRUE(placed.ok()) << placed.status();
    EXPECT_EQ(placed->launches(0).args(first).i64(), spacing.batch);
    EXPECT_EQ(placed->launches(0).args(first + 1).i64(), spacing.head);
  }
}

TEST_F(StridesTest, KeysOf8BitsAreReadSixteenAtOnce) {
  const Problem problem = *ParseProblem("b2.h4.kvh2.q16.kv100.d64.f16.kve4m3");
  v1::GetBestResponse answer = testing::OneLaunch("b2.h4.kvh2.q16.kv100.d64.f16.kve4m3");
  AddStride(answer, v1::BUFFER_ROLE_K, v1::Stride::DIMENSION_HEAD, 6400);
  Placement placement = OwnPlacement(problem);
  placement.k.head = 8200;
  EXPECT_THAT(std::string(PlacedRecipe(answer.recipe(), problem, placement).status().message()),
              ::testing::HasSubstr("must be a multiple of 16"));
  placement.k.head = 8208;
  EXPECT_TRUE(PlacedRecipe(answer.recipe(), problem, placement).ok());
}

TEST_F(StridesTest, CHasThemToo) {
  attune_runtime_options options = {};
  options.struct_size = sizeof options;
  attune_runtime* runtime = nullptr;
  attune_attention* attention = nullptr;
  ASSERT_EQ(attune_runtime_open(&options, &runtime), ATTUNE_OK);
  ASSERT_EQ(attune_attention_open(runtime, kStrided, &attention), ATTUNE_OK);
  const std::string answer = Strided().SerializeAsString();
  ASSERT_EQ(attune_runtime_load(runtime, answer.data(), answer.size()), ATTUNE_OK) << attune_error_message();
  const attune_tensors tensors = {0x1000, 0x2000, 0x3000, 0x4000, 0, 0, 0, 0, 0, 0, 0, 0};
  const attune_shape shape = {2, 16, 100};
  const attune_placement placement = {
      {4096, 1024, 64}, {65536, 8192, 64}, {12800, 6400, 64}, {4096, 1024, 64}, {}, {}, 0};
  EXPECT_EQ(attune_run_placed(attention, nullptr, &tensors, &shape, &placement), ATTUNE_OK) << attune_error_message();
  EXPECT_EQ(Number(fake::TakeLaunched()[0], 6), 8192);
  attune_attention_close(attention);
  attune_runtime_close(runtime);
}

}  // namespace
}  // namespace attune::launch
