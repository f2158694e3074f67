#include "server/base/trace_parent.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

TEST(TraceParent, HasATracesId) {
  EXPECT_EQ(TraceIdIn(absl::StrCat("00-", kTrace, "-00f067aa0ba902b7-01")), kTrace);
  EXPECT_EQ(TraceIdIn(absl::StrCat("cc-", kTrace, "-00f067aa0ba902b7-01")), kTrace) << "a later version";
  EXPECT_EQ(TraceIdIn(absl::StrCat("cc-", kTrace, "-00f067aa0ba902b7-01-what-may-come")), kTrace);
  EXPECT_EQ(TraceIdIn(absl::StrCat("cc-", kTrace, "-00f067aa0ba902b7-01-", std::string(1 << 20, 'x'))), kTrace);
}

TEST(TraceParent, ThatIsNoneHasNoId) {
  const std::string good = absl::StrCat("00-", kTrace, "-00f067aa0ba902b7-01");
  for (size_t length = 0; length < good.size(); ++length) EXPECT_EQ(TraceIdIn(good.substr(0, length)), "");
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char c : {'X', 'A', ' ', '\n', '\0', '\xff'}) {
      std::string bad = good;
      bad[i] = c;
      EXPECT_EQ(TraceIdIn(bad), "") << i;
    }
  }
  EXPECT_EQ(TraceIdIn(good + "-x"), "") << "version 0 ends there";
  EXPECT_EQ(TraceIdIn(good + "x"), "");
  EXPECT_EQ(TraceIdIn(absl::StrCat("cc", good.substr(2), "x")), "");
  EXPECT_EQ(TraceIdIn(absl::StrCat("ff", good.substr(2))), "");
  EXPECT_EQ(TraceIdIn(absl::StrCat("00-", std::string(32, '0'), "-00f067aa0ba902b7-01")), "");
  EXPECT_EQ(TraceIdIn(absl::StrCat("00-", kTrace, "-", std::string(16, '0'), "-01")), "");
}

}  // namespace
}  // namespace attune
