#include "server/base/framing.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "attune/worker/v1/worker.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class FramingTest : public ::testing::Test {
 protected:
  FramingTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_), 0); }
  ~FramingTest() override {
    close(fds_[0]);
    CloseOther();
  }
  void CloseOther() {
    if (fds_[1] >= 0) close(fds_[1]);
    fds_[1] = -1;
  }
  void SendRaw(const std::string& bytes) { ASSERT_EQ(write(fds_[1], bytes.data(), bytes.size()), bytes.size()); }

  absl::Status Read() { return ReadMessage(fds_[0], message_, After(absl::Seconds(20))); }

  int fds_[2];
  worker::v1::SourceFile message_;
};

TEST_F(FramingTest, BringsMessagesOver) {
  worker::v1::SourceFile sent;
  for (const char* path : {"a.cu", "", "b.cu"}) {
    sent.set_path(path);
    ASSERT_TRUE(WriteMessage(fds_[1], sent, kNever).ok());
  }
  for (const char* path : {"a.cu", "", "b.cu"}) {
    ASSERT_TRUE(Read().ok());
    EXPECT_EQ(message_.path(), path);
  }
}

TEST_F(FramingTest, BringsMessagesOverThatFillTheSocketManyTimes) {
  worker::v1::SourceFile sent;
  sent.set_text(std::string(50 << 20, 'x') + "end");
  std::thread writer([&] { EXPECT_TRUE(WriteMessage(fds_[1], sent, kNever).ok()); });
  EXPECT_TRUE(Read().ok());
  writer.join();
  EXPECT_EQ(message_.text(), sent.text());
}

TEST_F(FramingTest, ALengthIsFourBytesLittleEndian) {
  SendRaw(std::string("\x03\0\0\0\x0a\x01q", 7));  // field 1, one byte, 'q'
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(message_.path(), "q");
}

TEST_F(FramingTest, AClosedPeerIsUnavailable) {
  CloseOther();
  EXPECT_TRUE(absl::IsUnavailable(Read()));
  worker::v1::SourceFile sent;
  sent.set_path("a");
  EXPECT_TRUE(absl::IsUnavailable(WriteMessage(fds_[0], sent, kNever)));
}

TEST_F(FramingTest, AMessageCutShortIsUnavailable) {
  SendRaw(std::string("\x03\0\0\0\x0a", 5));
  CloseOther();
  EXPECT_TRUE(absl::IsUnavailable(Read()));
}

TEST_F(FramingTest, ALengthBeyondTheLimitIsDataLoss) {
  SendRaw("\xff\xff\xff\xff");
  const absl::Status status = Read();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("4294967295 bytes is announced; allowed: at most 536870912"));
}

TEST_F(FramingTest, BytesThatAreNoMessageAreDataLoss) {
  SendRaw(std::string("\x02\0\0\0\xff\xff", 6));
  EXPECT_TRUE(absl::IsDataLoss(Read()));
}

TEST_F(FramingTest, APeerThatStopsHalfWayMissesTheDeadline) {
  SendRaw(std::string("\x03\0\0\0\x0a", 5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReadMessage(fds_[0], message_, After(absl::Milliseconds(20)))));
}

TEST_F(FramingTest, APeerThatDoesNotReadMissesTheDeadline) {
  worker::v1::SourceFile sent;
  sent.set_text(std::string(50 << 20, 'x'));
  EXPECT_TRUE(absl::IsDeadlineExceeded(WriteMessage(fds_[1], sent, After(absl::Milliseconds(20)))));
}

}  // namespace
}  // namespace attune
