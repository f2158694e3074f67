#include "server/verify/guarded_buffer.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/verify/testing/fake_device.h"

namespace attune::verify {
namespace {

using ::testing::Each;

constexpr size_t kZone = GuardedBuffer::kLeastZone;

TEST(GuardedBuffer, HasZonesThatItsContentsLeaveAlone) {
  FakeDevice device;
  absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device, "K", 64);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(device.allocated, 64 + 2 * kZone);
  ASSERT_TRUE(buffer->Fill(std::byte{7}).ok());
  GuardedBuffer::Snapshot snapshot;
  ASSERT_TRUE(buffer->Download(snapshot).ok());
  EXPECT_THAT(snapshot.contents(), Each(std::byte{7}));
  EXPECT_EQ(snapshot.Damage(), "");
  EXPECT_EQ(*buffer->Damage(), "");
}

TEST(GuardedBuffer, SaysWhereAZoneWasWrittenTo) {
  FakeDevice device;
  absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device, "K", 64);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const device::BufferView behind = buffer->ranges()[2];
  ASSERT_TRUE(device.Fill(*behind.buffer, behind.offset + 5, 1, std::byte{0}).ok());
  EXPECT_EQ(*buffer->Damage(), "written to 5 bytes past its end");
  ASSERT_TRUE(buffer->FillZones().ok());
  ASSERT_TRUE(device.Fill(*behind.buffer, kZone - 3, 1, std::byte{0}).ok());
  EXPECT_EQ(*buffer->Damage(), "written to 3 bytes before its start");
}

TEST(GuardedBuffer, OfNoBytesTakesNoMemoryAndIsNeverDamaged) {
  FakeDevice device;
  absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device, "the sinks", 0);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(device.allocated, 0);
  EXPECT_EQ(buffer->view().buffer, nullptr);
  EXPECT_TRUE(buffer->Upload(absl::Span<const std::byte>()).ok());
  EXPECT_TRUE(buffer->Fill(std::byte{7}).ok());
  EXPECT_TRUE(buffer->FillZones().ok());
  EXPECT_TRUE(*buffer->Holds(absl::Span<const std::byte>()));
  EXPECT_EQ(*buffer->Damage(), "");
  GuardedBuffer::Snapshot snapshot;
  ASSERT_TRUE(buffer->Download(snapshot).ok());
  EXPECT_EQ(snapshot.Damage(), "");
  for (const device::BufferView& range : buffer->ranges()) EXPECT_EQ(range.size, 0U);
}

}  // namespace
}  // namespace attune::verify
