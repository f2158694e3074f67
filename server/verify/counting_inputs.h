// Inputs whose results count keys: every logit is 0, so that all visible keys weigh the same, and each row of V is zero
// but for one column, so that an element of O is how many of its column's keys were seen, times a constant. A key that
// is left out, taken twice or taken from a neighbour shows, whatever the length; in other distributions it drowns in
// long contexts among thousands of keys that weigh as much.
#ifndef ATTUNE_SERVER_VERIFY_COUNTING_INPUTS_H_
#define ATTUNE_SERVER_VERIFY_COUNTING_INPUTS_H_

#include <cstdint>

#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {

// Sets Q to 0, and V, which has its size, in every row that a sequence has; `key` is random. Columns have a limited
// number of keys: of longer sequences those count that lie at either end or where a split may end, and some others.
void CountKeys(const Problem& problem, const RowMap& map, uint64_t key, Tensors& tensors);

// The sink that weighs as much as all keys that a row may see: one that is forgotten, or added by every split, shows.
float CountingSink(const Problem& problem);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_COUNTING_INPUTS_H_
