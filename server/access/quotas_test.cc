#include "server/access/quotas.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"

namespace attune::access {
namespace {

using ::testing::Optional;

const Principal kNightly{"token:nightly", Role::kTuner};
const Principal kOther{"token:other", Role::kTuner};

int Admitted(Quotas& quotas, const Principal& principal, int asked, absl::Duration now) {
  int admitted = 0;
  for (int i = 0; i < asked; ++i) admitted += quotas.Take(principal, 0, now).ok() ? 1 : 0;
  return admitted;
}

TEST(Quotas, AreTwoSecondsWorthAtOnceAndTheRateOverTime) {
  Quotas quotas({.requests_per_second = 10});
  EXPECT_EQ(Admitted(quotas, kNightly, 100, absl::Seconds(5)), 20);
  EXPECT_EQ(Admitted(quotas, kNightly, 100, absl::Seconds(5.5)), 5);
  EXPECT_EQ(Admitted(quotas, kNightly, 100, absl::Seconds(1000)), 20);
}

TEST(Quotas, OfOnePrincipalAreNotAnothers) {
  Quotas quotas({.requests_per_second = 1});
  EXPECT_EQ(Admitted(quotas, kNightly, 100, absl::ZeroDuration()), 2);
  EXPECT_EQ(Admitted(quotas, kOther, 100, absl::ZeroDuration()), 2);
}

TEST(Quotas, SayWhichOneWhatItIsAndWhenToAskAgain) {
  Quotas quotas({.requests_per_second = 4});
  Admitted(quotas, kNightly, 8, absl::ZeroDuration());
  const absl::Status refused = quotas.Take(kNightly, 0, absl::ZeroDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(), "token:nightly is over its quota of requests_per_second, which is 4; ask again later");
  EXPECT_THAT(refused.GetPayload(kReasonUrl), Optional(absl::Cord("QUOTA_EXCEEDED")));
  EXPECT_THAT(refused.GetPayload(kQuotaUrl), Optional(absl::Cord("requests_per_second")));
  EXPECT_THAT(refused.GetPayload(kQuotaLimitUrl), Optional(absl::Cord("4")));
  EXPECT_THAT(refused.GetPayload(kRetryDelayUrl), Optional(absl::Cord("250ms")));
  EXPECT_TRUE(quotas.Take(kNightly, 0, absl::Milliseconds(250)).ok());
}

TEST(Quotas, OfARequestsSizeAreNotHelpedByTime) {
  Quotas quotas({.request_bytes = 100});
  EXPECT_TRUE(quotas.Take(kNightly, 100, absl::ZeroDuration()).ok());
  const absl::Status refused = quotas.Take(kNightly, 101, absl::ZeroDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_FALSE(refused.GetPayload(kRetryDelayUrl).has_value());
}

TEST(Quotas, ThatAreNotSetHoldNobodyUp) {
  Quotas quotas({});
  EXPECT_EQ(Admitted(quotas, kNightly, 10'000, absl::ZeroDuration()), 10'000);
}

TEST(Quotas, OfPrincipalsBeyondTheMostAreShared) {
  Quotas quotas({.requests_per_second = 1});
  for (size_t i = 0; i < Quotas::kMostAccounts; ++i) {
    EXPECT_TRUE(quotas.Take({absl::StrCat("cert:", i), Role::kReader}, 0, absl::ZeroDuration()).ok());
  }
  EXPECT_EQ(Admitted(quotas, {"cert:one", Role::kReader}, 1, absl::ZeroDuration()) +
                Admitted(quotas, {"cert:two", Role::kReader}, 1, absl::ZeroDuration()) +
                Admitted(quotas, {"cert:three", Role::kReader}, 1, absl::ZeroDuration()),
            2);
}

}  // namespace
}  // namespace attune::access
