// Attention in fp64 by its definition: all logits of a row, their maximum, the weights, the weighted sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "server/verify/float8.h"
#include "server/verify/half.h"
#include "server/verify/parallel.h"
#include "server/verify/row_map.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

std::vector<double> Widen(v1::DType dtype, const std::vector<uint16_t>& values) {
  std::vector<double> wide(values.size());
  std::transform(values.begin(), values.end(), wide.begin(), [dtype](uint16_t bits) { return ToFloat(dtype, bits); });
  return wide;
}

// K or V of 8 bits: element * scale.
std::vector<double> Dequantised(const Problem& problem, const RowMap& map, const std::vector<uint8_t>& codes,
                                const std::vector<float>& scales) {
  std::vector<double> wide(codes.size());
  for (int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    for (int64_t head = 0; head < problem.heads_kv; ++head) {
      const double scale = scales[sequence * problem.heads_kv + head];
      for (int64_t row = 0; row < map.lengths().kv[sequence]; ++row) {
        const int64_t first = map.Key(sequence, head, row);
        for (int64_t i = first; i < first + problem.head_dim; ++i) {
          wide[i] = scale * double{Float8ToFloat(problem.kv_dtype, codes[i])};
        }
      }
    }
  }
  return wide;
}

// The operands in fp64 and where their rows are.
struct Operands {
  Problem problem;
  RowMap map;
  std::vector<double> q, k, v;
  absl::Span<const float> sinks;
};

// Writes the row of O and returns its log-sum-exp. `weights` has room for the longest sequence's keys.
double AttendRow(const Operands& in, const RowMap::QueryRow& at, std::vector<double>& weights, float* o) {
  const Problem& problem = in.problem;
  const int64_t dim = problem.head_dim;
  const int64_t head_kv = at.head / (problem.heads_q / problem.heads_kv);
  const VisibleKeys visible = in.map.Visible(at);
  const double* q = &in.q[in.map.Query(at)];
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const double sink = problem.sinks ? in.sinks[at.head] : -std::numeric_limits<double>::infinity();
  double largest = sink;
  for (int64_t column = visible.first; column < visible.end; ++column) {
    const double* k = &in.k[in.map.Key(at.sequence, head_kv, column)];
    double logit = 0;
    for (int64_t d = 0; d < dim; ++d) logit += q[d] * k[d];
    logit *= scale;
    if (problem.softcap > 0) logit = problem.softcap * std::tanh(logit / problem.softcap);
    weights[column] = logit;
    largest = std::max(largest, logit);
  }
  const double base = largest == -std::numeric_limits<double>::infinity() ? 0 : largest;  // -inf - -inf is NaN
  double sum = std::exp(sink - base);
  std::vector<double> out(dim, 0.0);
  for (int64_t column = visible.first; column < visible.end; ++column) {
    const double* v = &in.v[in.map.Key(at.sequence, head_kv, column)];
    const double weight = std::exp(weights[column] - base);
    sum += weight;
    for (int64_t d = 0; d < dim; ++d) out[d] += weight * v[d];
  }
  for (int64_t d = 0; d < dim; ++d) o[d] = sum == 0 ? 0.0f : static_cast<float>(out[d] / sum);
  return largest + std::log(sum);
}

std::vector<int64_t> Differences(const std::vector<int32_t>& bounds) {
  std::vector<int64_t> lengths(bounds.size());
  std::adjacent_difference(bounds.begin(), bounds.end(), lengths.begin());
  lengths.erase(lengths.begin());
  return lengths;
}

Lengths LengthsOf(const Problem& problem, const Tensors& inputs) {
  Lengths lengths = SequenceLengths(problem);
  if (!inputs.q_bounds.empty()) lengths.q = Differences(inputs.q_bounds);
  if (!inputs.kv_bounds.empty()) lengths.kv = Differences(inputs.kv_bounds);
  if (!inputs.kv_lengths.empty()) lengths.kv.assign(inputs.kv_lengths.begin(), inputs.kv_lengths.end());
  return lengths;
}

}  // namespace

HostResult HostReference(const Problem& problem, const Tensors& inputs) {
  const RowMap map(problem, LengthsOf(problem, inputs), inputs.page_table);
  const bool scaled = HasScales(problem);
  const Operands in = {
      problem,
      map,
      Widen(problem.dtype, inputs.q),
      scaled ? Dequantised(problem, map, inputs.k_codes, inputs.k_scales) : Widen(problem.dtype, inputs.k),
      scaled ? Dequantised(problem, map, inputs.v_codes, inputs.v_scales) : Widen(problem.dtype, inputs.v),
      inputs.sinks};
  const int64_t rows = in.map.lengths().total_q() * problem.heads_q;
  HostResult result;
  result.o.resize(rows * problem.head_dim);
  result.lse.resize(rows);
  const int64_t row_work = problem.seq_kv * problem.head_dim;
  ParallelChunks(rows, std::max<int64_t>(1, (1 << 16) / row_work), [&](int64_t, int64_t begin, int64_t end) {
    std::vector<double> weights(problem.seq_kv);
    for (int64_t row = begin; row < end; ++row) {
      const RowMap::QueryRow at = in.map.At(row);
      result.lse[in.map.Lse(at)] = static_cast<float>(AttendRow(in, at, weights, &result.o[in.map.Query(at)]));
    }
  });
  return result;
}

}  // namespace attune::verify
