// How much the trials of one problem say of another, to a model that knows sizes, masks and types as numbers.
#ifndef ATTUNE_SERVER_FORECAST_RELEVANCE_H_
#define ATTUNE_SERVER_FORECAST_RELEVANCE_H_

#include "proto/attune/problem.h"

namespace attune::forecast {

// Whether what was learned from one holds for the other: their head_dim, the size of K's and V's elements, and whether
// rows see different numbers of keys, are the same, and their sizes within six octaves altogether: the sum over batch *
// heads_q, heads_q / heads_kv, seq_q and the most keys that a query sees of |log2 of their ratio|. Unlike
// catalog::Distance, which says whose code may be answered with, it compares problems of other code, too.
bool IsLike(const Problem& a, const Problem& b);

}  // namespace attune::forecast

#endif  // ATTUNE_SERVER_FORECAST_RELEVANCE_H_
