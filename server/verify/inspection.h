// What is known on the host of memory that lies on the device, and whether the device's inspector finds it there.
//
// An inspector is believed when it says that all is well, of memory whose digest is held here under a key that no
// kernel has seen. Whatever else it says only has the host look for itself: a verdict is always the host's.
#ifndef ATTUNE_SERVER_VERIFY_INSPECTION_H_
#define ATTUNE_SERVER_VERIFY_INSPECTION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/device/inspector.h"

namespace attune::verify {

class Inspection {
 public:
  // `inspector` outlives it. The key is drawn here.
  explicit Inspection(device::Inspector& inspector);

  device::Inspector& inspector() { return *inspector_; }

  absl::StatusOr<std::vector<uint64_t>> Digests(absl::Span<const device::BufferView> ranges);
  absl::StatusOr<uint64_t> DigestOf(const device::BufferView& range);
  // Of bytes that the host has.
  uint64_t DigestOf(absl::Span<const std::byte> bytes) const;

  // Memory, and what its digest must be.
  using Expected = std::vector<std::pair<device::BufferView, uint64_t>>;
  absl::StatusOr<bool> Finds(const Expected& expected);
  // Of so many bytes of one value, as red zones have.
  uint64_t DigestOf(std::byte value, size_t bytes);

 private:
  device::Inspector* inspector_;
  uint64_t key_;
  std::map<std::pair<std::byte, size_t>, uint64_t> uniform_;
};

// Internal unless the device's inspector does on small problems, bit by bit, what the host's code does. The device has
// one.
absl::Status CheckInspector(device::Device& device);

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_INSPECTION_H_
