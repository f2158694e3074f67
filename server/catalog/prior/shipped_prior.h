// What was tuned before the daemon was shipped: of some problems how long the variants of a family took on some device.
// Where nothing near was tuned there, a fresh install answers from the fastest of each, and learns from all of them.
#ifndef ATTUNE_SERVER_CATALOG_SHIPPED_PRIOR_H_
#define ATTUNE_SERVER_CATALOG_SHIPPED_PRIOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/answers/answer.h"
#include "server/catalog/prior/tuned_problem.h"
#include "server/space/family.h"

namespace attune::catalog {

// A table as it is stored, a line each: "device MODEL", "compute_capability N", "policy hot", "family NAME
// SOURCE_HASH", "parameters NAME ...", then for each problem "problem PROBLEM LEVEL_US", and after it of each of its
// variants "MICROSECONDS VALUE ...", a value of each parameter. Empty lines, and those that begin with #, say nothing.
struct PriorTable {
  struct Row {
    double us = 0;
    std::vector<int64_t> values;
  };
  struct Tuned {
    Problem problem;
    double level_us = 0;    // LevelOf all that were tried
    std::vector<Row> rows;  // fastest first, never none
  };
  std::string device_model;
  int64_t compute_capability = 0;
  v1::Policy policy = v1::POLICY_HOT;
  std::string family;
  std::string source_hash;
  std::vector<std::string> parameters;
  std::vector<Tuned> tuned;
};

// InvalidArgument names the line, and what is allowed.
absl::StatusOr<PriorTable> ParsePrior(absl::string_view text);
std::string ToText(const PriorTable& table);

// The fastest of each problem in `tables` as answers that MakeNearest derives others from, for a device of the tables'
// compute capability and the policy: variants of the families' sources as they are today. They are no incumbents:
// without a trial, and their time is another device's.
std::vector<AnswerPtr> PriorAnswers(const std::vector<PriorTable>& tables, const v1::Device& device, v1::Policy policy,
                                    const std::vector<std::shared_ptr<const space::Family>>& families);

// Whether an answer is one of those.
bool IsShipped(const Answer& answer);

// A problem that was tuned on a device of the same model, with what is to be read of it.
struct ShippedProblem {
  const PriorTable* table;
  const PriorTable::Tuned* tuned;

  const Problem& problem() const { return tuned->problem; }
  // Its variants that are of the families' sources as they are today; none where all are of others.
  TunedProblem Read(const std::vector<std::shared_ptr<const space::Family>>& families) const;
};
// Those of `tables`, which outlive them, for the device's model and the policy.
std::vector<ShippedProblem> ShippedFor(const std::vector<PriorTable>& tables, const v1::Device& device,
                                       v1::Policy policy);

// Those that are embedded.
const std::vector<PriorTable>& ShippedPriors();

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_SHIPPED_PRIOR_H_
