#include "client/cli/line_diff.h"

#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using Files = google::protobuf::RepeatedPtrField<v1::SourceFile>;

Files FilesOf(const std::vector<std::pair<std::string, std::string>>& texts) {
  Files files;
  for (const auto& [path, text] : texts) {
    files.Add()->set_path(path);
    files.rbegin()->set_text(text);
  }
  return files;
}

TEST(LineDiff, OfEqualFilesIsEmpty) {
  const Diff diff = DiffOf(FilesOf({{"a", "x\ny\n"}}), FilesOf({{"a", "x\ny\n"}}));
  EXPECT_EQ(diff.text, "");
  EXPECT_EQ(diff.added + diff.removed, 0U);
}

TEST(LineDiff, HasThreeLinesAroundAChange) {
  const Diff diff =
      DiffOf(FilesOf({{"a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}}), FilesOf({{"a", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"}}));
  EXPECT_EQ(diff.text, "--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  EXPECT_EQ(diff.added, 1U);
  EXPECT_EQ(diff.removed, 1U);
}

TEST(LineDiff, PartsChangesThatAreFarFromEachOther) {
  std::string before;
  std::string after;
  for (int i = 0; i < 30; ++i) {
    before += std::to_string(i) + "\n";
    after += i == 5 || i == 20 ? "new\n" : std::to_string(i) + "\n";
  }
  const Diff diff = DiffOf(FilesOf({{"a", before}}), FilesOf({{"a", after}}));
  EXPECT_NE(diff.text.find("@@ -3,7 +3,7 @@"), std::string::npos) << diff.text;
  EXPECT_NE(diff.text.find("@@ -18,7 +18,7 @@"), std::string::npos) << diff.text;
}

TEST(LineDiff, ShowsFilesThatCameAndWent) {
  const Diff diff = DiffOf(FilesOf({{"gone", "x\n"}, {"same", "y\n"}}), FilesOf({{"new", "z\n"}, {"same", "y\n"}}));
  EXPECT_EQ(diff.text, "--- a/gone\n+++ b/gone\n@@ -1,1 +0,0 @@\n-x\n--- a/new\n+++ b/new\n@@ -0,0 +1,1 @@\n+z\n");
}

TEST(LineDiff, OfTwoLargeFilesIsOneChange) {
  std::string before;
  std::string after;
  for (int i = 0; i < 5000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  const Diff diff = DiffOf(FilesOf({{"a", before}}), FilesOf({{"a", after}}));
  EXPECT_EQ(diff.added, 5000U);
  EXPECT_EQ(diff.removed, 5000U);
}

}  // namespace
}  // namespace attune::cli
