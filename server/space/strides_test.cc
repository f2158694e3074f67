#include "server/space/strides.h"

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/attune/problem.h"

namespace attune::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Batch, head and row.
std::array<int64_t, 3> StridesOf(const char* problem, v1::BufferRole role) {
  std::array<int64_t, 3> strides = {};
  for (int i = 0; i < 3; ++i) {
    v1::Stride stride;
    stride.set_role(role);
    stride.set_dimension(static_cast<v1::Stride::Dimension>(v1::Stride::DIMENSION_BATCH + i));
    strides[i] = StrideOf(*ParseProblem(problem), stride);
  }
  return strides;
}

TEST(StrideOf, IsThatOfTheProblemsLayout) {
  constexpr char kBhsd[] = "b2.h8.kvh2.q32.kv64.d96.f16";
  EXPECT_THAT(StridesOf(kBhsd, v1::BUFFER_ROLE_Q), ElementsAre(8 * 32 * 96, 32 * 96, 96));
  EXPECT_THAT(StridesOf(kBhsd, v1::BUFFER_ROLE_O), ElementsAre(8 * 32 * 96, 32 * 96, 96));
  EXPECT_THAT(StridesOf(kBhsd, v1::BUFFER_ROLE_K), ElementsAre(2 * 64 * 96, 64 * 96, 96));
  constexpr char kBshd[] = "b2.h8.kvh2.q32.kv64.d96.f16.bshd";
  EXPECT_THAT(StridesOf(kBshd, v1::BUFFER_ROLE_O), ElementsAre(8 * 32 * 96, 96, 8 * 96));
  EXPECT_THAT(StridesOf(kBshd, v1::BUFFER_ROLE_V), ElementsAre(2 * 64 * 96, 96, 2 * 96));
}

TEST(StrideOf, KeysInPagesAreRowByRowWhateverTheLayoutOfQueries) {
  constexpr char kPaged[] = "b2.h8.kvh2.q32.kv64.d96.f16.page16";
  EXPECT_THAT(StridesOf(kPaged, v1::BUFFER_ROLE_Q), ElementsAre(8 * 32 * 96, 32 * 96, 96));
  EXPECT_THAT(StridesOf(kPaged, v1::BUFFER_ROLE_K), ElementsAre(16 * 2 * 96, 96, 2 * 96));
}

TEST(StrideOf, ScalesAreByBatchAndKvHeadAndNoneWithout8BitKeys) {
  for (const v1::BufferRole role : {v1::BUFFER_ROLE_K_SCALE, v1::BUFFER_ROLE_V_SCALE}) {
    for (const char* problem : {"b2.h8.kvh2.q32.d96.f16.kve4m3", "b2.h8.kvh2.q32.d96.f16.kve5m2.varlen.page16"}) {
      EXPECT_EQ(StridesOf(problem, role)[0], 2);
      EXPECT_EQ(StridesOf(problem, role)[1], 1);
    }
    EXPECT_THAT(StridesOf("b2.h8.kvh2.q32.d96.f16", role), ElementsAre(0, 0, 0));
  }
}

TEST(CheckStride, ScalesHaveNoRows) {
  v1::Stride stride;
  stride.set_role(v1::BUFFER_ROLE_V_SCALE);
  stride.set_dimension(v1::Stride::DIMENSION_HEAD);
  EXPECT_TRUE(CheckStride("args[3].stride", stride).ok());
  stride.set_dimension(v1::Stride::DIMENSION_ROW);
  EXPECT_THAT(std::string(CheckStride("args[3].stride", stride).message()),
              HasSubstr("args[3].stride.dimension is DIMENSION_ROW; allowed of scales"));
}

TEST(CheckStride, NamesWhatIsNoDimensionOfATensor) {
  v1::Stride stride;
  stride.set_role(v1::BUFFER_ROLE_LSE);
  stride.set_dimension(v1::Stride::DIMENSION_ROW);
  EXPECT_THAT(
      std::string(CheckStride("args[3].stride", stride).message()),
      HasSubstr("args[3].stride.role is BUFFER_ROLE_LSE; allowed: BUFFER_ROLE_Q, _K, _V, _O, _K_SCALE and _V_SCALE"));
  stride.set_role(v1::BUFFER_ROLE_V);
  EXPECT_TRUE(CheckStride("args[3].stride", stride).ok());
  stride.clear_dimension();
  EXPECT_THAT(std::string(CheckStride("args[3].stride", stride).message()),
              HasSubstr("args[3].stride.dimension is not given"));
}

}  // namespace
}  // namespace attune::space
