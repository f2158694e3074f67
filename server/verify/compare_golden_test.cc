// The acceptance rule on the vectors that the bench's Python shares.
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/verify/half.h"
#include "server/verify/verify.h"
#include "tests/golden/golden.h"

namespace attune::verify {
namespace {

// A number, or the text nan, inf or -inf.
double Number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

TEST(GoldenTolerance, AcceptsAndRefuses) {
  for (const auto& vector : Golden("tolerance")) {
    const std::string name = vector["name"], dtype = vector["dtype"];
    const size_t count = vector["output"].size();
    const Problem problem = *ParseProblem(absl::StrCat("b1.h1.q", count, ".d1.", dtype));
    std::vector<uint16_t> output;
    std::vector<float> reference;
    for (size_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(Number(vector["output"][i]));
      output.push_back(FromFloat(problem.dtype, value));
      if (std::isfinite(value)) {
        ASSERT_EQ(ToFloat(problem.dtype, output.back()), value) << name;
      }
      reference.push_back(vector["reference"][i].get<float>());
    }
    const Comparison comparison = CompareOutput(problem, output, reference, vector["plain"].get<double>());
    EXPECT_EQ(comparison.ok, vector["right"].get<bool>()) << name << ": " << comparison.detail;
    EXPECT_EQ(comparison.max_abs_error, Number(vector["max_error"])) << name;
    const int wrong = vector["wrong"];
    if (wrong > 0) {
      EXPECT_TRUE(comparison.detail.ends_with(absl::StrCat("; ", wrong, " of ", count, " elements are wrong")))
          << name << ": " << comparison.detail;
    }
  }
}

TEST(GoldenTolerance, GrowsAsTheLargestOfSoManyErrors) {
  for (const auto& vector : Golden("tolerance_tail")) {
    EXPECT_NEAR(TailFactor(vector["elements"].get<int64_t>()), vector["factor"].get<double>(), 1e-12) << vector;
  }
}

}  // namespace
}  // namespace attune::verify
