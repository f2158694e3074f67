// A tensor of normal deviates as what it takes to draw it: whole or in parts, on the host or on the device.
#ifndef ATTUNE_SERVER_VERIFY_NORMAL_TENSOR_H_
#define ATTUNE_SERVER_VERIFY_NORMAL_TENSOR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "attune/v1/problem.pb.h"
#include "server/device/inspector.h"
#include "server/verify/normal_deviates.h"

namespace attune::verify {

class NormalTensor {
 public:
  NormalTensor(int64_t elements, uint64_t key, v1::DType dtype, float mean, float scale);

  // About an eighth of the rows of `row` elements, at least one of them, become those of another key.
  void ChangeRows(int64_t row);

  int64_t elements() const { return elements_; }
  uint16_t at(int64_t element) const;
  // Elements from `first` on, which is a multiple of 4.
  void Fill(int64_t first, absl::Span<uint16_t> values) const;
  std::vector<uint16_t> Values() const;

  // Whether `drawing` says all of it: what a device cannot draw is drawn on the host.
  bool HasDrawing() const { return row_ % 4 == 0; }
  device::Inspector::Drawing drawing() const;

 private:
  uint64_t KeyOf(int64_t element) const;

  std::vector<uint16_t> table_;  // quantiles, scaled and rounded
  int64_t elements_;
  uint64_t key_;
  int64_t row_ = 0;  // 0: no row is changed
  uint64_t other_ = 0, rows_ = 0, surely_ = 0;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_NORMAL_TENSOR_H_
