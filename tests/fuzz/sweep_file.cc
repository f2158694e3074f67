// The file of a sweep: refused with the place in it, or good for all it asks for.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/cli/sweep_plan.h"
#include "google/protobuf/text_format.h"
#include "proto/attune/expand_plan.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

// Plans of more are counted, not listed: that takes long.
constexpr int kFewValues = 64;

bool IsSmall(const v1::SweepPlan& plan) {
  return std::all_of(plan.shapes().begin(), plan.shapes().end(), [](const v1::SweepShapes& shapes) {
    const v1::SweepProduct& product = shapes.product();
    int values = 1;
    for (const int size : {product.batch_size(), product.heads_q_size(), product.heads_kv_size(), product.seq_q_size(),
                           product.seq_kv_size(), product.head_dim_size(), product.dtype_size(), product.mask_size()}) {
      values = std::min(kFewValues + 1, values * std::max(1, std::min(size, kFewValues)));
    }
    return values <= kFewValues;
  });
}

ATTUNE_FUZZ_TARGET(sweep_file) {
  const absl::StatusOr<v1::SweepPlan> plan = cli::ParseSweepPlan("a.textproto", std::string(input));
  if (!plan.ok()) return ExpectRefusal(plan.status(), absl::StatusCode::kInvalidArgument, {"a.textproto:", ": "});
  std::string printed;
  google::protobuf::TextFormat::PrintToString(*plan, &printed);
  const absl::StatusOr<v1::SweepPlan> again = cli::ParseSweepPlan("a.textproto", printed);
  Expect(again.ok() && again->SerializeAsString() == plan->SerializeAsString(), "a plan reads back as itself");
  if (!IsSmall(*plan)) return;
  const absl::StatusOr<std::vector<Problem>> problems = ExpandPlan(*plan);
  if (!problems.ok()) return ExpectRefusal(problems.status(), absl::StatusCode::kInvalidArgument, {"shapes"});
  std::set<std::string> texts;
  for (const Problem& problem : *problems) {
    const std::string text = ToText(problem);
    Expect(texts.insert(text).second, absl::StrCat(text, " is there once"));
    const absl::StatusOr<Problem> read = ParseProblem(text);
    Expect(read.ok() && *read == problem, absl::StrCat(text, " reads back as itself"));
  }
}

}  // namespace
}  // namespace attune::fuzz
