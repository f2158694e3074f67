// Which of a family's variants a search asks for, beside what the manifest's own rules leave.
#ifndef ATTUNE_SERVER_SPACE_SELECTION_H_
#define ATTUNE_SERVER_SPACE_SELECTION_H_

#include <string>
#include <vector>

#include "server/space/advice.h"

namespace attune::space {

struct Selection {
  Advice advice = Advice::kHeeded;
  // Each must be true of a variant: expressions as manifests have them, over the family's parameters and lets, the
  // problem and the device.
  std::vector<std::string> where = {};
};

// Of a request or a plan.
template <typename Request>
Selection SelectionOf(const Request& request) {
  return {AdviceOf(request.ignore_advice()), {request.where().begin(), request.where().end()}};
}

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_SELECTION_H_
