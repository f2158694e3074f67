#include "server/store/artifact_files.h"

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "server/store/files.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

class ArtifactFilesTest : public testing::Test {
 protected:
  ArtifactFilesTest() { Open(); }

  void Open() {
    absl::StatusOr<std::unique_ptr<ArtifactFiles>> files = ArtifactFiles::Open(directory_.path());
    EXPECT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }

  std::string PathOf(const std::string& bytes) const {
    const std::string sha256 = Sha256(bytes);
    return directory_.path() + "/" + sha256.substr(0, 2) + "/" + sha256;
  }

  size_t FileCount() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  const TestDirectory directory_;
  std::unique_ptr<ArtifactFiles> files_;
};

TEST_F(ArtifactFilesTest, NamesAFileByItsHash) {
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  EXPECT_EQ(ReadFile(PathOf("cubin")).value(), "cubin");
  EXPECT_EQ(files_->Read(Sha256("cubin")).value(), "cubin");
  EXPECT_EQ(FileCount(), 1U);
}

TEST_F(ArtifactFilesTest, ReportsDamageAndIsRepairedByPuttingAgain) {
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  std::ofstream(PathOf("cubin")) << "cubim";
  EXPECT_EQ(files_->Read(Sha256("cubin")).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  EXPECT_EQ(files_->Read(Sha256("cubin")).value(), "cubin");
}

TEST_F(ArtifactFilesTest, ReportsARemovedFileAndMakesItAgain) {
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  ASSERT_TRUE(std::filesystem::remove(PathOf("cubin")));
  EXPECT_EQ(files_->Read(Sha256("cubin")).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  EXPECT_TRUE(files_->Read(Sha256("cubin")).ok());
}

TEST_F(ArtifactFilesTest, SetsWhenAFileWasUsed) {
  EXPECT_FALSE(files_->SetUsed(Sha256("cubin"), absl::FromUnixSeconds(1'700'000'000)).ok());
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  ASSERT_TRUE(files_->SetUsed(Sha256("cubin"), absl::FromUnixSeconds(1'700'000'000)).ok());
  ASSERT_EQ(files_->List()->size(), 1U);
  EXPECT_EQ(files_->List()->front().used, absl::FromUnixSeconds(1'700'000'000));
}

TEST_F(ArtifactFilesTest, RemovesWhatACrashLeft) {
  ASSERT_TRUE(files_->Put(Sha256("cubin"), "cubin").ok());
  const std::string left = std::filesystem::path(PathOf("cubin")).parent_path().string() + "/.tmp-1-0";
  std::ofstream(left) << "half";
  Open();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(files_->Read(Sha256("cubin")).ok());
}

TEST_F(ArtifactFilesTest, TakesTheSameBytesFromManyAtOnce) {
  const std::string bytes(100'000, 'c');
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(files_->Put(Sha256(bytes), bytes).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files_->Read(Sha256(bytes)).value(), bytes);
  EXPECT_EQ(FileCount(), 1U);
}

}  // namespace
}  // namespace attune::store
