#include "server/base/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/log_budget.h"
#include "server/base/log_journal.h"
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

TEST(Log, TellsTheJournalItsLinesPriorities) {
  const std::string log = Logged([] {
    PrefixLogWithPriorities(true);
    LogInfo("news");
    LogError("trouble");
    PrefixLogWithPriorities(false);
    LogWarning("plain");
  });
  EXPECT_THAT(log, ::testing::ContainsRegex("^<6>[0-9TZ:.-]+ info news\n<3>[0-9TZ:.-]+ error trouble\n[0-9]"));
}

TEST(Log, KnowsTheJournalByItsFileAlone) {
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  struct stat file = {};
  ASSERT_EQ(fstat(ends[1], &file), 0);
  const std::string stream = absl::StrCat(file.st_dev, ":", file.st_ino);
  EXPECT_TRUE(IsJournal(ends[1], stream));
  for (const char* other : {"", ":", "1:2", "x"}) EXPECT_FALSE(IsJournal(ends[1], other));
  close(ends[0]);
  close(ends[1]);
  EXPECT_FALSE(IsJournal(ends[1], stream));
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
