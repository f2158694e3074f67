#include "client/cpp/launch/scratch.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::launch {
namespace {

using cuda::kSuccess;

constexpr size_t kSmallestChunk = size_t{1} << 16;
constexpr size_t kMostCaptures = 64;  // that are remembered at once

// Another stream in each thread.
bool IsPerThread(Stream stream) { return stream == reinterpret_cast<Stream>(2); }  // CU_STREAM_PER_THREAD
// CU_STREAM_LEGACY is the default stream by another name.
bool IsLegacy(Stream stream) { return stream == reinterpret_cast<Stream>(1); }

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t number = next++;
  return number;
}

// Powers of two: all that a stream has outgrown is together smaller than what it has.
size_t Rounded(size_t bytes) { return std::max(kSmallestChunk, std::bit_ceil(bytes)); }

}  // namespace

// Memory of a graph; shared with the driver, which says when the graph is gone.
struct Scratch::GraphChunk {
  Arena::Chunk chunk;
  std::atomic<bool> in_use{true};
};

struct Scratch::Capture {
  uint64_t id = 0;
  Stream stream = nullptr;
  Arena arena;
};

Scratch::Scratch(std::shared_ptr<const Gpu> gpu, ScratchAllocator* allocator)
    : gpu_(std::move(gpu)), allocator_(allocator) {}

Scratch::~Scratch() {
  for (const Allocation& allocation : allocations_) {
    allocator_->Free(allocation.chunk.address, allocation.chunk.bytes, allocation.stream);
  }
  for (const std::shared_ptr<GraphChunk>& chunk : graph_chunks_) {
    if (!chunk->in_use) allocator_->Free(chunk->chunk.address, chunk->chunk.bytes, side_.get());
  }
}

Arena& Scratch::OfStream(Stream stream) {
  if (IsLegacy(stream)) stream = nullptr;
  const std::pair key(stream, IsPerThread(stream) ? ThreadNumber() : 0);
  {
    const std::shared_lock lock(streams_mutex_);
    if (const auto it = of_streams_.find(key); it != of_streams_.end()) return *it->second;
  }
  const std::lock_guard lock(streams_mutex_);
  std::unique_ptr<Arena>& arena = of_streams_[key];
  if (arena == nullptr) arena = std::make_unique<Arena>();
  return *arena;
}

absl::StatusOr<std::shared_ptr<Arena>> Scratch::OfCapture(Stream stream) {
  CaptureStatus status = kNotCapturing;
  uint64_t id = 0;
  cuda::GraphHandle graph = nullptr;
  const cuda::Result result = gpu_->api().StreamGetCaptureInfo(stream, &status, &id, &graph, nullptr, nullptr);
  if (result != kSuccess) return gpu_->driver().Error("cuStreamGetCaptureInfo", result);
  if (status != kCapturing) return absl::InternalError("the stream's capture was invalidated");
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Capture>& known : captures_) {
    if (known->id == id && known->stream == stream) return std::shared_ptr<Arena>(known, &known->arena);
  }
  if (captures_.size() >= kMostCaptures) captures_.pop_front();  // long over; its graph keeps the memory
  auto capture = std::make_shared<Capture>();
  capture->id = id;
  capture->stream = stream;
  capture->arena.graph = graph;
  captures_.push_back(capture);
  return std::shared_ptr<Arena>(capture, &capture->arena);
}

absl::Status Scratch::Reserve(Arena& arena, size_t zeroed, size_t other, Stream stream) {
  const std::pair<Arena::Chunk*, size_t> wanted[] = {{&arena.zeroed, zeroed}, {&arena.other, other}};
  for (const auto& [chunk, bytes] : wanted) {
    if (bytes <= chunk->bytes) continue;
    const bool is_zeroed = chunk == &arena.zeroed;
    const std::lock_guard lock(mutex_);
    const RelaxedCapture relaxed(*gpu_);
    absl::StatusOr<Arena::Chunk> grown = arena.graph == nullptr ? ForStream(Rounded(bytes), is_zeroed, stream)
                                                                : ForGraph(Rounded(bytes), is_zeroed, arena.graph);
    if (!grown.ok()) {
      return absl::Status(grown.status().code(),
                          absl::StrCat("no scratch memory of ", Rounded(bytes), " bytes: ", grown.status().message()));
    }
    *chunk = *grown;
  }
  return absl::OkStatus();
}

