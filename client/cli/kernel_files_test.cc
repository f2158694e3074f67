#include "client/cli/kernel_files.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KernelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(directory_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::vector<std::string> PathsOf(const std::string& path) {
    const auto files = ReadKernelFiles(path);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> paths;
    for (const v1::SourceFile& file : *files) paths.push_back(file.path());
    return paths;
  }

  const std::string directory_ = ::testing::TempDir() + "/attune_kernel_files";
};

TEST_F(KernelFilesTest, AreThoseOfTheFolderByPathWithoutHiddenOnes) {
  Write("family.textproto", "m");
  Write("kernel.cl", "k");
  Write("tiles/tile.h", "t");
  Write(".git/config", "x");
  Write(".kernel.cl.swp", "x");
  EXPECT_THAT(PathsOf(directory_), ElementsAre("family.textproto", "kernel.cl", "tiles/tile.h"));
  EXPECT_THAT(PathsOf(directory_ + "/"), ElementsAre("family.textproto", "kernel.cl", "tiles/tile.h"));
  EXPECT_THAT(PathsOf(directory_ + "/kernel.cl"), ElementsAre("kernel.cl"));
}

TEST_F(KernelFilesTest, OfAWrongFolderAreNotSent) {
  EXPECT_EQ(ReadKernelFiles(directory_).status().code(), absl::StatusCode::kNotFound);
  for (int i = 0; i < 33; ++i) Write("f" + std::to_string(i), "");
  EXPECT_EQ(ReadKernelFiles(directory_).status().code(), absl::StatusCode::kInvalidArgument);
  std::filesystem::remove_all(directory_);
  Write("large", std::string((256 << 10) + 1, 'x'));
  EXPECT_THAT(std::string(ReadKernelFiles(directory_).status().message()), HasSubstr("256 KiB, which no server takes"));
}

TEST_F(KernelFilesTest, AreWrittenAsTheyWereRead) {
  Write("in/tiles/tile.h", "t\n");
  const auto files = ReadKernelFiles(directory_ + "/in");
  ASSERT_TRUE(WriteKernelFiles(*files, directory_ + "/out").ok());
  EXPECT_THAT(PathsOf(directory_ + "/out"), ElementsAre("tiles/tile.h"));
  EXPECT_EQ(WriteKernelFiles(*files, directory_ + "/out").code(), absl::StatusCode::kFailedPrecondition)
      << "nothing is overwritten";
}

TEST_F(KernelFilesTest, ThatAServerCallsByAWayOutAreNotWritten) {
  google::protobuf::RepeatedPtrField<v1::SourceFile> files;
  v1::SourceFile& file = *files.Add();
  for (const char* path : {"../x", "/tmp/x", "a/../../x", ""}) {
    file.set_path(path);
    EXPECT_EQ(WriteKernelFiles(files, directory_).code(), absl::StatusCode::kInvalidArgument) << path;
  }
}

}  // namespace
}  // namespace attune::cli
