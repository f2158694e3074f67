// How near two problems are, for answers to those that were never tuned.
#ifndef ATTUNE_SERVER_CATALOG_PROBLEM_DISTANCE_H_
#define ATTUNE_SERVER_CATALOG_PROBLEM_DISTANCE_H_

#include <cstdint>
#include <optional>

#include "proto/attune/problem.h"

namespace attune::catalog {

// How far apart two lengths or counts, above 0, are: |log2 of their ratio|.
double Octaves(int64_t a, int64_t b);

// How far apart two problems are, in octaves: the sum over batch * heads_q, heads_q / heads_kv, seq_q and seq_kv of
// |log2 of their ratio|. nullopt when a
// variant tuned for one says nothing of the other, because its code differs: head_dim, dtype, mask kind, sinks, varlen
// and page_size must be the same, and whether there is a softcap. Layouts may differ: to most families they are
// strides.
std::optional<double> Distance(const Problem& a, const Problem& b);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_PROBLEM_DISTANCE_H_
