#include "server/space/expression.h"

#include <muParser.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attune::space {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double Min(const double* values, int count) { return *std::min_element(values, values + count); }
double Max(const double* values, int count) { return *std::max_element(values, values + count); }
double Abs(double a) { return std::abs(a); }
double Sqrt(double a) { return std::sqrt(a); }
double Exp(double a) { return std::exp(a); }
double Ln(double a) { return std::log(a); }
double Ceil(double a) { return std::ceil(a); }
double Floor(double a) { return std::floor(a); }
double CeilDiv(double a, double b) { return b == 0 ? kNaN : std::ceil(a / b); }
// The remainder that has b's sign, as floor division leaves it.
double Mod(double a, double b) { return b == 0 ? kNaN : a - b * std::floor(a / b); }
double IsPow2(double a) {
  if (!(a >= 1)) return 0;
  int exponent = 0;
  return std::frexp(a, &exponent) == 0.5 ? 1 : 0;
}
double AlignUp(double a, double b) { return CeilDiv(a, b) * b; }
double Not(double a) { return a == 0 ? 1 : 0; }

constexpr absl::string_view kFunctions[] = {"min",  "max",   "abs",      "sqrt", "exp",     "ln",
                                            "ceil", "floor", "ceil_div", "mod",  "is_pow2", "align_up"};

void DefineFunctions(mu::Parser& parser) {
  parser.ClearFun();
  parser.ClearConst();
  parser.DefineFun("min", Min);
  parser.DefineFun("max", Max);
  parser.DefineFun("abs", Abs);
  parser.DefineFun("sqrt", Sqrt);
  parser.DefineFun("exp", Exp);
  parser.DefineFun("ln", Ln);
  parser.DefineFun("ceil", Ceil);
  parser.DefineFun("floor", Floor);
  parser.DefineFun("ceil_div", CeilDiv);
  parser.DefineFun("mod", Mod);
  parser.DefineFun("is_pow2", IsPow2);
  parser.DefineFun("align_up", AlignUp);
  parser.DefineInfixOprt("!", Not);
}

// Whether there is an '=' that is no part of == <= >= !=. Looked for in the text: muParser would carry the assignment
// out while it compiles.
bool Assigns(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=') continue;
    const bool ends_operator = i > 0 && absl::StrContains("=<>!", text[i - 1]);
    const bool begins_equal = i + 1 < text.size() && text[i + 1] == '=';
    if (!ends_operator && !begins_equal) return true;
  }
  return false;
}

}  // namespace

struct Expression::Compiled {
  mu::Parser parser;
  Symbols* symbols = nullptr;
  std::vector<const Symbol*> used;
  std::string unknown;  // the first name that is no symbol
  double nothing = 0;   // stands in for unknown names while muParser reads on
};

Expression::Expression(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {
  for (const Symbol* symbol : compiled_->used) {
    depth_ = std::max(depth_, symbol->depth);
    launch_time_ = launch_time_ || symbol->launch_time;
  }
}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

absl::StatusOr<Expression> Expression::Parse(absl::string_view text, Symbols& symbols) {
  auto compiled = std::make_unique<Compiled>();
  compiled->symbols = &symbols;
  // muParser asks for each name once, when it first meets it.
  const auto resolve = [](const char* name, void* data) -> double* {
    auto& compiled = *static_cast<Compiled*>(data);
    if (Symbol* symbol = compiled.symbols->Find(name)) {
      compiled.used.push_back(symbol);
      return &symbol->value;
    }
    if (compiled.unknown.empty()) compiled.unknown = name;
    return &compiled.nothing;
  };
  const auto error = [text](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", what));
  };
  if (Assigns(text)) return error("'=' assigns; '==' compares");
  try {
    DefineFunctions(compiled->parser);
    compiled->parser.SetVarFactory(resolve, compiled.get());
    compiled->parser.SetExpr(std::string(text));
    compiled->parser.Eval();  // the first evaluation compiles
  } catch (const mu::ParserError& parser_error) {
    // An unknown function reads as an unknown name before a parenthesis: the name says more.
    if (compiled->unknown.empty()) return error(parser_error.GetMsg());
  }
  if (!compiled->unknown.empty()) {
    return error(absl::StrCat("'", compiled->unknown,
                              "' is no parameter, no let before this one, no function and nothing of the problem or "
                              "the device"));
  }
  if (compiled->parser.GetNumResults() != 1) return error("more than one value");
  return Expression(std::move(compiled));
}

double Expression::Evaluate() const { return compiled_->parser.Eval(); }

bool Expression::Holds() const {
  const double value = Evaluate();
  return value != 0 && !std::isnan(value);
}

bool IsFunction(absl::string_view name) {
  return std::find(std::begin(kFunctions), std::end(kFunctions), name) != std::end(kFunctions);
}

}  // namespace attune::space
