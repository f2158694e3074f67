// Where a search that learns begins: what is likely, then candidates that are far from each other.
#ifndef ATTUNE_SERVER_SEARCH_BEGINNING_H_
#define ATTUNE_SERVER_SEARCH_BEGINNING_H_

#include <cstddef>
#include <vector>

#include "server/search/exchange.h"
#include "server/search/field.h"
#include "server/search/random_numbers.h"
#include "server/search/space_model.h"

namespace attune::search {

// At most `most` of those that are `open`: the likely ones; what near problems' times rank first; then, one family
// after the other, of some drawn at random the one that differs most from all before.
std::vector<size_t> BeginWith(const Field& field, const Exchange& exchange, const SpaceModel& model,
                              const std::vector<bool>& open, size_t most, RandomNumbers& random);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_BEGINNING_H_
