#include "server/verify/counting_inputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "server/verify/float8.h"
#include "server/verify/half.h"
#include "server/verify/normal_deviates.h"
#include "server/verify/parallel.h"

namespace attune::verify {
namespace {

// At most so many keys count in a column, so that one more or less is far more than the dtype's tolerance of the sum.
int64_t KeysOfAColumn(v1::DType dtype) { return dtype == v1::DTYPE_BF16 ? 40 : 160; }
constexpr int64_t kKeysOfAnEnd = 8;
constexpr int64_t kMostSplits = 64;
// Of 8 bits: exact in e4m3 and in e5m2.
constexpr float kCode = 64;

// Of the keys of a sequence those that count whatever is drawn: `longest` is what kernels may reckon splits by.
std::vector<bool> Ends(int64_t keys, int64_t longest) {
  std::vector<bool> ends(keys);
  for (int64_t i = 0; i < std::min(kKeysOfAnEnd, keys); ++i) ends[i] = ends[keys - 1 - i] = true;
  for (const int64_t whole : {keys, longest}) {
    for (int64_t splits = 2; splits <= kMostSplits; splits *= 2) {
      for (int64_t tile = 16; tile <= 128; tile *= 2) {
        const int64_t split = (whole + tile * splits - 1) / (tile * splits) * tile;
        for (int64_t end = split; end < keys; end += split) ends[end - 1] = ends[end] = true;
      }
    }
  }
  return ends;
}

// A key's part of O is about 1/8 where a row sees all: far above what is tolerated of 0, and f16 holds the sums.
float ValueOf(const Problem& problem) {
  const float value = std::exp2(std::ceil(std::log2(static_cast<float>(problem.seq_kv)))) / 8;
  return std::clamp(value, 1.0f, problem.dtype == v1::DTYPE_F16 ? 0x1p15f : 0x1p24f);
}

template <typename T>
void OneColumnARow(const Problem& problem, const RowMap& map, uint64_t key, T zero, T value, std::vector<T>& v) {
  const int64_t dim = problem.head_dim;
  const int64_t most = KeysOfAColumn(problem.dtype) * dim;
  ParallelChunks(problem.batch * problem.heads_kv, 1, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const int64_t b = head / problem.heads_kv;
      const int64_t keys = map.lengths().kv[b];
      const bool all = keys <= most;
      const std::vector<bool> ends = all ? std::vector<bool>(keys, true) : Ends(keys, problem.seq_kv);
      const uint64_t one_in = static_cast<uint64_t>(keys / most + 1);
      for (int64_t row = 0; row < keys; ++row) {
        const int64_t start = map.Key(b, head % problem.heads_kv, row);
        std::fill_n(v.begin() + start, dim, zero);
        const uint64_t random = Mix(key + static_cast<uint64_t>(start) * kCounterStep);
        if (ends[row] || random % one_in == 0) v[start + static_cast<int64_t>(random >> 32) % dim] = value;
      }
    }
  });
}

}  // namespace

void CountKeys(const Problem& problem, const RowMap& map, uint64_t key, Tensors& tensors) {
  std::fill(tensors.q.begin(), tensors.q.end(), uint16_t{0});
  const float value = ValueOf(problem);
  if (HasScales(problem)) {
    OneColumnARow(problem, map, key, FloatToFloat8(problem.kv_dtype, 0), FloatToFloat8(problem.kv_dtype, kCode),
                  tensors.v_codes);
    std::fill(tensors.v_scales.begin(), tensors.v_scales.end(), value / kCode);
  } else {
    OneColumnARow(problem, map, key, FromFloat(problem.dtype, 0), FromFloat(problem.dtype, value), tensors.v);
  }
}

float CountingSink(const Problem& problem) {
  const int64_t keys = problem.mask == v1::MASK_WINDOW ? std::min(problem.window, problem.seq_kv) : problem.seq_kv;
  return std::log(static_cast<float>(keys));
}

}  // namespace attune::verify
