// The inputs of a case: what of them the host holds, and what is drawn where it is wanted.
#ifndef ATTUNE_SERVER_VERIFY_CASE_INPUTS_H_
#define ATTUNE_SERVER_VERIFY_CASE_INPUTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/attune/problem.h"
#include "server/verify/normal_tensor.h"
#include "server/verify/verify.h"

namespace attune::verify {

struct CaseInputs {
  Tensors host;                                 // without those below
  std::shared_ptr<const NormalTensor> q, k, v;  // null: in `host`
  // Of each part (case.h) as it lies on the device, under the key of the inspection; empty without one.
  std::vector<uint64_t> digests = {};
};

enum class Rows { kOwn, kChanged };  // MakeInputs or MakeChangedInputs
// `holds_all`: nothing is left to be drawn later. Otherwise Q, K and V of 16 bits are, where they are normal deviates
// and nothing else.
CaseInputs PlanInputs(const Problem& problem, Distribution distribution, uint64_t seed, Rows rows, bool holds_all);
// All of them.
Tensors OnHost(const CaseInputs& inputs);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_CASE_INPUTS_H_
