// Counter-based: element i depends on the key and i alone, so that threads, and devices, share the work and a seed
// always means the same data.
//
// A normal deviate costs a table look-up: 16 random bits choose among 65,536 quantiles of N(0, 1) (largest 4.2),
// already scaled and rounded to the dtype.
#include "server/verify/normal_tensor.h"

#include <algorithm>

#include "server/verify/half.h"
#include "server/verify/parallel.h"

namespace attune::verify {
namespace {

// Groups of four elements: a quarter of a millisecond, many times what a thread takes to begin.
constexpr int64_t kGrain = 1 << 15;
// A row in so many is changed.
constexpr uint64_t kChangedRows = 8;

}  // namespace

NormalTensor::NormalTensor(int64_t elements, uint64_t key, v1::DType dtype, float mean, float scale)
    : table_(kQuantiles), elements_(elements), key_(key) {
  const std::vector<float>& quantiles = NormalQuantiles();
  for (int i = 0; i < kQuantiles; ++i) table_[i] = FromFloat(dtype, mean + scale * quantiles[i]);
}

void NormalTensor::ChangeRows(int64_t row) {
  other_ = Mix(key_);
  rows_ = Mix(other_);
  const uint64_t rows = static_cast<uint64_t>(elements_ / row);
  if (rows == 0) return;
  surely_ = Mix(rows_) % rows;
  row_ = row;
}

uint64_t NormalTensor::KeyOf(int64_t element) const {
  if (row_ == 0) return key_;
  const uint64_t row = static_cast<uint64_t>(element / row_);
  return row == surely_ || Mix(rows_ + row * kCounterStep) % kChangedRows == 0 ? other_ : key_;
}

uint16_t NormalTensor::at(int64_t element) const {
  const uint64_t bits = Mix(KeyOf(element) + static_cast<uint64_t>(element / 4) * kCounterStep);
  return table_[bits >> 16 * (element % 4) & 0xffff];
}

void NormalTensor::Fill(int64_t first, absl::Span<uint16_t> values) const {
  const int64_t count = static_cast<int64_t>(values.size());
  const int64_t first_group = first / 4;
  ParallelChunks((count + 3) / 4, kGrain, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t last = std::min<int64_t>(count, group * 4 + 4);
      if (row_ % 4 != 0) {  // a group may lie in two rows
        for (int64_t i = group * 4; i < last; ++i) values[i] = at(first + i);
        continue;
      }
      uint64_t bits = Mix(KeyOf(first + group * 4) + static_cast<uint64_t>(first_group + group) * kCounterStep);
      for (int64_t i = group * 4; i < last; ++i, bits >>= 16) values[i] = table_[bits & 0xffff];
    }
  });
}

std::vector<uint16_t> NormalTensor::Values() const {
  std::vector<uint16_t> values(elements_);
  Fill(0, absl::MakeSpan(values));
  return values;
}

device::Inspector::Drawing NormalTensor::drawing() const {
  device::Inspector::Drawing drawing;
  drawing.table = table_;
  drawing.key = key_;
  drawing.row = row_;
  drawing.other = other_;
  drawing.rows = rows_;
  drawing.surely = surely_;
  return drawing;
}

}  // namespace attune::verify
