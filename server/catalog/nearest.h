// Answers for problems that were never tuned.
#ifndef ATTUNE_SERVER_CATALOG_NEAREST_H_
#define ATTUNE_SERVER_CATALOG_NEAREST_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::catalog {

// How far apart two problems are: the sum over batch * heads, seq_q and seq_kv of |log2 of their ratio|. nullopt when a
// variant tuned for one says nothing of the other, because its code differs: head_dim, dtype, mask kind, sinks, varlen
// and page_size must be the same, and whether there is a softcap. Layouts may differ: to most families they are
// strides.
std::optional<double> Distance(const Problem& a, const Problem& b);

// A variant never timed, from the family with the highest guess_precedence; one that is `accepted` (null: any is).
// NotFound when no family has a feasible one.
absl::StatusOr<space::Variant> HeuristicVariant(const std::vector<std::shared_ptr<const space::Family>>& families,
                                                const Problem& problem, const v1::Device& device,
                                                const space::Accepted& accepted = nullptr);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_NEAREST_H_
