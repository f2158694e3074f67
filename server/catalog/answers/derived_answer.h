// Answers for problems that were never tuned: NEAREST and HEURISTIC.
#ifndef ATTUNE_SERVER_CATALOG_DERIVED_ANSWER_H_
#define ATTUNE_SERVER_CATALOG_DERIVED_ANSWER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/answers/answer.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/answers/forecasts.h"
#include "server/catalog/host.h"
#include "server/space/space.h"

namespace attune::catalog {

// The variant of the nearest of `known`, the answers for the device's class and the policy, that is feasible for the
// problem, re-fitted to it (space::Refit), and whose code `supply` (null: nobody) does not know to be useless; null
// when none is. One that no re-fit makes advisable gives way to an advisable one that is a little farther away, one
// from far away to a guess of another family.
AnswerPtr MakeNearest(std::vector<AnswerPtr> known, const Problem& problem, const v1::Device& device, v1::Policy policy,
                      const Host& host, const CodeSupply* supply);

// The variant that is expected to be the fastest, as a NEAREST answer; null where it has no recipe, or `supply` (null:
// nobody) knows its code to be useless. `known` as for MakeNearest: the time is predicted from the nearest of them.
AnswerPtr MakeExpected(std::vector<AnswerPtr> known, const Forecast& forecast, const Problem& problem,
                       const v1::Device& device, v1::Policy policy, const Host& host, const CodeSupply* supply);

// What near problems are served, nearest first, re-fitted to this one where that makes it advisable: at most `most`
// variants, each once, and feasible.
std::vector<space::Variant> VariantsNearby(std::vector<AnswerPtr> known, const Problem& problem,
                                           const v1::Device& device, size_t most);

// A variant never timed, from the family with the highest guess_precedence; one that is `accepted` (null: any is).
// NotFound when no family has a feasible one.
absl::StatusOr<space::Variant> HeuristicVariant(const std::vector<std::shared_ptr<const space::Family>>& families,
                                                const Problem& problem, const v1::Device& device,
                                                const space::Accepted& accepted = nullptr);

// The HEURISTIC answer; null when no family has a feasible variant. One whose code is known to be useless only where
// there is no other.
AnswerPtr MakeHeuristic(const Problem& problem, const v1::Device& device, v1::Policy policy, const Host& host,
                        const CodeSupply* supply);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_DERIVED_ANSWER_H_
