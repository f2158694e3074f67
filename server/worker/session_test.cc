#include "server/worker/session.h"

#include <sys/socket.h>
#include <unistd.h>

#include <new>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/framing.h"

namespace attune::worker {
namespace {

// Answers a floor with an error of the code that it names, a compile with a log that is no UTF-8, finds no memory for a
// prepare, and answers anything else with nothing.
class EchoSession : public Session {
 public:
  worker::v1::Response Handle(const worker::v1::Request& request) override {
    ++handled;
    if (request.has_prepare()) throw std::bad_alloc();
    if (request.has_compile()) {
      worker::v1::Response response;
      response.mutable_compile()->set_log("\x1b[31mcaf\xe9\x1b[0m:\t1\n");
      return response;
    }
    if (!request.has_floor()) return {};
    return ErrorResponse(absl::Status(absl::StatusCode::kAborted, request.floor().entry()));
  }
  int handled = 0;
};

class ServeTest : public ::testing::Test {
 protected:
  ServeTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds_), 0);
    server_ = std::thread([this] { status_ = Serve(fds_[1], session_); });
  }
  ~ServeTest() override {
    close(fds_[0]);
    close(fds_[1]);
  }
  worker::v1::Response Ask(const worker::v1::Request& request) {
    worker::v1::Response response;
    EXPECT_TRUE(WriteMessage(fds_[0], request, kNever).ok());
    EXPECT_TRUE(ReadMessage(fds_[0], response, After(absl::Seconds(60))).ok());
    return response;
  }
  absl::Status Join() {
    server_.join();
    return status_;
  }

  int fds_[2];
  EchoSession session_;
  absl::Status status_;
  std::thread server_;
};

TEST_F(ServeTest, AnswersUntilThePeerIsGone) {
  Ask({});
  Ask({});
  shutdown(fds_[0], SHUT_RDWR);
  EXPECT_TRUE(Join().ok());
  EXPECT_EQ(session_.handled, 2);
}

TEST_F(ServeTest, EndsAfterAFaultOfTheDeviceHasBeenReported) {
  worker::v1::Request request;
  request.mutable_floor()->set_entry("illegal address");
  EXPECT_EQ(Ask(request).error_message(), "illegal address");
  EXPECT_TRUE(absl::IsAborted(Join()));
}

TEST_F(ServeTest, TooLittleMemoryForOneRequestIsThatOnesError) {
  worker::v1::Request request;
  request.mutable_prepare();
  EXPECT_EQ(Ask(request).error_code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(Ask({}).error_code(), 0);
  shutdown(fds_[0], SHUT_RDWR);
  EXPECT_TRUE(Join().ok());
}

TEST_F(ServeTest, WhatACompilerSaysComesAsCleanText) {
  worker::v1::Request request;
  request.mutable_compile();
  EXPECT_EQ(Ask(request).compile().log(), "[31mcaf\xEF\xBF\xBD[0m:\t1\n");
  shutdown(fds_[0], SHUT_RDWR);
  EXPECT_TRUE(Join().ok());
}

TEST_F(ServeTest, EndsOnGarbage) {
  ASSERT_EQ(write(fds_[0], "\xff\xff\xff\xff", 4), 4);
  EXPECT_TRUE(absl::IsDataLoss(Join()));
}

TEST(ExitWithPeer, EndsTheProcessWhileItIsBusy) {
  EXPECT_EXIT(
      {
        int fds[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
        ExitWithPeer(fds[1]);
        close(fds[0]);
        while (true) pause();
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(FailedSession, GivesItsReasonForEverything) {
  FailedSession session(absl::FailedPreconditionError("in use by process 12"));
  const worker::v1::Response response = session.Handle({});
  EXPECT_EQ(response.error_code(), static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(response.error_message(), "in use by process 12");
}

}  // namespace
}  // namespace attune::worker
