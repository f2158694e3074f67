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

// How many trials come before a model has a say: fewer where something is likely, which says more than what is drawn,
// but for every likely one and one of each family.
size_t TrialsToBeginWith(const Field& field, const SpaceModel& model);

// At most `most` of those that are `open`: the likely ones; what near problems' times rank first, of problems that are
// not so near only the very first; then, one family after the other, of some drawn at random the one that differs most
// from all before.
std::vector<size_t> BeginWith(const Field& field, const Exchange& exchange, const SpaceModel& model,
                              const std::vector<bool>& open, size_t most, RandomNumbers& random);

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_BEGINNING_H_