absl::StatusOr<Arena::Chunk> Scratch::ForStream(size_t bytes, bool zeroed, Stream stream) {
  const absl::StatusOr<Address> address = allocator_->Allocate(bytes, stream);
  if (!address.ok()) return address.status();
  allocations_.push_back({{*address, bytes}, stream});
  if (zeroed) ATTUNE_CUDA_CALL(gpu_->driver(), MemsetD8Async, *address, 0, bytes, stream);
  return allocations_.back().chunk;
}

absl::StatusOr<Arena::Chunk> Scratch::ForGraph(size_t bytes, bool zeroed, cuda::GraphHandle graph) {
  const absl::StatusOr<Stream> side = Side();
  if (!side.ok()) return side.status();
  const absl::StatusOr<std::shared_ptr<GraphChunk>> chunk = UnusedOrNew(bytes);
  if (!chunk.ok()) return chunk.status();
  const auto make_ready = [&]() -> absl::Status {
    if (zeroed) {  // now, and not by the graph, which would do it at each replay
      ATTUNE_CUDA_CALL(gpu_->driver(), MemsetD8Async, (*chunk)->chunk.address, 0, (*chunk)->chunk.bytes, *side);
    }
    // The memory was allocated in the side stream's order, and the graph is replayed on any stream.
    ATTUNE_CUDA_CALL(gpu_->driver(), StreamSynchronize, *side);
    return absl::OkStatus();
  };
  absl::Status status = make_ready();
  if (status.ok()) status = GiveToGraph(*chunk, graph);
  if (!status.ok()) {
    (*chunk)->in_use = false;
    return status;
  }
  return (*chunk)->chunk;
}

absl::StatusOr<std::shared_ptr<Scratch::GraphChunk>> Scratch::UnusedOrNew(size_t bytes) {
  for (const std::shared_ptr<GraphChunk>& chunk : graph_chunks_) {
    bool in_use = false;
    if (chunk->chunk.bytes >= bytes && chunk->in_use.compare_exchange_strong(in_use, true)) return chunk;
  }
  const absl::StatusOr<Address> address = allocator_->Allocate(bytes, side_.get());
  if (!address.ok()) return address.status();
  auto chunk = std::make_shared<GraphChunk>();
  chunk->chunk = {*address, bytes};
  graph_chunks_.push_back(chunk);
  return chunk;
}

absl::Status Scratch::GiveToGraph(const std::shared_ptr<GraphChunk>& chunk, cuda::GraphHandle graph) {
  // Called in a thread of the driver's, maybe long after this is gone; it may call nothing of the driver.
  constexpr auto kGone = [](void* value) {
    const std::unique_ptr<std::shared_ptr<GraphChunk>> owned(static_cast<std::shared_ptr<GraphChunk>*>(value));
    (*owned)->in_use = false;
  };
  auto owned = std::make_unique<std::shared_ptr<GraphChunk>>(chunk);
  UserObjectHandle object = nullptr;
  const cuda::Result created = gpu_->api().UserObjectCreate(&object, owned.get(), kGone, 1, kNoDestructorSync);
  if (created != kSuccess) return gpu_->driver().Error("cuUserObjectCreate", created);
  owned.release();  // NOLINT(bugprone-unused-return-value): the driver's now
  const cuda::Result moved = gpu_->api().GraphRetainUserObject(graph, object, 1, kGraphUserObjectMove);
  return moved == kSuccess ? absl::OkStatus() : gpu_->driver().Error("cuGraphRetainUserObject", moved);
}

absl::StatusOr<Stream> Scratch::Side() {
  if (!side_) {
    cuda::StreamHandle stream = nullptr;
    ATTUNE_CUDA_CALL(gpu_->driver(), StreamCreate, &stream, cuda::kStreamNonBlocking);
    side_ = cuda::Stream(gpu_->driver(), stream);
  }
  return side_.get();
}

}  // namespace attune::launch
