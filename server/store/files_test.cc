#include "server/store/files.h"

#include "gtest/gtest.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

class ReplaceFileTest : public ::testing::Test {
 protected:
  TestDirectory directory_;
  const std::string path_ = directory_.path() + "/file";
};

TEST_F(ReplaceFileTest, PutsTheNewBytesInPlaceOfTheOld) {
  ASSERT_TRUE(ReplaceFile(path_, "a longer text").ok());
  ASSERT_TRUE(ReplaceFile(path_, "text").ok());
  EXPECT_EQ(*ReadFile(path_), "text");
}

TEST_F(ReplaceFileTest, MindsNothingThatACrashLeft) {
  ASSERT_TRUE(WriteNewFile(path_ + ".new", "half").ok());
  ASSERT_TRUE(ReplaceFile(path_, "whole").ok());
  EXPECT_EQ(*ReadFile(path_), "whole");
  EXPECT_EQ(ReadFile(path_ + ".new").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ReplaceFileTest, NeedsItsDirectory) {
  EXPECT_EQ(ReplaceFile(directory_.path() + "/none/file", "text").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace attune::store
