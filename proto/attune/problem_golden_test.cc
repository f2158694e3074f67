// The rules about problems that clients in Python share, on their common vectors.
#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "tests/golden/golden.h"

namespace attune {
namespace {

std::string Canonical(const std::string& text) {
  absl::StatusOr<Problem> problem = ParseProblem(text);
  return problem.ok() ? ToText(*problem) : std::string(problem.status().message());
}

TEST(GoldenProblemText, CanonicalTextsReadBackAsThemselves) {
  for (const std::string text : Golden("problem_text", "canonical")) EXPECT_EQ(Canonical(text), text);
}

TEST(GoldenProblemText, OtherSpellingsMeanTheSameProblem) {
  for (const auto& vector : Golden("problem_text", "spellings")) {
    const std::string text = vector[0], canonical = vector[1];
    EXPECT_EQ(Canonical(text), canonical);
    EXPECT_EQ(*ParseProblem(text), *ParseProblem(canonical));
  }
}

TEST(GoldenProblemText, ErrorsNameThePartTheValueAndWhatIsAllowed) {
  for (const auto& vector : Golden("problem_text", "refused")) {
    const std::string text = vector[0], message = vector[1];
    EXPECT_EQ(Canonical(text), message);
  }
}

TEST(GoldenWork, CountsSequenceLengthsFlopsAndBytes) {
  for (const auto& vector : Golden("work")) {
    const std::string text = vector["problem"];
    const Problem problem = *ParseProblem(text);
    const Lengths lengths = SequenceLengths(problem);
    EXPECT_EQ(lengths.q, vector["q"].get<std::vector<int64_t>>()) << text;
    EXPECT_EQ(lengths.kv, vector["kv"].get<std::vector<int64_t>>()) << text;
    EXPECT_EQ(Flops(problem), vector["flops"].get<double>()) << text;
    EXPECT_EQ(Bytes(problem), vector["bytes"].get<double>()) << text;
  }
}

}  // namespace
}  // namespace attune
