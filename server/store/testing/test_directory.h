// A directory for one test, removed with all that is in it.
#ifndef ATTUNE_SERVER_STORE_TESTING_TEST_DIRECTORY_H_
#define ATTUNE_SERVER_STORE_TESTING_TEST_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace attune::store {

class TestDirectory {
 public:
  TestDirectory() : path_(testing::TempDir() + "attune_store_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_TEST_DIRECTORY_H_
