// Inputs for attention and its result in fp64 on the host, by its definition.
#ifndef ATTUNE_TESTS_OPENCL_ATTENTION_TESTING_H_
#define ATTUNE_TESTS_OPENCL_ATTENTION_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/attune/problem.h"

namespace attune::testing {

enum class Inputs {
  kNormal,
  kOffsetMean,   // K and V have mean 1: zero-mean inputs hide errors of normalisation
  kLargeLogits,  // exp overflows without the running maximum
  kDominantKey,  // one key takes nearly all of every row's weight
  kNaNRow,       // the last row of Q is NaN
};

struct Tensors {
  std::vector<uint16_t> q, k, v;  // in the problem's dtype and layout
};
Tensors MakeTensors(const Problem& problem, Inputs inputs, uint32_t seed);

struct Result {
  std::vector<double> o;    // in Q's layout
  std::vector<double> lse;  // [batch, heads_q, seq_q]
};
Result HostAttention(const Problem& problem, const Tensors& tensors);

double ToDouble(uint16_t element, v1::DType dtype);

// "" when |out - expected| <= tolerance * (1 + |expected|) or both are NaN everywhere, or the first element where not.
std::string Difference(absl::Span<const uint16_t> out, const Problem& problem, const Result& expected);
std::string Difference(absl::Span<const float> out, absl::Span<const double> expected, double tolerance);

}  // namespace attune::testing

#endif  // ATTUNE_TESTS_OPENCL_ATTENTION_TESTING_H_
