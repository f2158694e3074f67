// Which recorded problems are held out together when it is tried how well the others answer for them.
#ifndef ATTUNE_CLIENT_REPLAY_FOLDS_H_
#define ATTUNE_CLIENT_REPLAY_FOLDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "proto/attune/problem.h"

namespace attune::replay {

struct Fold {
  std::string name;
  std::vector<size_t> held_out;  // numbers of problems; some others are left
};

// Each by itself: its near twins are among the others.
std::vector<Fold> OneByOne(const std::vector<Problem>& problems);

// All of one kind, so that none is answered for by its like: of one head_dim and mask, all that decode (at most 16
// queries), all of grouped heads, all with more than 4,096 keys. A problem is in several. Kinds that leave fewer than
// half of the problems are left out: from so few nobody would answer.
std::vector<Fold> ByKind(const std::vector<Problem>& problems);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_FOLDS_H_
