// Device memory between two red zones: bytes of 0xFF (NaN in every floating type), so that what a kernel reads outside
// its buffer shows in its result, and what it writes there is found.
#ifndef ATTUNE_SERVER_VERIFY_GUARDED_BUFFER_H_
#define ATTUNE_SERVER_VERIFY_GUARDED_BUFFER_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/device.h"

namespace attune::verify {

// Must not outlive its device.
class GuardedBuffer {
 public:
  static constexpr size_t kLeastZone = 16 << 10;
  static constexpr std::byte kZoneByte{0xFF};

  // `name` is for messages: "K", "scratch partial". `zone`: bytes of each zone, a multiple of 256. Of size 0 it has no
  // memory and no zones: kernels are given a null pointer, and there is nothing to read or write beside.
  static absl::StatusOr<GuardedBuffer> Create(device::Device& device, std::string name, size_t size,
                                              size_t zone = kLeastZone);

  // What a kernel is given; a null view when the size is 0.
  device::BufferView view() const { return {size_ == 0 ? nullptr : buffer_.get(), zone_, size_}; }
  // The zone before it, the contents, the zone behind it; null views when the size is 0.
  std::array<device::BufferView, 3> ranges() const;
  const std::string& name() const { return name_; }
  size_t size() const { return size_; }

  // Bytes that are made where they are wanted, those from `first` on: a multiple of 16, in pieces of such but the last.
  using MakePiece = absl::FunctionRef<void(size_t first, absl::Span<std::byte> piece)>;

  // All of these leave the zones alone.
  absl::Status Upload(absl::Span<const std::byte> bytes);
  absl::Status Upload(MakePiece make);
  // As many bytes as size(), from the one at `first` on and those before it after them.
  absl::Status UploadFrom(absl::Span<const std::byte> bytes, size_t first);
  absl::Status Fill(std::byte value);
  absl::Status FillZones();

  // The contents alone, as many bytes as size(), or those from `first` on.
  absl::Status Download(absl::Span<std::byte> contents, size_t first = 0) const;

  // Downloads contents and zones at once. `contents()` of the result is what lies between the zones.
  struct Snapshot {
    std::vector<std::byte> bytes;
    size_t size = 0, zone = 0;

    absl::Span<const std::byte> contents() const {
      return bytes.empty() ? absl::Span<const std::byte>() : absl::MakeConstSpan(bytes).subspan(zone, size);
    }
    // Empty, or which zone has been written to and where.
    std::string Damage() const;
  };
  absl::Status Download(Snapshot& snapshot) const;

  // Whether the contents are these bytes, as many as size(). Downloads them in pieces.
  absl::StatusOr<bool> Holds(absl::Span<const std::byte> bytes) const;
  absl::StatusOr<bool> Holds(MakePiece make) const;

  // Empty, or what has been written outside; downloads the zones alone.
  absl::StatusOr<std::string> Damage() const;

 private:
  GuardedBuffer(device::Device& device, std::string name, size_t size, size_t zone,
                std::unique_ptr<device::Buffer> buffer)
      : device_(&device), name_(std::move(name)), size_(size), zone_(zone), buffer_(std::move(buffer)) {}

  // Whether a piece of the contents is these bytes.
  absl::StatusOr<bool> HoldsAt(size_t first, absl::Span<const std::byte> bytes) const;

  device::Device* device_;
  std::string name_;
  size_t size_, zone_;
  std::unique_ptr<device::Buffer> buffer_;
};

}  // namespace attune::verify

#endif  // ATTUNE_SERVER_VERIFY_GUARDED_BUFFER_H_
