// What was tuned before the daemon was shipped: of some problems the fastest variant of a family on some device. A
// fresh install answers from it where nothing near was tuned there, and begins searches with it.
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
#include "server/space/family.h"

namespace attune::catalog {

// A table as it is stored, a line each: "device MODEL", "compute_capability N", "policy hot", "family NAME
// SOURCE_HASH", then for each problem "PROBLEM MICROSECONDS VARIANT". Empty lines, and those that begin with #, say
// nothing.
struct PriorTable {
  struct Row {
    Problem problem;
    double us = 0;
    std::string variant;
  };
  std::string device_model;
  int64_t compute_capability = 0;
  v1::Policy policy = v1::POLICY_HOT;
  std::string family;
  std::string source_hash;
  std::vector<Row> rows;
};

// InvalidArgument names the line, and what is allowed.
absl::StatusOr<PriorTable> ParsePrior(absl::string_view text);
std::string ToText(const PriorTable& table);

// The rows of `tables` as answers that MakeNearest derives others from, for a device of the tables' compute capability
// and the policy: variants of the families' sources as they are today. They are no incumbents: without a trial, and
// their time is another device's.
std::vector<AnswerPtr> PriorAnswers(const std::vector<PriorTable>& tables, const v1::Device& device, v1::Policy policy,
                                    const std::vector<std::shared_ptr<const space::Family>>& families);

// Whether an answer is one of those.
bool IsShipped(const Answer& answer);

// Those that are embedded.
const std::vector<PriorTable>& ShippedPriors();

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_SHIPPED_PRIOR_H_
