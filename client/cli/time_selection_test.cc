#include "client/cli/time_selection.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::HasSubstr;

std::string Refused(absl::string_view text) {
  const absl::Status status = ParseSelection("FROM", text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(ParseSelection, NowAndNothingSelectTheLast) {
  EXPECT_EQ(ParseSelection("FROM", "now")->ByteSizeLong(), 0U);
  EXPECT_EQ(ParseSelection("FROM", "")->ByteSizeLong(), 0U);
}

TEST(ParseSelection, ADayEndsWithItAndAMomentAtIt) {
  const absl::TimeZone zone = absl::LocalTimeZone();
  EXPECT_EQ(ParseSelection("FROM", "date=2026-10-31")->end_time().seconds(),
            absl::ToUnixSeconds(absl::FromCivil(absl::CivilDay(2026, 11, 1), zone)));
  EXPECT_EQ(ParseSelection("FROM", "date=2026-10-31T06:30")->end_time().seconds(),
            absl::ToUnixSeconds(absl::FromCivil(absl::CivilMinute(2026, 10, 31, 6, 30), zone)));
  EXPECT_EQ(ParseSelection("FROM", "date=2026-10-31T06:30:00+02:00")->end_time().seconds(), 1'793'421'000);
}

TEST(ParseSelection, SeveralAreJoined) {
  const auto selection = ParseSelection("TO", "device=l4,driver=580.1,toolchain=nvrtc 13.0");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->device_id(), "l4");
  EXPECT_EQ(selection->driver(), "580.1");
  EXPECT_EQ(selection->toolchain(), "nvrtc 13.0");
  EXPECT_EQ(ParseSelection("TO", "family=attention_mma")->family(), "attention_mma");
}

TEST(ParseSelection, NamesWhatItCannotRead) {
  EXPECT_THAT(Refused("yesterday"), HasSubstr("FROM has 'yesterday'; allowed: date=, device="));
  EXPECT_THAT(Refused("card=l4"), HasSubstr("FROM has 'card=l4'"));
  EXPECT_THAT(Refused("device="), HasSubstr("FROM has 'device='"));
  EXPECT_THAT(Refused("date=yesterday"), HasSubstr("FROM has the date 'yesterday'; allowed: 2026-11-01"));
}

}  // namespace
}  // namespace attune::cli
