// The names an expression may use and the values they have now. Expressions point straight at the values, so that
// setting one costs a store and evaluating one no look-up.
#ifndef ATTUNE_SERVER_SPACE_SYMBOLS_H_
#define ATTUNE_SERVER_SPACE_SYMBOLS_H_

#include <deque>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace attune::space {

struct Symbol {
  std::string name;
  double value = 0;
  // How many of the family's parameters must have a value before this one has: 0 for the problem and the device,
  // i + 1 for parameter i, a let's own is its expression's.
  int depth = 0;
  bool launch_time = false;  // its value depends on a launch-time parameter
};

class Symbols {
 public:
  Symbols() = default;
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // `name` is not there yet. The result stays where it is as long as the symbols live.
  Symbol& Add(absl::string_view name, int depth, bool launch_time);
  Symbol* Find(absl::string_view name);  // null when there is none

 private:
  std::deque<Symbol> symbols_;
  std::map<std::string, Symbol*, std::less<>> by_name_;
};

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_SYMBOLS_H_
