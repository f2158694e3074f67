// Inputs by a counter-based generator (normal_tensor.h): element i of a tensor depends on (seed, distribution, tensor,
// i) alone.
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/verify/cache_inputs.h"
#include "server/verify/case_inputs.h"
#include "server/verify/counting_inputs.h"
#include "server/verify/float8.h"
#include "server/verify/half.h"
#include "server/verify/normal_deviates.h"
#include "server/verify/normal_tensor.h"
#include "server/verify/parallel.h"
#include "server/verify/row_map.h"
#include "server/verify/sequence_inputs.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

constexpr int64_t kGrain = 1 << 16;
// e^100 overflows fp32, e^-100 is 0 there: a sink takes part in the running maximum or shows.
constexpr float kFarLogit = 100;

uint64_t StreamKey(uint64_t seed, Distribution distribution, uint64_t tensor) {
  return Mix(Mix(seed + kCounterStep) + static_cast<uint64_t>(distribution) * 16 + tensor);
}

// Newton's method on the distribution function Phi(x) = erfc(-x / sqrt 2) / 2, for p < 1/2.
double NormalQuantile(double p, double start) {
  double x = start;
  for (int step = 0; step < 20; ++step) {
    const double error = 0.5 * std::erfc(-x * M_SQRT1_2) - p;
    const double change = error * std::sqrt(2 * M_PI) * std::exp(0.5 * x * x);
    x -= change;
    if (std::abs(change) < 1e-7) break;
  }
  return x;
}

// Its exponential is beyond fp32 (e^88.7), which shows a maximum that was not taken.
constexpr float kOverflowingLogit = 100;

// Some rows of `row` elements become those of `from`, as NormalTensor::ChangeRows has it.
template <typename T>
void TakeRows(std::vector<T>& values, const std::vector<T>& from, int64_t row, uint64_t key) {
  constexpr uint64_t kChangedRows = 8;
  const uint64_t rows = values.size() / static_cast<uint64_t>(row);
  if (rows == 0) return;
  const uint64_t surely = Mix(key) % rows;
  for (uint64_t i = 0; i < rows; ++i) {
    if (i != surely && Mix(key + i * kCounterStep) % kChangedRows != 0) continue;
    std::copy_n(from.begin() + static_cast<int64_t>(i) * row, row, values.begin() + static_cast<int64_t>(i) * row);
  }
}

// Each query row becomes a multiple of one key that it sees, so that their logit is about 100 or 20, row by row, and
// all others' small. `key_element(sequence, head_kv, index)` is an element of K, of deviation 1.
template <typename KeyElement>
void PointAtOneKey(const Problem& problem, const RowMap& map, uint64_t key, std::vector<uint16_t>& q,
                   KeyElement key_element) {
  const int64_t group = problem.heads_q / problem.heads_kv;
  const float unit = 1 / std::sqrt(static_cast<float>(problem.head_dim));
  const int64_t rows = map.lengths().total_q() * problem.heads_q;
  ParallelChunks(rows, std::max<int64_t>(1, kGrain / problem.head_dim), [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const RowMap::QueryRow at = map.At(row);
      const VisibleKeys visible = map.Visible(at);
      if (visible.first >= visible.end) continue;
      const uint64_t random = Mix(key + static_cast<uint64_t>(row) * kCounterStep);
      const int64_t column =
          visible.first + static_cast<int64_t>(random % static_cast<uint64_t>(visible.end - visible.first));
      const int64_t from = map.Key(at.sequence, at.head / group, column);
      const float scale = (row % 2 == 0 ? kOverflowingLogit : 20) * unit;
      uint16_t* to = &q[map.Query(at)];
      for (int64_t d = 0; d < problem.head_dim; ++d) {
        to[d] = FromFloat(problem.dtype, scale * key_element(at.sequence, at.head / group, from + d));
      }
    }
  });
}

// NaN in every row of the pages that is no sequence's.
void ForbidRest(const Problem& problem, const RowMap& map, std::vector<uint16_t>& cache) {
  const int64_t row_elements = problem.heads_kv * problem.head_dim;
  std::vector<bool> used(cache.size() / row_elements);
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t row = 0; row < map.lengths().kv[b]; ++row) used[map.Key(b, 0, row) / row_elements] = true;
  }
  const uint16_t nan = FromFloat(problem.dtype, std::numeric_limits<float>::quiet_NaN());
  for (size_t row = 0; row < used.size(); ++row) {
    if (!used[row]) std::fill_n(cache.begin() + static_cast<int64_t>(row) * row_elements, row_elements, nan);
  }
}

