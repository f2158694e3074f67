#include "client/cpp/status.h"

#include <grpcpp/support/status.h>

#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(FromGrpc, FoldsTheErrorInfoIntoTheMessageAndKeepsIt) {
  const absl::Status status =
      FromGrpc(testing::RichError(grpc::StatusCode::INVALID_ARGUMENT, "head_dim is 7", "PROBLEM_INVALID",
                                  {{"field", "head_dim"}, {"allowed", "32"}}),
               "l4:7411");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "head_dim is 7 [PROBLEM_INVALID allowed=32 field=head_dim]");
  EXPECT_EQ(ErrorReason(status), "PROBLEM_INVALID");
  EXPECT_EQ(GetErrorInfo(status)->domain(), "attune.dev");
}

TEST(FromGrpc, KeepsForProgramsWhatIsNotForReaders) {
  const absl::Status status =
      FromGrpc(testing::RichError(grpc::StatusCode::NOT_FOUND, "it was never tuned", "NOT_FOUND",
                                  {{"method", "GetBest"}, {"holds_for", "kv 1024..2047"}}),
               "l4:7411");
  EXPECT_EQ(status.message(), "it was never tuned [NOT_FOUND method=GetBest]");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("holds_for"), "kv 1024..2047");
}

TEST(FromGrpc, NamesTheServerThatDidNotAnswer) {
  const absl::Status unavailable = FromGrpc({grpc::StatusCode::UNAVAILABLE, "connection refused"}, "l4:7411");
  EXPECT_THAT(std::string(unavailable.message()), HasSubstr("l4:7411"));
  EXPECT_TRUE(IsUnreachable(unavailable));
  const absl::Status late = FromGrpc({grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}, "l4:7411");
  EXPECT_THAT(std::string(late.message()), HasSubstr("l4:7411"));
  EXPECT_TRUE(IsUnreachable(late));
}

TEST(FromGrpc, LeavesAPlainErrorAlone) {
  const absl::Status status = FromGrpc({grpc::StatusCode::NOT_FOUND, "trials/9 is not known"}, "l4:7411");
  EXPECT_EQ(status, absl::NotFoundError("trials/9 is not known"));
  EXPECT_EQ(ErrorReason(status), "");
  EXPECT_FALSE(IsUnreachable(status));
}

TEST(FromGrpc, DetailsThatCannotBeReadAreNoError) {
  EXPECT_EQ(FromGrpc({grpc::StatusCode::INTERNAL, "x", "\xff\xff"}, "l4:7411"), absl::InternalError("x"));
  EXPECT_TRUE(FromGrpc(grpc::Status::OK, "l4:7411").ok());
}

}  // namespace
}  // namespace attune
