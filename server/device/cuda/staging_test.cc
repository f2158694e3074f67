// Copies of any size, through pinned pieces and without them.
#include "server/device/cuda/staging.h"

#include <vector>

#include "gtest/gtest.h"
#include "server/device/cuda/testing/fake_cuda.h"

namespace attune::device::cuda {
namespace {

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() : api_(*DriverApi::Load()) {
    testing::Reset();
    ContextHandle context = nullptr;
    EXPECT_EQ(api_->DevicePrimaryCtxRetain(&context, 0), kSuccess);
    EXPECT_EQ(api_->CtxSetCurrent(context), kSuccess);
  }
  ~StagingTest() override { testing::Reset(); }

  // There and back, to and from the middle of what is allocated.
  void ExpectCopied(size_t bytes) {
    constexpr size_t kBefore = 256;
    DevicePointer memory = 0;
    ASSERT_EQ(api_->MemAlloc(&memory, kBefore + bytes), kSuccess);
    std::vector<std::byte> sent(bytes), received(bytes);
    for (size_t i = 0; i < bytes; ++i) sent[i] = static_cast<std::byte>(i * 2654435761u >> 9);
    Staging staging(*api_, nullptr);
    ASSERT_TRUE(staging.Upload(memory + kBefore, sent).ok());
    ASSERT_TRUE(staging.Download(memory + kBefore, absl::MakeSpan(received)).ok());
    EXPECT_EQ(sent, received) << bytes;
  }

  std::shared_ptr<const DriverApi> api_;
};

TEST_F(StagingTest, EveryByteArrivesWhateverTheSize) {
  for (const size_t bytes : {size_t{1}, size_t{300'001}, size_t{8} << 20, (size_t{16} << 20) + 5, size_t{33'333'333}}) {
    ExpectCopied(bytes);
  }
}

TEST_F(StagingTest, LargeCopiesCrossInPinnedPieces) {
  ExpectCopied(size_t{20} << 20);
  EXPECT_EQ(testing::Calls("cuMemHostAlloc"), 2);
  EXPECT_EQ(testing::Calls("cuMemcpyHtoDAsync_v2"), 3);
  EXPECT_EQ(testing::Calls("cuMemcpyDtoHAsync_v2"), 3);
}

TEST_F(StagingTest, SmallCopiesAreTheDrivers) {
  ExpectCopied(4096);
  EXPECT_EQ(testing::Calls("cuMemHostAlloc"), 0);
}

TEST_F(StagingTest, WithoutPinnedMemoryTheDriverCopies) {
  testing::Fail("cuMemHostAlloc", kOutOfMemory);
  ExpectCopied(size_t{20} << 20);
  EXPECT_EQ(testing::Calls("cuMemcpyHtoDAsync_v2"), 1);
}

TEST_F(StagingTest, AFaultInTheMiddleIsAnError) {
  DevicePointer memory = 0;
  ASSERT_EQ(api_->MemAlloc(&memory, size_t{20} << 20), kSuccess);
  std::vector<std::byte> bytes(size_t{20} << 20);
  Staging staging(*api_, nullptr);
  testing::Fail("cuMemcpyHtoDAsync_v2", kIllegalAddress, /*after=*/1);
  EXPECT_TRUE(absl::IsAborted(staging.Upload(memory, bytes)));
  testing::Fail("cuMemcpyDtoHAsync_v2", kIllegalAddress, /*after=*/1);
  EXPECT_TRUE(absl::IsAborted(staging.Download(memory, absl::MakeSpan(bytes))));
}

}  // namespace
}  // namespace attune::device::cuda
