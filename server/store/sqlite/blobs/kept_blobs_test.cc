// What blobs are on a disk. What they are to their callers is in store_contract_blobs_test.cc.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/store.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class KeptBlobsTest : public testing::Test {
 protected:
  KeptBlobsTest() { Open(); }

  void Open(int64_t limit = kDefaultBlobLimit) {
    store_.reset();
    auto store = OpenSqliteStore({.directory = directory_.path(), .blob_limit = limit});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  v1::Blob Put(const std::string& file, const std::string& data) {
    v1::Blob blob;
    blob.set_principal("token:ci");
    blob.set_namespace_("triton");
    blob.set_key("K7");
    blob.set_file(file);
    blob.set_data(data);
    absl::StatusOr<v1::Blob> put = store_->blobs().Put(blob);
    EXPECT_TRUE(put.ok()) << put.status();
    return put.value_or(v1::Blob());
  }

  std::vector<std::string> List() {
    std::vector<std::string> files;
    const absl::StatusOr<Page<v1::Blob>> page = store_->blobs().List({}, 1000, "");
    EXPECT_TRUE(page.ok()) << page.status();
    for (const v1::Blob& blob : page->items) files.push_back(blob.file());
    return files;
  }

  std::string PathOf(const std::string& data) const {
    const std::string sha256 = Sha256(data);
    return absl::StrCat(directory_.path(), "/blobs/", sha256.substr(0, 2), "/", sha256);
  }

  size_t Files() const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path() + "/blobs")) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    return files;
  }

  const TestDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(KeptBlobsTest, HaveOneFileForOneContentUntilNobodyHasIt) {
  Put("a", "same");
  Put("b", "same");
  EXPECT_EQ(Files(), 1U);
  Put("a", "other");
  EXPECT_EQ(Files(), 2U);
  Put("b", "other");
  EXPECT_EQ(Files(), 1U);
  EXPECT_FALSE(std::filesystem::exists(PathOf("same")));
  ASSERT_TRUE(store_->blobs().Delete({}).ok());
  EXPECT_EQ(Files(), 0U);
}

TEST_F(KeptBlobsTest, TakeNoMoreFilesThanTheirLimit) {
  Open(3 * 4096);
  for (int i = 0; i < 20; ++i) Put(absl::StrCat("f", i), absl::StrCat("data ", i));
  EXPECT_THAT(List(), ElementsAre("f19", "f18", "f17"));
  EXPECT_EQ(Files(), 3U);
}

TEST_F(KeptBlobsTest, OfALowerLimitGoAtTheStart) {
  for (int i = 0; i < 5; ++i) Put(absl::StrCat("f", i), absl::StrCat("data ", i));
  Open(2 * 4096);
  EXPECT_THAT(List(), ElementsAre("f4", "f3"));
  EXPECT_EQ(Files(), 2U);
  Open(0);
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_EQ(Files(), 0U);
}

// What is used counts over a restart once it was written down.
TEST_F(KeptBlobsTest, RememberWhatWasUsedAfterRetention) {
  const v1::Blob first = Put("f0", "data 0");
  for (int i = 1; i < 3; ++i) Put(absl::StrCat("f", i), absl::StrCat("data ", i));
  ASSERT_TRUE(store_->blobs().Read(first).ok());
  Retention retention;
  retention.now = absl::Now();
  ASSERT_TRUE(store_->Retain(retention, [] { return false; }).ok());
  Open(2 * 4096);
  EXPECT_THAT(List(), ElementsAre("f2", "f0"));
}

TEST_F(KeptBlobsTest, ThatAreDamagedOrGoneAreMissesUntilTheyArePutAgain) {
  const v1::Blob damaged = Put("damaged", "before");
  const v1::Blob gone = Put("gone", "there");
  std::ofstream(PathOf("before")) << "after!";
  std::filesystem::remove(PathOf("there"));
  EXPECT_EQ(store_->blobs().Read(damaged).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->blobs().Read(gone).status().code(), absl::StatusCode::kNotFound);
  Put("damaged", "before");
  EXPECT_EQ(store_->blobs().Read(damaged).value(), "before");
}

TEST_F(KeptBlobsTest, WhoseFilesAreMissingGoAtTheStartAndSoDoFilesOfNoBlob) {
  Put("gone", "there");
  Put("stays", "here");
  std::filesystem::remove(PathOf("there"));
  std::filesystem::create_directories(std::filesystem::path(PathOf("of a crash")).parent_path());
  std::ofstream(PathOf("of a crash")) << "of a crash";
  Open();
  EXPECT_THAT(List(), ElementsAre("stays"));
  EXPECT_EQ(Files(), 1U);
}

// A backup has their rows, as it has the whole database, and none of their files.
TEST_F(KeptBlobsTest, AreInNoBackup) {
  Put("f", "data");
  const TestDirectory other;
  ASSERT_TRUE(store_->Backup(other.path() + "/backup").ok());
  EXPECT_FALSE(std::filesystem::exists(other.path() + "/backup/blobs"));
  const auto restored = OpenSqliteStore({.directory = other.path() + "/backup"});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT((*restored)->blobs().List({}, 10, "")->items, IsEmpty());
}

TEST_F(KeptBlobsTest, AreKeptByManyThreadsAtOnceWithinTheirLimit) {
  constexpr int kThreads = 8;
  Open(10 * 4096);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 8; ++i) {
        // Contents that several have at once, removed by others meanwhile.
        const v1::Blob blob = Put(absl::StrCat("f", thread, ".", i), absl::StrCat("data ", i % 7));
        const absl::StatusOr<std::string> data = store_->blobs().Read(blob);
        EXPECT_TRUE(data.ok() ? *data == absl::StrCat("data ", i % 7) : absl::IsNotFound(data.status()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<v1::Blob> left = store_->blobs().List({}, 1000, "")->items;
  EXPECT_EQ(left.size(), 10U);
  for (const v1::Blob& blob : left) EXPECT_TRUE(store_->blobs().Read(blob).ok()) << blob.file();
}

}  // namespace
}  // namespace attune::store
