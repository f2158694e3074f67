#include "server/space/symbols.h"

namespace attune::space {

Symbol& Symbols::Add(absl::string_view name, int depth, bool launch_time) {
  Symbol& symbol = symbols_.emplace_back();
  symbol.name = std::string(name);
  symbol.depth = depth;
  symbol.launch_time = launch_time;
  by_name_.emplace(symbol.name, &symbol);
  return symbol;
}

Symbol* Symbols::Find(absl::string_view name) {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : it->second;
}

}  // namespace attune::space
