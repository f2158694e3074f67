// One expression of a manifest, compiled once and evaluated often.
//
// The language is muParser's, cut down to what family.proto documents: arithmetic, comparisons, && || ! and ?:, and
// those functions; no assignment, no lists. muParser evaluates both sides of && and ||, so functions never fault:
// mod and ceil_div by 0 are NaN, which no comparison but != accepts and which does not count as true.
#ifndef ATTUNE_SERVER_SPACE_EXPRESSION_H_
#define ATTUNE_SERVER_SPACE_EXPRESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/space/symbols.h"

namespace attune::space {

// Not thread-safe: evaluation uses buffers of its own.
class Expression {
 public:
  // `symbols` lives longer than the expression. InvalidArgument says what is wrong and quotes `text`.
  static absl::StatusOr<Expression> Parse(absl::string_view text, Symbols& symbols);

  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  // With the symbols' values of this moment.
  double Evaluate() const;
  // Neither 0 nor NaN.
  bool Holds() const;

  // The greatest of the used symbols' depths: with that many parameters set the value is settled.
  int depth() const { return depth_; }
  bool launch_time() const { return launch_time_; }

 private:
  struct Compiled;
  explicit Expression(std::unique_ptr<Compiled> compiled);

  std::unique_ptr<Compiled> compiled_;
  int depth_ = 0;
  bool launch_time_ = false;
};

// Names that expressions read as functions.
bool IsFunction(absl::string_view name);

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_EXPRESSION_H_
