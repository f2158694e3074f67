#include "server/device/cuda/testing/fake_kernels.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace attune::device::cuda::testing {
namespace {

template <typename T>
T As(const std::string& bytes) {
  T value = {};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// To nearest, ties to even.
uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void PlainPaged(const std::vector<std::string>& p) {
  const auto* q = As<const uint16_t*>(p[0]);
  const auto* k = As<const uint16_t*>(p[1]);
  const auto* v = As<const uint16_t*>(p[2]);
  auto* partial = As<float*>(p[3]);
  auto* counter = As<int32_t*>(p[4]);
  const auto* lengths = As<const int32_t*>(p[5]);
  const auto* table = As<const int32_t*>(p[6]);
  const auto batch = As<int32_t>(p[7]), heads_q = As<int32_t>(p[8]), heads_kv = As<int32_t>(p[9]);
  const auto dim = As<int32_t>(p[10]), page = As<int32_t>(p[11]), width = As<int32_t>(p[12]);
  for (int64_t row = 0; row < int64_t{batch} * heads_q; ++row) {
    const int64_t b = row / heads_q, head = row % heads_q / (heads_q / heads_kv);
    std::vector<double> out(static_cast<size_t>(dim));
    double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t key = 0; key < lengths[b]; ++key) {
      const int64_t at = ((int64_t{table[b * width + key / page]} * page + key % page) * heads_kv + head) * dim;
      double logit = 0;
      for (int d = 0; d < dim; ++d) logit += FromBf16(q[row * dim + d]) * FromBf16(k[at + d]);
      logit /= std::sqrt(dim);
      const double greater = std::max(greatest, logit);
      const double keep = std::exp(greatest - greater), weight = std::exp(logit - greater);
      for (int d = 0; d < dim; ++d) out[d] = out[d] * keep + weight * FromBf16(v[at + d]);
      sum = sum * keep + weight;
      greatest = greater;
    }
    for (int d = 0; d < dim; ++d) partial[row * dim + d] = static_cast<float>(sum == 0 ? 0 : out[d] / sum);
  }
  ++*counter;
}

void PlainCombine(const std::vector<std::string>& p) {
  const auto* partial = As<const float*>(p[0]);
  auto* counter = As<int32_t*>(p[1]);
  auto* o = As<uint16_t*>(p[2]);
  const auto elements = As<int64_t>(p[3]);
  for (int64_t i = 0; i < elements; ++i) o[i] = *counter == 1 ? ToBf16(partial[i]) : 0x7fff;
  *counter = 0;
}

}  // namespace

void RunFakeKernel(const std::string& entry, const std::vector<std::string>& parameters) {
  if (entry == "plain_paged" && parameters.size() == 13) PlainPaged(parameters);
  if (entry == "plain_combine" && parameters.size() == 4) PlainCombine(parameters);
}

}  // namespace attune::device::cuda::testing
