#include "client/cpp/launch/scratch.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::launch {
namespace {

namespace fake = ::attune::device::cuda::testing;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Stream kCaptured = reinterpret_cast<Stream>(0x70);
const Stream kOther = reinterpret_cast<Stream>(0x80);

class DriversMemory : public ScratchAllocator {
 public:
  explicit DriversMemory(const Gpu& gpu) : gpu_(gpu) {}
  absl::StatusOr<Address> Allocate(size_t bytes, Stream /*stream*/) override {
    Address address = 0;
    const cuda::Result result = gpu_.driver().MemAlloc(&address, bytes);
    if (result != cuda::kSuccess) return gpu_.driver().Error("cuMemAlloc", result);
    return address;
  }
  void Free(Address address, size_t /*bytes*/, Stream /*stream*/) override { gpu_.driver().MemFree(address); }

 private:
  const Gpu& gpu_;
};

class ScratchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::Reset();
    gpu_ = *Gpu::Open(0);
    context_.emplace(*gpu_);
    memory_.emplace(*gpu_);
    scratch_.emplace(gpu_, &*memory_);
  }
  Arena& Reserved(size_t zeroed, size_t other, Stream stream) {
    Arena& arena = scratch_->OfStream(stream);
    EXPECT_EQ(scratch_->Reserve(arena, zeroed, other, stream), absl::OkStatus());
    return arena;
  }
  // Captures `stream`, reserves zeroed memory for it and gives the graph; `chunk` is what it got.
  cuda::GraphHandle Captured(size_t zeroed, Arena::Chunk* chunk) {
    EXPECT_EQ(gpu_->driver().StreamBeginCapture(kCaptured, cuda::kCaptureThreadLocal), cuda::kSuccess);
    const auto arena = scratch_->OfCapture(kCaptured);
    EXPECT_TRUE(arena.ok()) << arena.status();
    EXPECT_EQ(scratch_->Reserve(**arena, zeroed, 0, kCaptured), absl::OkStatus());
    *chunk = (*arena)->zeroed;
    cuda::GraphHandle graph = nullptr;
    EXPECT_EQ(gpu_->driver().StreamEndCapture(kCaptured, &graph), cuda::kSuccess);
    return graph;
  }
  static bool IsZero(const Arena::Chunk& chunk) {
    const auto* bytes = reinterpret_cast<const char*>(chunk.address);
    return std::count(bytes, bytes + chunk.bytes, 0) == static_cast<std::ptrdiff_t>(chunk.bytes);
  }

  std::shared_ptr<const Gpu> gpu_;
  std::optional<CurrentContext> context_;
  std::optional<DriversMemory> memory_;
  std::optional<Scratch> scratch_;
};

TEST_F(ScratchTest, AStreamKeepsItsMemory) {
  const Address first = Reserved(0, 1000, kCaptured).other.address;
  EXPECT_EQ(Reserved(0, 500, kCaptured).other.address, first);
  EXPECT_THAT(fake::Allocations(), SizeIs(1));
}

TEST_F(ScratchTest, OtherStreamsHaveMemoryOfTheirOwn) {
  EXPECT_NE(Reserved(0, 1000, kCaptured).other.address, Reserved(0, 1000, kOther).other.address);
}

TEST_F(ScratchTest, TheDefaultStreamIsOneByBothItsNames) {
  EXPECT_EQ(&scratch_->OfStream(nullptr), &scratch_->OfStream(reinterpret_cast<Stream>(1)));
}

TEST_F(ScratchTest, ThePerThreadStreamIsAnotherInEachThread) {
  const Stream per_thread = reinterpret_cast<Stream>(2);
  Arena* of_another = nullptr;
  std::thread([&] { of_another = &scratch_->OfStream(per_thread); }).join();
  EXPECT_NE(&scratch_->OfStream(per_thread), of_another);
  EXPECT_EQ(&scratch_->OfStream(per_thread), &scratch_->OfStream(per_thread));
}

