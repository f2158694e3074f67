#include "server/device/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace attune::device::cuda {
namespace {

constexpr size_t kPiece = 8 << 20;
// Below it the driver's own copy has returned before two threads have begun.
constexpr size_t kLeast = 256 << 10;
constexpr size_t kLeastOfAThread = 1 << 20;
constexpr size_t kMostThreads = 4;

void CopyByThreads(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t cores = std::max<size_t>(std::thread::hardware_concurrency(), 1);
  const size_t parts = std::clamp<size_t>(bytes / kLeastOfAThread, 1, std::min(kMostThreads, cores));
  const auto copy = [=](size_t part) {
    const size_t begin = bytes * part / parts;
    std::memcpy(to + begin, from + begin, bytes * (part + 1) / parts - begin);
  };
  std::vector<std::thread> threads;
  for (size_t part = 1; part < parts; ++part) threads.emplace_back(copy, part);
  copy(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

bool Staging::Ready() {
  if (!asked_) {
    asked_ = true;
    for (HostMemory& piece : pieces_) {
      void* memory = nullptr;
      if (api_.MemHostAlloc(&memory, kPiece, kHostAllocDeviceMapped) != kSuccess) break;
      piece = HostMemory(api_, memory);
    }
  }
  return static_cast<bool>(pieces_[1]);
}

absl::Status Staging::Upload(DevicePointer to, absl::Span<const std::byte> from) {
  if (from.size() < kLeast || !Ready()) {
    ATTUNE_CUDA_CALL(api_, MemcpyHtoDAsync, to, from.data(), from.size(), stream_);
    ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
    return absl::OkStatus();
  }
  for (size_t done = 0, number = 0; done < from.size(); done += kPiece, ++number) {
    const size_t bytes = std::min(kPiece, from.size() - done);
    CopyByThreads(piece(number), from.data() + done, bytes);
    // The piece before it has arrived, and may be filled again.
    ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
    ATTUNE_CUDA_CALL(api_, MemcpyHtoDAsync, to + done, piece(number), bytes, stream_);
  }
  ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
  return absl::OkStatus();
}

absl::Status Staging::Download(DevicePointer from, absl::Span<std::byte> to) {
  if (to.size() < kLeast || !Ready()) {
    ATTUNE_CUDA_CALL(api_, MemcpyDtoHAsync, to.data(), from, to.size(), stream_);
    ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
    return absl::OkStatus();
  }
  const auto bytes_at = [&](size_t at) { return std::min(kPiece, to.size() - at); };
  ATTUNE_CUDA_CALL(api_, MemcpyDtoHAsync, piece(0), from, bytes_at(0), stream_);
  for (size_t done = 0, number = 0; done < to.size(); done += kPiece, ++number) {
    ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
    if (const size_t next = done + kPiece; next < to.size()) {
      ATTUNE_CUDA_CALL(api_, MemcpyDtoHAsync, piece(number + 1), from + next, bytes_at(next), stream_);
    }
    CopyByThreads(to.data() + done, piece(number), bytes_at(done));
  }
  return absl::OkStatus();
}

}  // namespace attune::device::cuda
