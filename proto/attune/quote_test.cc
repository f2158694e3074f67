#include "proto/attune/quote.h"

#include <string>

#include "gtest/gtest.h"

namespace attune {
namespace {

TEST(Printable, LeavesPrintableTextAlone) {
  EXPECT_EQ(Printable("b1.h1.q8 'x' \\d \"y\""), "b1.h1.q8 'x' \\d \"y\"");
  EXPECT_EQ(Printable("\u00e9 \u2026 \U0001F600"), "\u00e9 \u2026 \U0001F600");
  EXPECT_EQ(Printable(""), "");
}

TEST(Printable, EscapesWhatATerminalWouldActOn) {
  EXPECT_EQ(Printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(Printable("a\r\nb\tc"), "a\\r\\nb\\tc");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\x7f"), "\\x7f");
  EXPECT_EQ(Printable("\u009b31m"), "\\xc2\\x9b31m");     // C1's control sequence introducer
  EXPECT_EQ(Printable("a\u202eb"), "a\\xe2\\x80\\xaeb");  // right-to-left override
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("a\xe2\x82"), "a\\xe2\\x82");                  // cut short
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");                    // not the shortest form
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(ErrorLine, IsPrintableAndCutBetweenCharacters) {
  EXPECT_EQ(ErrorLine("two\nlines", 100), "two\\nlines");
  EXPECT_EQ(ErrorLine("0123456789", 10), "0123456789");
  EXPECT_EQ(ErrorLine("0123456789", 9), "012345...");
  EXPECT_EQ(ErrorLine("\u00e9\u00e9\u00e9\u00e9", 6), "\u00e9...");
}

TEST(Quoted, KeepsWhatFits) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("q0"), "'q0'");
  EXPECT_EQ(Quoted(std::string(64, 'a')), "'" + std::string(64, 'a') + "'");
}

TEST(Quoted, CutsAtACharacterAndSaysHowLongTheValueIs) {
  EXPECT_EQ(Quoted(std::string(5000000, 'a')), "'" + std::string(64, 'a') + "...' (5000000 bytes)");
  std::string accents, first;
  for (int i = 0; i < 100; ++i) accents += "\u00e9";
  for (int i = 0; i < 64; ++i) first += "\u00e9";
  EXPECT_EQ(Quoted(accents), "'" + first + "...' (200 bytes)");
}

TEST(Cleaned, KeepsLinesAndDropsOtherControls) {
  EXPECT_EQ(Cleaned("a.cl:1:\terror\r\n\x1b[31mred\x1b[0m\0", 100), "a.cl:1:\terror\n[31mred[0m");
}

TEST(Cleaned, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(Cleaned("caf\xe9 \xc3\xa9", 100), "caf\xEF\xBF\xBD \xc3\xa9");
  EXPECT_EQ(Cleaned("half \xe2\x82", 100), "half \xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Cleaned, CutsBetweenCharacters) {
  EXPECT_EQ(Cleaned("12\xe2\x82\xac", 5), "12\xe2\x82\xac");
  EXPECT_EQ(Cleaned("12\xe2\x82\xac", 4), "12");
  EXPECT_EQ(Cleaned("12\xe9", 4), "12");
}

}  // namespace
}  // namespace attune
