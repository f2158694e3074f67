#include "server/base/log.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/log_budget.h"
#include "server/base/testing/logged.h"

namespace attune {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Line(LogFormat format, const char* level, const char* event, std::initializer_list<LogField> fields) {
  return FormatLogLine(format, "T", level, event, absl::MakeConstSpan(fields.begin(), fields.size()));
}

TEST(LogLine, QuotesWhatWouldNotReadBack) {
  EXPECT_EQ(Line(LogFormat::kText, "info", "job done", {{"name", "operations/1"}, {"why", "a \"b\""}}),
            "T info job done name=operations/1 why=\"a \\\"b\\\"\"");
}

TEST(LogLine, EscapesWhatATerminalWouldActOn) {
  EXPECT_EQ(Line(LogFormat::kText, "info", "e", {{"title", "\x1b]0;x\x07"}, {"a", "b\rc"}, {"d", "\xff"}}),
            "T info e title=\"\\x1b]0;x\\x07\" a=\"b\\rc\" d=\"\\xff\"");
  EXPECT_EQ(Line(LogFormat::kText, "info", "e", {{"path", "a\\n"}, {"it", "'s"}}), "T info e path=\"a\\\\n\" it='s");
}

TEST(LogLine, IsOneJsonObjectForCollectors) {
  EXPECT_EQ(Line(LogFormat::kJson, "error", "disk full", {{"bytes", 12}, {"path", "a\nb"}}),
            R"({"time":"T","level":"error","event":"disk full","bytes":"12","path":"a\nb"})");
}

TEST(Log, WritesWhatIsOfItsLevelOrAbove) {
  const std::string log = Logged([] {
    LogDebug("fine print");
    LogInfo("news");
    SetLogLevel(LogLevel::kWarning);
    LogInfo("old news");
    LogError("trouble", {{"why", "x"}});
    SetLogLevel(LogLevel::kInfo);
  });
  EXPECT_THAT(log, HasSubstr(" info news\n"));
  EXPECT_THAT(log, HasSubstr(" error trouble why=x\n"));
  EXPECT_THAT(log, Not(HasSubstr("fine print")));
  EXPECT_THAT(log, Not(HasSubstr("old news")));
}

TEST(Log, ThinsOutWhatRepeatsWithoutEnd) {
  const std::string log = Logged([] {
    for (int i = 0; i < 1000 * LogBudget::kBurst; ++i) LogInfo("again and again");
    LogInfo("something else");
  });
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 100 * LogBudget::kBurst);
  EXPECT_THAT(log, HasSubstr("log lines are left out repeated=\"again and again\""));
  EXPECT_THAT(log, HasSubstr("something else"));
}

TEST(Log, AfterForgettingEveryLineIsWrittenAgain) {
  Logged([] {
    for (int i = 0; i < 2 * LogBudget::kBurst; ++i) LogInfo("many a time");
  });
  const std::string log = Logged([] { LogInfo("many a time"); });
  EXPECT_THAT(log, EndsWith(" info many a time\n"));
}

}  // namespace
}  // namespace attune
