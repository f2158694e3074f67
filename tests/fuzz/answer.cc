// A server's answer, as a client works with it: its recipe at the lengths of its ranges.
#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/domain.h"
#include "proto/attune/problem.h"
#include "tests/fuzz/message_input.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

ATTUNE_FUZZ_TARGET(answer) {
  const auto answer = ReadInputOf<v1::GetBestResponse>(input);
  if (answer == nullptr) return;
  (void)RangesText(answer->domains());
  for (const v1::Domain& domain : answer->domains()) {
    for (const int64_t length : {domain.low(), domain.high()}) {
      const auto recipe = RecipeAt(answer->recipe(), domain, length);
      if (!recipe.ok()) {
        ExpectRefusal(recipe.status(), absl::StatusCode::kInvalidArgument, {"domain: "});
      } else {
        Expect(recipe->launches_size() == answer->recipe().launches_size(), "a recipe keeps its launches");
      }
    }
  }
}

}  // namespace
}  // namespace attune::fuzz
