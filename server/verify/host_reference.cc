// Attention in fp64 by its definition: all logits of a row, their maximum, the weights, the weighted sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "server/verify/half.h"
#include "server/verify/parallel.h"
#include "server/verify/tensor_shape.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

std::vector<double> Widen(v1::DType dtype, const std::vector<uint16_t>& values) {
  std::vector<double> wide(values.size());
  std::transform(values.begin(), values.end(), wide.begin(), [dtype](uint16_t bits) { return ToFloat(dtype, bits); });
  return wide;
}

struct Row {
  const double* q;
  const double* k;  // rows `stride` elements apart
  const double* v;
  int64_t stride;
  VisibleKeys visible;
};

// Writes the row of O and returns its log-sum-exp.
double AttendRow(const Problem& problem, const Row& row, std::vector<double>& weights, float* o) {
  const int64_t dim = problem.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  std::fill(o, o + dim, 0.0f);
  if (row.visible.first >= row.visible.end) return -std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t column = row.visible.first; column < row.visible.end; ++column) {
    const double* k = row.k + column * row.stride;
    double logit = 0;
    for (int64_t d = 0; d < dim; ++d) logit += row.q[d] * k[d];
    logit *= scale;
    if (problem.softcap > 0) logit = problem.softcap * std::tanh(logit / problem.softcap);
    weights[column] = logit;
    largest = std::max(largest, logit);
  }
  double sum = 0;
  std::vector<double> out(dim, 0.0);
  for (int64_t column = row.visible.first; column < row.visible.end; ++column) {
    const double* v = row.v + column * row.stride;
    const double weight = std::exp(weights[column] - largest);
    sum += weight;
    for (int64_t d = 0; d < dim; ++d) out[d] += weight * v[d];
  }
  for (int64_t d = 0; d < dim; ++d) o[d] = static_cast<float>(out[d] / sum);
  return largest + std::log(sum);
}

}  // namespace

HostResult HostReference(const Problem& problem, const Tensors& inputs) {
  const std::vector<double> q = Widen(problem.dtype, inputs.q);
  const std::vector<double> k = Widen(problem.dtype, inputs.k);
  const std::vector<double> v = Widen(problem.dtype, inputs.v);
  const TensorShape query_shape = QueryShape(problem);
  const TensorShape key_shape = KeyShape(problem);
  const int64_t group = problem.heads_q / problem.heads_kv;
  const int64_t stride = problem.layout == v1::LAYOUT_BSHD ? problem.heads_kv * problem.head_dim : problem.head_dim;
  const int64_t rows = problem.batch * problem.heads_q * problem.seq_q;

  HostResult result;
  result.o.resize(query_shape.elements());
  result.lse.resize(rows);
  const int64_t row_work = problem.seq_kv * problem.head_dim;
  ParallelChunks(rows, std::max<int64_t>(1, (1 << 16) / row_work), [&](int64_t, int64_t begin, int64_t end) {
    std::vector<double> weights(problem.seq_kv);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t s = row % problem.seq_q;
      const int64_t h = row / problem.seq_q % problem.heads_q;
      const int64_t b = row / problem.seq_q / problem.heads_q;
      const int64_t keys = key_shape.Row(b, h / group, 0);
      const int64_t query = query_shape.Row(b, h, s);
      const Row in = {&q[query], &k[keys], &v[keys], stride, VisibleTo(problem, s)};
      result.lse[row] = static_cast<float>(AttendRow(problem, in, weights, &result.o[query]));
    }
  });
  return result;
}

}  // namespace attune::verify