TEST_F(ScratchTest, GrowsByPowersOfTwoAndKeepsWhatQueuedWorkMayUse) {
  const Address small = Reserved(0, 1000, kCaptured).other.address;
  const Arena::Chunk large = Reserved(0, 70'000, kCaptured).other;
  EXPECT_NE(large.address, small);
  EXPECT_EQ(large.bytes, 131'072);
  EXPECT_THAT(fake::Allocations(), SizeIs(2));
}

TEST_F(ScratchTest, OnlyWhatMustBeZeroIsZeroed) {
  const Arena& arena = Reserved(1000, 1000, kCaptured);
  EXPECT_TRUE(IsZero(arena.zeroed));
  EXPECT_FALSE(IsZero(arena.other));
}

TEST_F(ScratchTest, MemoryThatThereIsNotIsAnErrorAndCanBeAskedForAgain) {
  fake::Fail("cuMemAlloc_v2", cuda::kOutOfMemory);
  Arena& arena = scratch_->OfStream(kCaptured);
  const absl::Status status = scratch_->Reserve(arena, 0, 1000, kCaptured);
  EXPECT_EQ(status,
            absl::ResourceExhaustedError("no scratch memory of 65536 bytes: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_EQ(scratch_->Reserve(arena, 0, 1000, kCaptured), absl::OkStatus());
}

TEST_F(ScratchTest, MemoryThatCouldNotBeZeroedIsNotUsed) {
  fake::Fail("cuMemsetD8Async", cuda::kIllegalAddress);
  Arena& arena = scratch_->OfStream(kCaptured);
  EXPECT_EQ(scratch_->Reserve(arena, 1000, 0, kCaptured).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(arena.zeroed.bytes, 0);
}

TEST_F(ScratchTest, AGraphsMemoryIsZeroedAtOnceAndNotByTheGraph) {
  Arena::Chunk chunk;
  const cuda::GraphHandle graph = Captured(1000, &chunk);
  EXPECT_TRUE(IsZero(chunk));
  reinterpret_cast<char*>(chunk.address)[0] = 1;
  cuda::GraphExecHandle executable = nullptr;
  gpu_->driver().GraphInstantiateWithFlags(&executable, graph, 0);
  gpu_->driver().GraphLaunch(executable, kCaptured);
  EXPECT_FALSE(IsZero(chunk));
  gpu_->driver().GraphExecDestroy(executable);
  gpu_->driver().GraphDestroy(graph);
}

TEST_F(ScratchTest, AGraphsMemoryIsWaitedForBecauseItWasAllocatedInAnotherStreamsOrder) {
  gpu_->driver().StreamBeginCapture(kCaptured, cuda::kCaptureThreadLocal);
  EXPECT_EQ(scratch_->Reserve(**scratch_->OfCapture(kCaptured), 0, 1000, kCaptured), absl::OkStatus());
  EXPECT_EQ(fake::Calls("cuStreamSynchronize"), 1);
  cuda::GraphHandle graph = nullptr;
  gpu_->driver().StreamEndCapture(kCaptured, &graph);
  gpu_->driver().GraphDestroy(graph);
}

TEST_F(ScratchTest, AGraphsMemoryServesTheNextOneOnceItAndItsExecutablesAreGone) {
  Arena::Chunk first, second, third;
  const cuda::GraphHandle graph = Captured(1000, &first);
  cuda::GraphExecHandle executable = nullptr;
  gpu_->driver().GraphInstantiateWithFlags(&executable, graph, 0);
  gpu_->driver().GraphDestroy(graph);
  const cuda::GraphHandle other = Captured(1000, &second);
  EXPECT_NE(second.address, first.address);
  gpu_->driver().GraphExecDestroy(executable);
  reinterpret_cast<char*>(first.address)[0] = 1;
  const cuda::GraphHandle last = Captured(1000, &third);
  EXPECT_EQ(third.address, first.address);
  EXPECT_TRUE(IsZero(third));
  gpu_->driver().GraphDestroy(other);
  gpu_->driver().GraphDestroy(last);
}

TEST_F(ScratchTest, MemoryThatNoGraphCouldOwnServesTheNextOne) {
  for (const char* symbol : {"cuUserObjectCreate", "cuStreamSynchronize"}) {
    gpu_->driver().StreamBeginCapture(kCaptured, cuda::kCaptureThreadLocal);
    fake::Fail(symbol, cuda::kOutOfMemory);
    EXPECT_EQ(scratch_->Reserve(**scratch_->OfCapture(kCaptured), 1000, 0, kCaptured).code(),
              absl::StatusCode::kResourceExhausted)
        << symbol;
    cuda::GraphHandle graph = nullptr;
    gpu_->driver().StreamEndCapture(kCaptured, &graph);
    gpu_->driver().GraphDestroy(graph);
  }
  EXPECT_THAT(fake::Allocations(), SizeIs(1));
}

TEST_F(ScratchTest, AGraphThatGotNoMemoryTakesNoneBackWhenItEnds) {
  Arena::Chunk second, third;
  cuda::GraphHandle failed = nullptr;
  gpu_->driver().StreamBeginCapture(kCaptured, cuda::kCaptureThreadLocal);
  fake::Fail("cuStreamSynchronize", cuda::kOutOfMemory);
  EXPECT_FALSE(scratch_->Reserve(**scratch_->OfCapture(kCaptured), 1000, 0, kCaptured).ok());
  gpu_->driver().StreamEndCapture(kCaptured, &failed);
  const cuda::GraphHandle graph = Captured(1000, &second);
  gpu_->driver().GraphDestroy(failed);
  const cuda::GraphHandle other = Captured(1000, &third);
  EXPECT_NE(third.address, second.address);
  gpu_->driver().GraphDestroy(graph);
  gpu_->driver().GraphDestroy(other);
}

TEST_F(ScratchTest, FreesAllButWhatAGraphMayStillWriteTo) {
  Arena::Chunk chunk;
  const cuda::GraphHandle graph = Captured(1000, &chunk);
  Reserved(1000, 1000, kCaptured);
  scratch_.reset();
  const std::vector<fake::Allocation> left = fake::Allocations();
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].address, chunk.address);
  gpu_->driver().GraphDestroy(graph);  // whose end is told to nobody
}

TEST_F(ScratchTest, AStreamThatIsNotCapturedHasNoArenaOfACapture) {
  EXPECT_EQ(scratch_->OfCapture(kCaptured).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace attune::launch
