#include "client/cli/table.h"

#include "gtest/gtest.h"

namespace attune::cli {
namespace {

Table Sample() {
  Table table({{"name"}, {"us", kNumber}, {"variant", kFlexible}});
  table.Row({"first", "1.50", "attention_wmma:BLOCK_M=64,BLOCK_N=32"});
  table.Row({"b", "1234.00", "x"});
  return table;
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(Sample().Render(0, false),
            "name        us  variant\n"
            "first     1.50  attention_wmma:BLOCK_M=64,BLOCK_N=32\n"
            "b      1234.00  x\n");
}

TEST(Table, ShortensOnlyTheFlexibleColumnToTheTerminalsWidth) {
  EXPECT_EQ(Sample().Render(32, false),
            "name        us  variant\n"
            "first     1.50  attention_wmm...\n"
            "b      1234.00  x\n");
}

TEST(Table, NeverClipsWhatIsNotFlexible) {
  EXPECT_EQ(Sample().Render(5, false),
            "name        us  variant\n"
            "first     1.50  attenti...\n"
            "b      1234.00  x\n");
}

TEST(Table, ClipsNamesLast) {
  Table table({{"problem", kName}, {"us", kNumber}, {"variant", kFlexible}});
  table.Row({"b1.h32.kvh8.q1.kv8192.d128.bf16.page16", "1.50", "attention_mma:BLOCK_M=64"});
  EXPECT_EQ(table.Render(56, false),
            "problem                                   us  variant\n"
            "b1.h32.kvh8.q1.kv8192.d128.bf16.page16  1.50  attenti...\n");
  EXPECT_EQ(table.Render(52, false),
            "problem                               us  variant\n"
            "b1.h32.kvh...8192.d128.bf16.page16  1.50  attenti...\n");
  EXPECT_EQ(table.Render(20, false),
            "problem                     us  variant\n"
            "b1.h32....28.bf16.page16  1.50  attenti...\n");
}

TEST(Table, LeavesOutWhatCanBeSparedWhereThereIsNoRoom) {
  Table table({{"name"}, {"us", kNumber}, {"regs", kNumber, 2}, {"SMs", kNumber, 1}, {"variant", kFlexible}});
  table.Row({"first", "1.50", "96", "58", "attention_wmma:BLOCK_M=64"});
  EXPECT_EQ(table.Render(50, false),
            "name     us  regs  SMs  variant\n"
            "first  1.50    96   58  attention_wmma:BLOCK_M=64\n");
  EXPECT_EQ(table.Render(48, false),
            "name     us  SMs  variant\n"
            "first  1.50   58  attention_wmma:BLOCK_M=64\n");
  EXPECT_EQ(table.Render(30, false),
            "name     us  variant\n"
            "first  1.50  attention_wmma...\n");
  EXPECT_EQ(table.Render(0, false), table.Render(200, false));
}

TEST(Table, ShowsOfVariantsWhatDiffersWhereTheyHaveNoRoom) {
  Table table({{"us", kNumber}, {"variant", kVariant}});
  table.Row({"1.50", "attention_simt:BLOCK_M=64,VEC=4,UNROLL=1"});
  table.Row({"2.50", "attention_simt:BLOCK_M=64,VEC=4,UNROLL=2"});
  EXPECT_EQ(table.Render(30, false),
            "  us  variant\n"
            "1.50  ...UNROLL=1\n"
            "2.50  ...UNROLL=2\n");
  EXPECT_EQ(table.Render(46, false), table.Render(0, false)) << "there is room";
}

TEST(Table, WrapsTheLastColumnAtItsSpaces) {
  Table table({{""}, {"", kWrapped}});
  table.Row({"time", "41.20 us, 95% interval 41.00..41.50"});
  table.Row({"variant", "attention_wmma:BLOCK_M=64,BLOCK_N=32"});
  EXPECT_EQ(table.Render(30, false),
            "time     41.20 us, 95%\n"
            "         interval 41.00..41.50\n"
            "variant  attention_wmma:BLOCK_M=64,BLOCK_N=32\n")
      << "a word stays whole";
  EXPECT_EQ(table.Render(0, false),
            "time     41.20 us, 95% interval 41.00..41.50\n"
            "variant  attention_wmma:BLOCK_M=64,BLOCK_N=32\n");
}

TEST(Table, ColoursDoNotMoveColumns) {
  Table table({{"a"}, {"b"}});
  table.Row({{"OK", Color::kGreen}, "x"});
  EXPECT_EQ(table.Render(0, true), "\033[1ma\033[0m   \033[1mb\033[0m\n\033[32mOK\033[0m  x\n");
  EXPECT_EQ(table.Render(0, false), "a   b\nOK  x\n");
}

TEST(Table, CountsCodePointsNotBytes) {
  Table table({{""}, {""}});
  table.Row({"\xc3\xa9\xc3\xa9", "x"});
  table.Row({"abc", "y"});
  EXPECT_EQ(table.Render(0, false), "\xc3\xa9\xc3\xa9   x\nabc  y\n");
}

TEST(Table, EscapesWhatOthersWroteIntoACell) {
  Table table({{"what"}, {"n", kNumber}});
  table.Row({std::string("\x1b]0;pwned\x07two\nlines"), "1"});
  EXPECT_EQ(table.Render(0, true),
            "\x1b[1mwhat\x1b[0m                        \x1b[1mn\x1b[0m\n\\x1b]0;pwned\\x07two\\nlines  1\n");
}

TEST(PrintableLine, KeepsTheNewlinesAroundALineAlone) {
  EXPECT_EQ(PrintableLine("\nscratch \x1b[2J:\n"), "\nscratch \\x1b[2J:\n");
  EXPECT_EQ(PrintableLine("a\nb"), "a\\nb");
  EXPECT_EQ(PrintableLine("\n\n"), "\n\n");
  EXPECT_EQ(PrintableLine(""), "");
}

TEST(StyledLine, ItsColoursAreItsOwn) {
  EXPECT_EQ(StyledLine().Add("\x1b[31mred", Color::kGreen).Render(0, true), "\x1b[32m\\x1b[31mred\x1b[0m");
}

TEST(Wrap, BreaksAtSpacesElseAfterCommas) {
  using Lines = std::vector<absl::string_view>;
  EXPECT_EQ(Wrap("one two three", 0), Lines({"one two three"}));
  EXPECT_EQ(Wrap("one two three", 13), Lines({"one two three"}));
  EXPECT_EQ(Wrap("one two three", 8), Lines({"one two", "three"}));
  EXPECT_EQ(Wrap("one two three", 7), Lines({"one two", "three"}));
  EXPECT_EQ(Wrap("one two three", 9, 4), Lines({"one two", "three"}));
  EXPECT_EQ(Wrap("f:A=1,B=2,C=3", 9), Lines({"f:A=1,", "B=2,C=3"}));
  EXPECT_EQ(Wrap("an f:A=1,B=2", 8), Lines({"an", "f:A=1,", "B=2"}));
  EXPECT_EQ(Wrap("unbroken word", 4), Lines({"unbroken", "word"})) << "a word without a comma stays whole";
  EXPECT_EQ(Wrap("  two indents", 6), Lines({"  two", "indents"}));
  EXPECT_EQ(Wrap("\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9", 5), Lines({"\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9"}));
  EXPECT_EQ(Wrap("", 5), Lines({""}));
}

TEST(WrappedLine, IndentsAsTheFirstLineIs) {
  EXPECT_EQ(WrappedLine("\n  Try: a smaller tile", 12), "\n  Try: a\n  smaller\n  tile");
  EXPECT_EQ(WrappedLine("\x1b[31m red", 9), "\\x1b[31m\nred");
  EXPECT_EQ(WrappedLine("as long as it is", 0), "as long as it is");
}

TEST(StyledLine, WrapsWithItsColours) {
  StyledLine line;
  line.Add("1. ").Add("GRID", Color::kBold).Add(": few CTAs");
  EXPECT_EQ(line.RenderWrapped(0, false), "1. GRID: few CTAs");
  EXPECT_EQ(line.RenderWrapped(12, true), "1. \033[1mGRID\033[0m: few\nCTAs");
  EXPECT_EQ(line.RenderWrapped(4, true), "1.\n\033[1mGRID\033[0m:\nfew\nCTAs");
}

TEST(Clip, MarksWhatItLeftOut) {
  EXPECT_EQ(Clip("abcdef", 6), "abcdef");
  EXPECT_EQ(Clip("abcdef", 5), "ab...");
  EXPECT_EQ(Clip("abcdef", 2), "ab");
}

TEST(Table, ProblemsThatEndDifferentlyCanBeToldApart) {
  const std::string shape = "b1.h32.kvh8.q1.kv1024.d128.";
  EXPECT_EQ(ClipMiddle(shape + "f16", 24), "b1.h32....v1024.d128.f16");
  EXPECT_NE(ClipMiddle(shape + "f16", 24), ClipMiddle(shape + "bf16", 24));
  EXPECT_EQ(ClipMiddle(shape, 80), shape);
}

TEST(StyledLine, ClipsAcrossItsPieces) {
  StyledLine line;
  line.Add("abc", Color::kRed).Add("defgh");
  EXPECT_EQ(line.Render(0, false), "abcdefgh");
  EXPECT_EQ(line.Render(7, false), "abcd...");
  EXPECT_EQ(line.Render(5, true), "\033[31mab\033[0m...");
}

}  // namespace
}  // namespace attune::cli
