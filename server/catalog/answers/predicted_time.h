// How long a variant is expected to take for a problem that it was not timed for.
#ifndef ATTUNE_SERVER_CATALOG_PREDICTED_TIME_H_
#define ATTUNE_SERVER_CATALOG_PREDICTED_TIME_H_

#include <cstdint>

#include "attune/v1/device.pb.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"

namespace attune::catalog {

// A launch of a variant for a problem.
struct Launched {
  const Problem& problem;
  int64_t ctas = 0;  // of the main launch
};

// From `us`, the time of another launch, on the same device. What exceeds a launch's own time grows with the longer of
// the arithmetic at the peak rate of the tensor cores and the tensors' bytes at that of the memory (the roofline), and
// with the share of the SMs that its last wave leaves idle. What the L2 keeps is not accounted for.
//
// Of 64 problems on an H200, each predicted from the nearest of the others, four of five took between low_us and
// high_us, and all between half and twice us (docs/benchmarks/2026-11-24-h200-predicted-times.md).
v1::PredictedTime PredictTime(const Launched& asked, double us, const Launched& timed, const v1::Device& device);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_PREDICTED_TIME_H_
