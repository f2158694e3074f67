#include "server/verify/cache_inputs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "server/verify/float8.h"
#include "server/verify/half.h"
#include "server/verify/normal_deviates.h"
#include "server/verify/parallel.h"

namespace attune::verify {
namespace {

constexpr int64_t kGrain = 1 << 16;
constexpr int kLeastExponent = -15;
constexpr int kExponents = 21;
// The next of evenly spread numbers: successive multiples, taken modulo 1, fall into the largest gaps.
constexpr double kGoldenRatio = 0.6180339887498949;

// Beyond a deviation of about 1 in 3.5 of the largest element, e4m3's saturate too often to look like a normal
// distribution.
float LargestSpread(v1::DType kv_dtype) { return kv_dtype == v1::DTYPE_E5M2 ? 0x1p14f : 0x1p7f; }

double Fraction(double x) { return x - std::floor(x); }

// Elements by the 16 bits that choose a quantile.
using Table = std::vector<uint8_t>;

Table MakeTable(v1::DType kv_dtype, float offset, float deviation, float spread) {
  Table table(kQuantiles);
  const std::vector<float>& quantiles = NormalQuantiles();
  const float unit = spread / deviation;
  for (int i = 0; i < kQuantiles; ++i) table[i] = FloatToFloat8(kv_dtype, unit * (offset + deviation * quantiles[i]));
  return table;
}

}  // namespace

std::vector<HeadScale> DrawScales(const Problem& problem, Distribution distribution, uint64_t tensor, uint64_t key) {
  const double first =
      (2 * static_cast<double>(distribution) + static_cast<double>(tensor) + 0x1p-64 * static_cast<double>(Mix(key))) /
      (2 * static_cast<double>(Distributions().size()));
  std::vector<HeadScale> heads(problem.batch * problem.heads_kv);
  for (size_t i = 0; i < heads.size(); ++i) {
    const double place = Fraction(first + static_cast<double>(i) * kGoldenRatio);
    const float octave = std::ldexp(1.0f, kLeastExponent + static_cast<int>(kExponents * place));
    const auto random = static_cast<double>(Mix(key + (i + 1) * kCounterStep));
    heads[i].scale = octave * static_cast<float>(0.8 + 0.4 * 0x1p-64 * random);
    heads[i].spread = std::min(LargestSpread(problem.kv_dtype), 1 / octave);
    heads[i].gain = 1 / (octave * heads[i].spread);
  }
  return heads;
}

std::vector<uint8_t> DrawElements(const Problem& problem, const RowMap& map, const std::vector<HeadScale>& heads,
                                  int64_t rows, float offset, float deviation, uint64_t key) {
  std::map<float, Table> tables;
  for (const HeadScale& head : heads) {
    if (!tables.contains(head.spread)) {
      tables.emplace(head.spread, MakeTable(problem.kv_dtype, offset, deviation, head.spread));
    }
  }
  std::vector<uint8_t> elements(rows * problem.heads_kv * problem.head_dim, kFloat8NaN);
  const int64_t grain = std::max<int64_t>(1, kGrain / problem.head_dim);
  for (int64_t sequence = 0; sequence < problem.batch; ++sequence) {
    const int64_t length = map.lengths().kv[sequence];
    ParallelChunks(problem.heads_kv * length, grain, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t head = i / length;
        const Table& table = tables.at(heads[sequence * problem.heads_kv + head].spread);
        const int64_t start = map.Key(sequence, head, i % length);
        const uint64_t row = Mix(key + static_cast<uint64_t>(start) * kCounterStep);
        for (int64_t d = 0; d < problem.head_dim; d += 4) {
          uint64_t bits = Mix(row + static_cast<uint64_t>(d) * kCounterStep);
          const int64_t last = std::min(problem.head_dim, d + 4);
          for (int64_t e = d; e < last; ++e, bits >>= 16) elements[start + e] = table[bits & 0xffff];
        }
      }
    });
  }
  return elements;
}

std::vector<float> ScalesOf(const std::vector<HeadScale>& heads, float deviation) {
  std::vector<float> scales(heads.size());
  std::transform(heads.begin(), heads.end(), scales.begin(),
                 [deviation](const HeadScale& head) { return head.scale * deviation; });
  return scales;
}

void MultiplyQueries(const Problem& problem, const RowMap& map, const std::vector<HeadScale>& heads,
                     std::vector<uint16_t>& q) {
  const int64_t group = problem.heads_q / problem.heads_kv;
  const int64_t rows = map.lengths().total_q() * problem.heads_q;
  ParallelChunks(rows, std::max<int64_t>(1, kGrain / problem.head_dim), [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const RowMap::QueryRow at = map.At(row);
      const float gain = heads[at.sequence * problem.heads_kv + at.head / group].gain;
      uint16_t* to = &q[map.Query(at)];
      for (int64_t d = 0; d < problem.head_dim; ++d) {
        to[d] = FromFloat(problem.dtype, gain * ToFloat(problem.dtype, to[d]));
      }
    }
  });
}

}  // namespace attune::verify
