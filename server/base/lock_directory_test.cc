#include "server/base/lock_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace attune {
namespace {

using ::testing::HasSubstr;

class LockDirectoryTest : public ::testing::Test {
 protected:
  LockDirectoryTest() { std::filesystem::create_directories(path_); }
  ~LockDirectoryTest() override { std::filesystem::remove_all(path_); }

  const std::string path_ = ::testing::TempDir() + "/lock_directory_test";
};

TEST_F(LockDirectoryTest, OneThatOnlyItsOwnerAndGroupWriteToWillDo) {
  std::filesystem::permissions(path_, std::filesystem::perms(0775));
  EXPECT_TRUE(CheckLockDirectory(path_).ok());
  EXPECT_TRUE(CheckLockDirectory(path_ + "/").ok());
  EXPECT_TRUE(CheckLockDirectory(path_ + "/none/yet").ok());
}

TEST_F(LockDirectoryTest, OneThatEveryUserWritesToWillNot) {
  std::filesystem::permissions(path_, std::filesystem::perms(01777));
  EXPECT_THAT(std::string(CheckLockDirectory(path_).message()), HasSubstr("may be written to by every user"));
}

TEST_F(LockDirectoryTest, ALinkWillNotWhereverItPoints) {
  const std::string link = path_ + "/link";
  std::filesystem::create_directory_symlink(path_, link);
  EXPECT_THAT(std::string(CheckLockDirectory(link + "/").message()), HasSubstr("is a symbolic link"));
}

}  // namespace
}  // namespace attune