std::vector<int32_t> Narrow(const std::vector<int64_t>& tokens) { return {tokens.begin(), tokens.end()}; }

std::vector<float> MakeSinks(const Problem& problem, Distribution distribution, uint64_t key) {
  std::vector<float> sinks(problem.heads_q);
  for (int64_t h = 0; h < problem.heads_q; ++h) {
    sinks[h] = NormalQuantiles()[Mix(key + static_cast<uint64_t>(h)) % kQuantiles];
  }
  if (distribution == Distribution::kCounting) std::fill(sinks.begin(), sinks.end(), CountingSink(problem));
  if (distribution == Distribution::kLargeLogits) {
    sinks.back() = -kFarLogit;
    sinks.front() = kFarLogit;
  }
  return sinks;
}

// K and V of 8 bits, and Q to go with them.
void AddCache(const Problem& problem, Distribution distribution, const RowMap& map, int64_t kv_tokens, float offset,
              float deviation, absl::FunctionRef<uint64_t(uint64_t tensor)> key, bool changed, Tensors& tensors) {
  const std::vector<HeadScale> k_heads = DrawScales(problem, distribution, 0, key(6));
  const std::vector<HeadScale> v_heads = DrawScales(problem, distribution, 1, key(7));
  const auto draw = [&](uint64_t tensor, const std::vector<HeadScale>& heads, float spread) {
    auto codes = DrawElements(problem, map, heads, kv_tokens, offset, spread, key(tensor));
    if (changed) {
      const uint64_t other = Mix(key(tensor));
      TakeRows(codes, DrawElements(problem, map, heads, kv_tokens, offset, spread, other), problem.head_dim,
               Mix(other));
    }
    return codes;
  };
  tensors.k_codes = draw(1, k_heads, deviation);
  tensors.v_codes = draw(2, v_heads, 1);
  tensors.k_scales = ScalesOf(k_heads, deviation);
  tensors.v_scales = ScalesOf(v_heads, 1);
  MultiplyQueries(problem, map, k_heads, tensors.q);
  if (distribution != Distribution::kDominantKey) return;
  PointAtOneKey(problem, map, key(3), tensors.q, [&](int64_t sequence, int64_t head, int64_t element) {
    const HeadScale& of = k_heads[sequence * problem.heads_kv + head];
    return of.gain * of.gain * of.scale * Float8ToFloat(problem.kv_dtype, tensors.k_codes[element]);
  });
}

}  // namespace

const std::vector<float>& NormalQuantiles() {
  static const std::vector<float> quantiles = [] {
    std::vector<float> table(kQuantiles);
    double x = 0;
    for (int i = kQuantiles / 2 - 1; i >= 0; --i) {
      x = NormalQuantile((i + 0.5) / kQuantiles, x);
      table[i] = static_cast<float>(x);
      table[kQuantiles - 1 - i] = static_cast<float>(-x);
    }
    return table;
  }();
  return quantiles;
}

std::vector<Distribution> Distributions() {
  return {Distribution::kNormal, Distribution::kOffsetMean, Distribution::kLargeLogits, Distribution::kDominantKey,
          Distribution::kCounting};
}

absl::string_view Name(Distribution distribution) {
  switch (distribution) {
    case Distribution::kNormal:
      return "normal";
    case Distribution::kOffsetMean:
      return "offset mean";
    case Distribution::kLargeLogits:
      return "large logits";
    case Distribution::kDominantKey:
      return "dominant key";
    case Distribution::kCounting:
      return "counting";
  }
  return "unknown";
}

