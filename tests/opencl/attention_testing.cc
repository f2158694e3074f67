#include "tests/opencl/attention_testing.h"

#include <CL/cl_half.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"

namespace attune::testing {
namespace {

struct Strides {
  int64_t batch, head, row;
};
Strides StridesOf(const Problem& problem, int64_t heads, int64_t rows) {
  if (problem.layout == v1::LAYOUT_BSHD)
    return {rows * heads * problem.head_dim, problem.head_dim, heads * problem.head_dim};
  return {rows * heads * problem.head_dim, rows * problem.head_dim, problem.head_dim};
}

uint16_t FromFloat(float value, v1::DType dtype) {
  if (dtype == v1::DTYPE_BF16) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
  return cl_half_from_float(value, CL_HALF_RTE);
}

}  // namespace

double ToDouble(uint16_t element, v1::DType dtype) {
  if (dtype == v1::DTYPE_BF16) return std::bit_cast<float>(static_cast<uint32_t>(element) << 16);
  return cl_half_to_float(element);
}

Tensors MakeTensors(const Problem& problem, Inputs inputs, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const int64_t q_size = problem.batch * problem.heads_q * problem.seq_q * problem.head_dim;
  const int64_t kv_size = problem.batch * problem.heads_kv * problem.seq_kv * problem.head_dim;
  const float mean = inputs == Inputs::kOffsetMean ? 1.0f : 0.0f;
  const float scale = inputs == Inputs::kLargeLogits ? 3.0f : 1.0f;
  const auto draw = [&](int64_t size, float scale, float mean) {
    std::vector<uint16_t> values(static_cast<size_t>(size));
    for (uint16_t& value : values) value = FromFloat(normal(random) * scale + mean, problem.dtype);
    return values;
  };
  Tensors tensors = {draw(q_size, scale, 0), draw(kv_size, scale, mean), draw(kv_size, 1, mean)};
  if (inputs == Inputs::kNaNRow) {
    std::fill_n(tensors.q.rbegin(), problem.head_dim, FromFloat(std::nanf(""), problem.dtype));
  }
  if (inputs == Inputs::kDominantKey) {
    // Every query has 2 in its first column; the middle key has 40 there, the others 0.
    for (int64_t i = 0; i < q_size; i += problem.head_dim) tensors.q[i] = FromFloat(2, problem.dtype);
    for (int64_t i = 0; i < kv_size; i += problem.head_dim) tensors.k[i] = 0;
    const Strides kv = StridesOf(problem, problem.heads_kv, problem.seq_kv);
    for (int64_t b = 0; b < problem.batch; ++b) {
      for (int64_t h = 0; h < problem.heads_kv; ++h) {
        tensors.k[b * kv.batch + h * kv.head + problem.seq_kv / 2 * kv.row] = FromFloat(40, problem.dtype);
      }
    }
  }
  return tensors;
}

Result HostAttention(const Problem& problem, const Tensors& tensors) {
  const Strides q = StridesOf(problem, problem.heads_q, problem.seq_q);
  const Strides kv = StridesOf(problem, problem.heads_kv, problem.seq_kv);
  const int64_t group = problem.heads_q / problem.heads_kv;
  const double scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  const auto convert = [&](const std::vector<uint16_t>& from) {
    std::vector<double> to(from.size());
    std::transform(from.begin(), from.end(), to.begin(), [&](uint16_t x) { return ToDouble(x, problem.dtype); });
    return to;
  };
  const std::vector<double> qs = convert(tensors.q), ks = convert(tensors.k), vs = convert(tensors.v);
  Result result;
  result.o.resize(qs.size());
  std::vector<double> weights(static_cast<size_t>(problem.seq_kv));
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t h = 0; h < problem.heads_q; ++h) {
      const double* keys = ks.data() + b * kv.batch + h / group * kv.head;
      const double* values = vs.data() + b * kv.batch + h / group * kv.head;
      for (int64_t i = 0; i < problem.seq_q; ++i) {
        const double* query = qs.data() + b * q.batch + h * q.head + i * q.row;
        double* out = result.o.data() + b * q.batch + h * q.head + i * q.row;
        const int64_t end = problem.mask == v1::MASK_NONE
                                ? problem.seq_kv
                                : std::clamp<int64_t>(i + CausalOffset(problem) + 1, 0, problem.seq_kv);
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < end; ++j) {
          double dot = 0;
          for (int64_t d = 0; d < problem.head_dim; ++d) dot += query[d] * keys[j * kv.row + d];
          weights[j] = dot * scale;
          most = std::max(most, weights[j]);
        }
        for (int64_t j = 0; j < end; ++j) sum += weights[j] = std::exp(weights[j] - most);
        for (int64_t j = 0; j < end; ++j) {
          for (int64_t d = 0; d < problem.head_dim; ++d) out[d] += weights[j] / sum * values[j * kv.row + d];
        }
        result.lse.push_back(end > 0 ? most + std::log(sum) : -std::numeric_limits<double>::infinity());
      }
    }
  }
  return result;
}

std::string Difference(absl::Span<const float> out, absl::Span<const double> expected, double tolerance) {
  if (out.size() < expected.size()) return absl::StrCat("element ", out.size(), " is missing");
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = out[i];
    if (value == expected[i] || (std::isnan(value) && std::isnan(expected[i]))) continue;  // infinities
    if (std::abs(value - expected[i]) <= tolerance * (1 + std::abs(expected[i]))) continue;
    return absl::StrCat("element ", i, " is ", value, ", expected ", expected[i]);
  }
  return "";
}

std::string Difference(absl::Span<const uint16_t> out, const Problem& problem, const Result& expected) {
  std::vector<float> values(out.size());
  std::transform(out.begin(), out.end(), values.begin(),
                 [&](uint16_t x) { return static_cast<float>(ToDouble(x, problem.dtype)); });
  return Difference(values, expected.o, problem.dtype == v1::DTYPE_BF16 ? 1e-2 : 1e-3);
}

}  // namespace attune::testing
