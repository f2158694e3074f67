#include "server/base/log.h"

#include "gtest/gtest.h"

namespace attune {
namespace {

TEST(LogLine, QuotesWhatWouldNotReadBack) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "T", "info", "job done", {{"name", "operations/1"}, {"why", "a \"b\""}}),
            "T info job done name=operations/1 why=\"a \\\"b\\\"\"");
}

TEST(LogLine, IsOneJsonObjectForCollectors) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, "T", "error", "disk full", {{"bytes", 12}, {"path", "a\nb"}}),
            R"({"time":"T","level":"error","event":"disk full","bytes":"12","path":"a\nb"})");
}

}  // namespace
}  // namespace attune
