// An expression of a manifest: it is refused with what is wrong, or has one value for the same names.
#include "server/space/expression.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/space/builtins.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

// Those of a manifest with two parameters, with values.
class Names {
 public:
  Names() {
    int value = 1;
    for (const space::Builtin& builtin : space::Builtins()) symbols_.Add(builtin.name, 0, false).value = value++;
    symbols_.Add("BLOCK", 1, false).value = 64;
    symbols_.Add("SPLITS", 2, true).value = 0;
  }
  space::Symbols& symbols() { return symbols_; }

 private:
  space::Symbols symbols_;
};

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

ATTUNE_FUZZ_TARGET(expression) {
  static auto* const names = new Names;
  const absl::StatusOr<space::Expression> expression = space::Expression::Parse(input, names->symbols());
  if (!expression.ok()) return ExpectRefusal(expression.status(), absl::StatusCode::kInvalidArgument, {" "});
  const double value = expression->Evaluate();
  Expect(Same(value, expression->Evaluate()), "an expression has one value");
  Expect(expression->Holds() == (value != 0 && !std::isnan(value)), "what is neither 0 nor NaN holds");
  Expect(expression->depth() >= 0 && expression->depth() <= 2, "a depth is that of a name");
  Expect(!expression->launch_time() || expression->depth() == 2, "only SPLITS is given when launched");
}

}  // namespace
}  // namespace attune::fuzz
