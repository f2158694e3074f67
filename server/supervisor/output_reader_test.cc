#include "server/supervisor/output_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::supervisor {
namespace {

using ::testing::ElementsAre;

class LineSplitterTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines_;
  LineSplitter splitter_{[this](absl::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(LineSplitterTest, JoinsWhatComesInPieces) {
  splitter_.Add("one\ntw");
  splitter_.Add("o\n\nthree\r\nfo");
  EXPECT_THAT(lines_, ElementsAre("one", "two", "three"));
  splitter_.Finish();
  splitter_.Finish();
  EXPECT_THAT(lines_, ElementsAre("one", "two", "three", "fo"));
}

TEST_F(LineSplitterTest, CutsALineWithoutEnd) {
  for (int i = 0; i < 100; ++i) splitter_.Add(std::string(LineSplitter::kMostBytes, 'x'));
  splitter_.Add("\nnext\n");
  EXPECT_THAT(lines_, ElementsAre(std::string(LineSplitter::kMostBytes, 'x') + "...", "next"));
}

TEST(OutputReader, BringsEverythingAndEndsThoughTheOtherEndIsOpen) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  std::vector<std::string> lines;
  {
    auto reader = OutputReader::Start(fds[0], [&lines](absl::string_view line) { lines.emplace_back(line); });
    ASSERT_TRUE(reader.ok()) << reader.status();
    ASSERT_EQ(write(fds[1], "one\ntwo", 7), 7);
  }
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  close(fds[1]);
}

}  // namespace
}  // namespace attune::supervisor
