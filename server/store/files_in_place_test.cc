#include "server/store/files_in_place.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

using testing::HasSubstr;

class FilesInPlaceTest : public testing::Test {
 protected:
  FilesInPlaceTest() { Write(database_, "whole"); }

  static void Write(const std::string& path, const char* text) { std::ofstream(path) << text; }
  void ExpectRefused(FilesInPlace& files, const std::string& what) {
    const absl::Status status = files.Check();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }

  const TestDirectory directory_;
  const std::string database_ = directory_.path() + "/attune.db";
  const std::string log_ = database_ + "-wal";
};

TEST_F(FilesInPlaceTest, GrowingIsFine) {
  FilesInPlace files(database_);
  EXPECT_TRUE(files.Check().ok());
  Write(database_, "whole and more");
  EXPECT_TRUE(files.Check().ok());
  Write(log_, "appears");
  EXPECT_TRUE(files.Check().ok());
  Write(log_, "");
  EXPECT_TRUE(files.Check().ok());
}

TEST_F(FilesInPlaceTest, AMovedDatabaseIsMissedUntilItIsBack) {
  FilesInPlace files(database_);
  std::filesystem::rename(database_, directory_.path() + "/away");
  ExpectRefused(files, "attune.db was moved or removed");
  std::filesystem::rename(directory_.path() + "/away", database_);
  EXPECT_TRUE(files.Check().ok());
}

TEST_F(FilesInPlaceTest, AMissingLogIsMissed) {
  Write(log_, "log");
  FilesInPlace files(database_);
  std::filesystem::remove(log_);
  ExpectRefused(files, "attune.db-wal was moved or removed");
}

TEST_F(FilesInPlaceTest, AnotherFileOfThatNameIsNotTheDatabase) {
  FilesInPlace files(database_);
  std::filesystem::rename(database_, directory_.path() + "/away");
  Write(database_, "other");
  ExpectRefused(files, "attune.db was replaced");
}

TEST_F(FilesInPlaceTest, ACutDatabaseIsNoticed) {
  FilesInPlace files(database_);
  std::filesystem::resize_file(database_, 0);
  ExpectRefused(files, "attune.db was cut from 5 to 0 bytes");
}

}  // namespace
}  // namespace attune::store
