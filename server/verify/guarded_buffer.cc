#include "server/verify/guarded_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/verify/parallel.h"

namespace attune::verify {
namespace {

constexpr std::byte kZoneByte = GuardedBuffer::kZoneByte;
// Small enough to stay in a core's cache beside what it is compared with.
constexpr size_t kPiece = 8 << 20;

// At least `size` bytes of a piece, kept for the thread's next call: to zero them anew would take as long as to
// compare.
absl::Span<std::byte> Scratch(std::vector<std::byte>& kept, size_t size) {
  if (kept.size() < size) kept.resize(std::max(size, kPiece));
  return absl::MakeSpan(kept).first(size);
}

// Bytes before the first that is not the zone's, or its size.
size_t IntactBytes(absl::Span<const std::byte> zone) {
  if (zone.empty()) return 0;
  // All equal their neighbour: faster than byte by byte.
  if (zone.front() == kZoneByte && std::memcmp(zone.data(), zone.data() + 1, zone.size() - 1) == 0) return zone.size();
  return std::find_if(zone.begin(), zone.end(), [](std::byte byte) { return byte != kZoneByte; }) - zone.begin();
}

std::string DescribeDamage(absl::Span<const std::byte> before, absl::Span<const std::byte> after) {
  if (const size_t intact = IntactBytes(after); intact < after.size()) {
    return absl::StrCat("written to ", intact, " bytes past its end");
  }
  if (const size_t intact = IntactBytes(before); intact < before.size()) {
    return absl::StrCat("written to ", before.size() - intact, " bytes before its start");
  }
  return "";
}

}  // namespace

absl::StatusOr<GuardedBuffer> GuardedBuffer::Create(device::Device& device, std::string name, size_t size,
                                                    size_t zone) {
  if (size == 0) return GuardedBuffer(device, std::move(name), 0, 0, nullptr);
  absl::StatusOr<std::unique_ptr<device::Buffer>> memory = device.Allocate(size + 2 * zone);
  if (!memory.ok()) return memory.status();
  GuardedBuffer buffer(device, std::move(name), size, zone, *std::move(memory));
  if (absl::Status status = buffer.FillZones(); !status.ok()) return status;
  return buffer;
}

absl::Status GuardedBuffer::Upload(absl::Span<const std::byte> bytes) {
  return size_ == 0 ? absl::OkStatus() : device_->Upload(*buffer_, zone_, bytes);
}

absl::Status GuardedBuffer::Upload(MakePiece make) {
  std::vector<std::byte> piece(std::min(size_, kPiece));
  for (size_t done = 0; done < size_; done += piece.size()) {
    const absl::Span<std::byte> from = absl::MakeSpan(piece).subspan(0, std::min(piece.size(), size_ - done));
    make(done, from);
    if (absl::Status status = device_->Upload(*buffer_, zone_ + done, from); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::array<device::BufferView, 3> GuardedBuffer::ranges() const {
  return {{{buffer_.get(), 0, zone_}, {buffer_.get(), zone_, size_}, {buffer_.get(), zone_ + size_, zone_}}};
}

absl::Status GuardedBuffer::UploadFrom(absl::Span<const std::byte> bytes, size_t first) {
  if (size_ == 0) return absl::OkStatus();
  absl::Status status = device_->Upload(*buffer_, zone_, bytes.subspan(first));
  status.Update(device_->Upload(*buffer_, zone_ + bytes.size() - first, bytes.first(first)));
  return status;
}

absl::Status GuardedBuffer::Fill(std::byte value) {
  return size_ == 0 ? absl::OkStatus() : device_->Fill(*buffer_, zone_, size_, value);
}

absl::Status GuardedBuffer::FillZones() {
  if (size_ == 0) return absl::OkStatus();
  if (absl::Status status = device_->Fill(*buffer_, 0, zone_, kZoneByte); !status.ok()) return status;
  return device_->Fill(*buffer_, zone_ + size_, zone_, kZoneByte);
}

std::string GuardedBuffer::Snapshot::Damage() const {
  const absl::Span<const std::byte> all = bytes;
  return DescribeDamage(all.subspan(0, zone), all.subspan(zone + size));
}

absl::Status GuardedBuffer::Download(Snapshot& snapshot) const {
  snapshot.size = size_;
  snapshot.zone = zone_;
  snapshot.bytes.resize(size_ + 2 * zone_);
  if (size_ == 0) return absl::OkStatus();
  return device_->Download(*buffer_, 0, absl::MakeSpan(snapshot.bytes));
}

absl::Status GuardedBuffer::Download(absl::Span<std::byte> contents, size_t first) const {
  if (size_ == 0) return absl::OkStatus();
  return device_->Download(*buffer_, zone_ + first, contents);
}

absl::StatusOr<bool> GuardedBuffer::Holds(MakePiece make) const {
  static thread_local std::vector<std::byte> kept;
  for (size_t done = 0; done < size_; done += kPiece) {
    const absl::Span<std::byte> expected = Scratch(kept, std::min(kPiece, size_ - done));
    make(done, expected);
    const absl::StatusOr<bool> same = HoldsAt(done, expected);
    if (!same.ok() || !*same) return same;
  }
  return true;
}

absl::StatusOr<bool> GuardedBuffer::Holds(absl::Span<const std::byte> bytes) const {
  for (size_t done = 0; done < size_; done += kPiece) {
    const absl::StatusOr<bool> same = HoldsAt(done, bytes.subspan(done, std::min(kPiece, size_ - done)));
    if (!same.ok() || !*same) return same;
  }
  return true;
}

absl::StatusOr<bool> GuardedBuffer::HoldsAt(size_t first, absl::Span<const std::byte> bytes) const {
  static thread_local std::vector<std::byte> kept;
  const absl::Span<std::byte> held = Scratch(kept, bytes.size());
  if (absl::Status status = device_->Download(*buffer_, zone_ + first, held); !status.ok()) return status;
  return SameBytes(held, bytes);
}

absl::StatusOr<std::string> GuardedBuffer::Damage() const {
  if (size_ == 0) return std::string();
  std::vector<std::byte> before(zone_);
  std::vector<std::byte> after(zone_);
  if (absl::Status status = device_->Download(*buffer_, 0, absl::MakeSpan(before)); !status.ok()) return status;
  if (absl::Status status = device_->Download(*buffer_, zone_ + size_, absl::MakeSpan(after)); !status.ok()) {
    return status;
  }
  return DescribeDamage(before, after);
}

}  // namespace attune::verify
