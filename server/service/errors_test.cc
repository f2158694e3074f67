#include "server/service/errors.h"

#include "gtest/gtest.h"
#include "proto/attune/quote.h"
#include "server/base/reason.h"

namespace attune::service {
namespace {

google::rpc::ErrorInfo InfoOf(const grpc::Status& status) {
  google::rpc::Status wire;
  EXPECT_TRUE(wire.ParseFromString(status.error_details()));
  google::rpc::ErrorInfo info;
  EXPECT_EQ(wire.details_size(), 1);
  EXPECT_TRUE(wire.details(0).UnpackTo(&info));
  return info;
}

TEST(Errors, OkCarriesNothing) { EXPECT_TRUE(ToGrpc(absl::OkStatus(), "Tune").ok()); }

TEST(Errors, CarryCodeMessageAndErrorInfo) {
  const grpc::Status status = ToGrpc(absl::NotFoundError("no such trial"), "GetTrial");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no such trial");
  const google::rpc::ErrorInfo info = InfoOf(status);
  EXPECT_EQ(info.domain(), "attune.dev");
  EXPECT_EQ(info.reason(), "NOT_FOUND");
  EXPECT_EQ(info.metadata().at("method"), "GetTrial");
}

TEST(Errors, AreShortAndPrintable) {
  const grpc::Status status = ToGrpc(absl::NotFoundError("\x1b[31m\n\xff" + std::string(60 << 20, 'x')), "GetTrial");
  EXPECT_EQ(status.error_message().size(), kMostMessageBytes);
  EXPECT_EQ(status.error_message().substr(0, 14), "\\x1b[31m\\n\\xff");
  EXPECT_LT(status.error_details().size(), 2 * kMostMessageBytes);
  std::string accents;
  for (int i = 0; i < 2000; ++i) accents += "\u00e9";
  const std::string cut = ToGrpc(absl::NotFoundError("x" + accents), "GetTrial").error_message();
  EXPECT_EQ(cut, "x" + accents.substr(0, 1020) + "...");
}

TEST(Errors, AFinerReasonReplacesTheCodesName) {
  const absl::Status status = WithReason(absl::NotFoundError("no such family"), "UNKNOWN_FAMILY");
  EXPECT_EQ(InfoOf(ToGrpc(status, "Tune")).reason(), "UNKNOWN_FAMILY");
}

TEST(Errors, OfARangeSayWhichOne) {
  absl::Status status = absl::NotFoundError("no answer");
  EXPECT_FALSE(InfoOf(ToGrpc(status, "GetBest")).metadata().contains("holds_for"));
  status.SetPayload(kHoldsForUrl, absl::Cord("kv 1024..2047"));
  EXPECT_EQ(InfoOf(ToGrpc(status, "GetBest")).metadata().at("holds_for"), "kv 1024..2047");
}

TEST(Errors, ThatPassSayWhenToTryAgain) {
  absl::Status status = absl::ResourceExhaustedError("too many");
  SetRetryDelay(absl::Milliseconds(1500), status);
  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(ToGrpc(status, "Tune").error_details()));
  ASSERT_EQ(wire.details_size(), 2);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(wire.details(0).UnpackTo(&info));
  EXPECT_EQ(info.metadata_size(), 1) << "the method alone";
  google::rpc::RetryInfo again;
  ASSERT_TRUE(wire.details(1).UnpackTo(&again));
  EXPECT_EQ(again.retry_delay().seconds(), 1);
  EXPECT_EQ(again.retry_delay().nanos(), 500'000'000);
}

}  // namespace
}  // namespace attune::service
