// A problem's text: what is read prints as text that is read as the same.
#include "proto/attune/problem.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

constexpr int64_t kFewSequences = 64;  // of more, adding them up takes long

ATTUNE_FUZZ_TARGET(problem) {
  const absl::StatusOr<Problem> problem = ParseProblem(input);
  if (!problem.ok()) return ExpectRefusal(problem.status(), absl::StatusCode::kInvalidArgument, {"problem '"});
  const std::string text = ToText(*problem);
  const absl::StatusOr<Problem> again = ParseProblem(text);
  Expect(again.ok() && *again == *problem && ToText(*again) == text, absl::StrCat(text, " reads back as itself"));
  const absl::StatusOr<Problem> sent = FromProto(ToProto(*problem));
  Expect(sent.ok() && *sent == *problem, absl::StrCat(text, " is the same as a message"));
  if (problem->batch > kFewSequences) return;
  Expect(std::isfinite(Flops(*problem)) && Flops(*problem) >= 0, "operations are a number");
  Expect(std::isfinite(Bytes(*problem)) && Bytes(*problem) > 0, "bytes are a number");
}

}  // namespace
}  // namespace attune::fuzz
