// Families written by tests: files in a directory of their own.
#ifndef ATTUNE_SERVER_SPACE_TESTING_TESTING_FAMILY_H_
#define ATTUNE_SERVER_SPACE_TESTING_TESTING_FAMILY_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace attune::space {

// A directory of families, removed with the object.
class TestingFamilies {
 public:
  TestingFamilies() {
    static int number = 0;
    root_ = absl::StrCat(::testing::TempDir(), "/attune-families-", getpid(), "-", number++);
    std::filesystem::create_directories(root_);
  }
  ~TestingFamilies() { std::filesystem::remove_all(root_); }
  TestingFamilies(const TestingFamilies&) = delete;
  TestingFamilies& operator=(const TestingFamilies&) = delete;

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_TESTING_TESTING_FAMILY_H_