namespace {

// Draws what the host must hold of Q, K and V of 16 bits, and leaves the rest in `inputs` as it is to be drawn.
void AddElements(const Problem& problem, Distribution distribution, const RowMap& map,
                 absl::FunctionRef<uint64_t(uint64_t tensor)> key, bool holds_all, CaseInputs& inputs) {
  Tensors& host = inputs.host;
  const auto hold = [](std::shared_ptr<const NormalTensor>& drawn, std::vector<uint16_t>& values) {
    values = drawn->Values();
    drawn = nullptr;
  };
  // In pages some rows are nobody's.
  const bool holds_keys = holds_all || problem.page_size > 0;
  const std::shared_ptr<const NormalTensor> k = inputs.k;
  if (holds_keys) hold(inputs.k, host.k);
  if (distribution == Distribution::kCounting) {
    host.q.assign(inputs.q->elements(), 0);
    host.v.assign(inputs.v->elements(), 0);
    inputs.q = inputs.v = nullptr;
    CountKeys(problem, map, key(2), host);
  } else {
    if (holds_all || distribution == Distribution::kDominantKey) hold(inputs.q, host.q);
    if (holds_keys) hold(inputs.v, host.v);
  }
  if (distribution == Distribution::kDominantKey) {
    PointAtOneKey(problem, map, key(3), host.q, [&](int64_t, int64_t, int64_t element) {
      return ToFloat(problem.dtype, holds_keys ? host.k[element] : k->at(element));
    });
  }
  if (problem.page_size > 0) {
    ForbidRest(problem, map, host.k);
    ForbidRest(problem, map, host.v);
  }
}

}  // namespace

CaseInputs PlanInputs(const Problem& problem, Distribution distribution, uint64_t seed, Rows rows, bool holds_all) {
  const float offset = distribution == Distribution::kOffsetMean ? 1.0f : 0.0f;
  // Logits are then N(0, 3^4): of a few thousand keys the largest is near 40.
  const float scale = distribution == Distribution::kLargeLogits ? 3.0f : 1.0f;
  const auto key = [&](uint64_t tensor) { return StreamKey(seed, distribution, tensor); };
  // Q, K or V.
  const auto normal = [&](uint64_t tensor, int64_t elements, float mean, float scale) {
    auto drawn = std::make_shared<NormalTensor>(elements, key(tensor), problem.dtype, mean, scale);
    if (rows == Rows::kChanged) drawn->ChangeRows(problem.head_dim);
    return drawn;
  };
  Lengths lengths = LengthsFor(problem, distribution);
  CaseInputs inputs;
  Tensors& host = inputs.host;
  int64_t kv_tokens = lengths.total_kv();
  if (problem.varlen) host.q_bounds = Narrow(BoundsOf(lengths.q));
  if (problem.page_size > 0) {
    Paging paging = ShufflePages(problem, lengths.kv, key(5));
    kv_tokens = paging.pages * problem.page_size;
    host.page_table = std::move(paging.table);
    host.kv_lengths = Narrow(lengths.kv);
  } else if (problem.varlen) {
    host.kv_bounds = Narrow(BoundsOf(lengths.kv));
  }
  if (problem.sinks) host.sinks = MakeSinks(problem, distribution, key(4));
  inputs.q = normal(0, QueryRows(problem) * problem.head_dim, 0, scale);
  const RowMap map(problem, std::move(lengths), host.page_table);
  if (HasScales(problem)) {
    host.q = inputs.q->Values();
    inputs.q = nullptr;
    AddCache(problem, distribution, map, kv_tokens, offset, scale, key, rows == Rows::kChanged, host);
    if (distribution == Distribution::kCounting) CountKeys(problem, map, key(2), host);
    return inputs;
  }
  const int64_t keys = kv_tokens * problem.heads_kv * problem.head_dim;
  inputs.k = normal(1, keys, offset, scale);
  inputs.v = normal(2, keys, offset, 1);
  AddElements(problem, distribution, map, key, holds_all, inputs);
  return inputs;
}

Tensors OnHost(const CaseInputs& inputs) {
  Tensors tensors = inputs.host;
  if (inputs.q != nullptr) tensors.q = inputs.q->Values();
  if (inputs.k != nullptr) tensors.k = inputs.k->Values();
  if (inputs.v != nullptr) tensors.v = inputs.v->Values();
  return tensors;
}

Tensors MakeInputs(const Problem& problem, Distribution distribution, uint64_t seed) {
  return PlanInputs(problem, distribution, seed, Rows::kOwn, /*holds_all=*/true).host;
}

Tensors MakeChangedInputs(const Problem& problem, Distribution distribution, uint64_t seed) {
  return PlanInputs(problem, distribution, seed, Rows::kChanged, /*holds_all=*/true).host;
}

}  // namespace attune::verify
