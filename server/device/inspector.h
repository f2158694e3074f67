// Work on device memory where it lies: what checking looks at, copies and draws need not cross the bus.
//
// A kernel that is checked may have written anywhere on the device, so whoever asks holds on the host what the answers
// must be (verify/inspection.h), and each answer counts up from a number that the host has drawn for this call: memory
// that nobody has written to is no answer.
#ifndef ATTUNE_SERVER_DEVICE_INSPECTOR_H_
#define ATTUNE_SERVER_DEVICE_INSPECTOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace attune::device {

struct BufferView;

// Belongs to a device and to its thread. Calls wait until the device has answered; Draw and Copy only queue their work.
class Inspector {
 public:
  virtual ~Inspector() = default;

  // A digest of each range's bytes under `key`, as verify/digest.h has it. A range of no bytes needs no buffer.
  virtual absl::StatusOr<std::vector<uint64_t>> Digests(absl::Span<const BufferView> ranges, uint64_t key) = 0;

  enum class Element { kF16, kBf16, kF32 };
  struct Tally {
    int64_t wrong = 0;  // not |out - reference| <= absolute + relative * |reference|, each operation rounded to fp32
    float max_error = 0;
    float max_reference = 0;  // of magnitudes; NaN counts in neither
  };
  // `reference` has fp32 elements, as many as `out`. Both begin at multiples of 16 bytes.
  virtual absl::StatusOr<Tally> Compare(const BufferView& out, Element type, const BufferView& reference,
                                        float absolute, float relative) = 0;

  // Elements of 16 bits: the four from 4 i on are table[] of the four 16-bit parts, lowest first, of
  // Mix(key + i * kCounterStep) (verify/normal_deviates.h).
  struct Drawing {
    absl::Span<const uint16_t> table;  // 65,536
    uint64_t key = 0;
    // Above 0, a multiple of 4: rows of so many elements. Row r is of the key `other` instead when r is `surely` or
    // Mix(rows + r * kCounterStep) is a multiple of 8.
    int64_t row = 0;
    uint64_t other = 0, rows = 0, surely = 0;
  };
  virtual absl::Status Draw(const BufferView& to, const Drawing& drawing) = 0;

  // As many bytes as `to` has.
  virtual absl::Status Copy(const BufferView& to, const BufferView& from) = 0;
};

}  // namespace attune::device

#endif  // ATTUNE_SERVER_DEVICE_INSPECTOR_H_
