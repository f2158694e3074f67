// What SQLite's files add to the contract: locks, permissions, full disks.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/sqlite/connection.h"
#include "server/store/testing/full_disk.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::HasSubstr;

class SqliteStoreTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Store>> Open() { return OpenSqliteStore({.directory = directory_.path()}); }

  std::unique_ptr<Store> MustOpen() {
    absl::StatusOr<std::unique_ptr<Store>> store = Open();
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::string PathOf(absl::string_view file) const { return absl::StrCat(directory_.path(), "/", file); }

  const TestDirectory directory_;
};

// Becomes a user without rights for as long as it lives; only root can.
class AsNobody {
 public:
  AsNobody() : became_(geteuid() == 0 && seteuid(65534) == 0) {}
  ~AsNobody() {
    if (became_ && seteuid(0) != 0) abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  const bool became_;
};

CompiledArtifact CompiledFrom(absl::string_view bytes) {
  CompiledArtifact artifact;
  artifact.compile_key = "key";
  artifact.toolchain = "nvrtc 13.0";
  artifact.sha256 = Sha256(bytes);
  return artifact;
}

TEST_F(SqliteStoreTest, MakesItsDirectory) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = PathOf("a/b/c")});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(std::filesystem::exists(PathOf("a/b/c/attune.db")));
  EXPECT_EQ(OpenSqliteStore({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SqliteStoreTest, APageOfLargeItemsEndsEarly) {
  const std::unique_ptr<Store> store = MustOpen();
  v1::Baseline baseline;
  baseline.set_problem_text("b1.h1.q16.d64.f16");
  baseline.set_device_id("cuda:0");
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_note(std::string(300'000, 'n'));  // as earlier versions took it
  for (int i = 0; i < 20; ++i) {
    baseline.set_contender(absl::StrCat("contender ", i));
    ASSERT_TRUE(store->RecordBaseline(baseline).ok());
  }
  std::string token;
  size_t listed = 0;
  do {
    const auto page = store->ListBaselines("", "", 1000, token);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->items.size(), 7u);
    listed += page->items.size();
    token = page->next_page_token;
  } while (!token.empty());
  EXPECT_EQ(listed, 20u);
}

TEST_F(SqliteStoreTest, RefusesASecondOpenerAndNamesTheFirst) {
  std::unique_ptr<Store> first = MustOpen();
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("process ", getpid())));
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf("attune.lock")));
  first.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(SqliteStoreTest, SaysWhichFileCannotBeWritten) {
  MustOpen();
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  ASSERT_EQ(chmod(PathOf("attune.lock").c_str(), 0444), 0);
  absl::Status status;
  {
    const AsNobody nobody;
    status = Open().status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf("attune.lock")));
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(SqliteStoreTest, RefusesADatabaseThatCanOnlyBeRead) {
  MustOpen();
  ASSERT_EQ(chmod(directory_.path().c_str(), 0777), 0);
  ASSERT_EQ(chmod(PathOf("attune.lock").c_str(), 0666), 0);
  ASSERT_EQ(chmod(PathOf("attune.db").c_str(), 0444), 0);
  absl::Status status;
  {
    const AsNobody nobody;
    status = Open().status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf("attune.db")));
}

TEST_F(SqliteStoreTest, SaysWhenTheFileIsNoDatabase) {
  std::ofstream(PathOf("attune.db")) << std::string(8192, 'x');
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(PathOf("attune.db")));
}

TEST_F(SqliteStoreTest, GoesOnAfterTheDiskWasFull) {
  FullDisk disk;
  std::unique_ptr<Store> store = MustOpen();
  const std::string before = store->AppendTrial(SampleTrial(), {}).value();
  disk.Set(true);
  const absl::Status status = store->AppendTrial(SampleTrial(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_GT(disk.refused(), 0);
  EXPECT_TRUE(store->GetTrial(before).ok()) << "reading needs no space";
  disk.Set(false);
  absl::StatusOr<std::string> after = store->AppendTrial(SampleTrial(), {});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(store->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 2U);
  store.reset();
  EXPECT_TRUE(MustOpen()->GetTrial(*after).ok());
}

TEST_F(SqliteStoreTest, TellsEveryWriterThatTheDiskIsFull) {
  FullDisk disk;
  std::unique_ptr<Store> store = MustOpen();
  disk.Set(true);
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&store] {
      EXPECT_EQ(store->AppendTrial(SampleTrial(), {}).status().code(), absl::StatusCode::kResourceExhausted);
    });
  }
  for (std::thread& writer : writers) writer.join();
  disk.Set(false);
  EXPECT_TRUE(store->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.empty());
}

// The same on a file system that really is full; needs the right to mount one.
TEST_F(SqliteStoreTest, SurvivesASmallFileSystem) {
  const std::string mounted = PathOf("mounted");
  ASSERT_TRUE(std::filesystem::create_directory(mounted));
  if (mount("tmpfs", mounted.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs: " << strerror(errno) << "; FullDisk's tests cover the database's part";
  }
  const absl::Cleanup unmount = [&mounted] { umount2(mounted.c_str(), MNT_DETACH); };
  std::ofstream(mounted + "/filler") << std::string(200'000, 'x');
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = mounted + "/store"});
  ASSERT_TRUE(store.ok()) << store.status();
  v1::Trial trial = SampleTrial();
  trial.set_detail(std::string(20'000, 'd'));
  std::string last;
  absl::Status status;
  while (status.ok()) {
    absl::StatusOr<std::string> name = (*store)->AppendTrial(trial, {});
    status = name.status();
    if (name.ok()) last = *name;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  const std::string code(300'000, 'c');
  const absl::Status put = (*store)->PutArtifact(CompiledFrom(code), code);
  EXPECT_EQ(put.code(), absl::StatusCode::kResourceExhausted) << put;
  EXPECT_TRUE((*store)->GetTrial(last).ok());

  ASSERT_TRUE(std::filesystem::remove(mounted + "/filler"));
  absl::StatusOr<std::string> name = (*store)->AppendTrial(trial, {});
  EXPECT_TRUE(name.ok()) << name.status();
  store->reset();
  store = OpenSqliteStore({.directory = mounted + "/store"});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->GetTrial(last).ok());
  EXPECT_TRUE((*store)->GetTrial(*name).ok());
}

TEST_F(SqliteStoreTest, WritesNothingWhileTheDatabaseIsMovedAway) {
  std::unique_ptr<Store> store = MustOpen();
  const std::string before = store->AppendTrial(SampleTrial(), {}).value();
  std::filesystem::rename(PathOf("attune.db"), PathOf("away.db"));
  const absl::Status status = store->AppendTrial(SampleTrial(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("attune.db was moved or removed"));
  EXPECT_FALSE(std::filesystem::exists(PathOf("attune.db")));
  std::filesystem::rename(PathOf("away.db"), PathOf("attune.db"));
  absl::StatusOr<std::string> after = store->AppendTrial(SampleTrial(), {});
  ASSERT_TRUE(after.ok()) << after.status();
  store.reset();
  store = MustOpen();
  EXPECT_TRUE(store->GetTrial(before).ok());
  EXPECT_TRUE(store->GetTrial(*after).ok());
  EXPECT_EQ(store->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 2U);
}

TEST_F(SqliteStoreTest, WritesNothingIntoADatabaseThatWasCut) {
  std::unique_ptr<Store> store = MustOpen();
  store->AppendTrial(SampleTrial(), {}).value();
  std::filesystem::resize_file(PathOf("attune.db"), 0);
  const absl::Status status = store->AppendTrial(SampleTrial(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("attune.db was cut"));
}

TEST_F(SqliteStoreTest, CompilesAgainWhatWasDamagedOnDisk) {
  std::unique_ptr<Store> store = MustOpen();
  const std::string sha256 = Sha256("cubin");
  ASSERT_TRUE(store->PutArtifact(CompiledFrom("cubin"), "cubin").ok());
  std::ofstream(PathOf(absl::StrCat("artifacts/", sha256.substr(0, 2), "/", sha256))) << "other";
  EXPECT_TRUE(store->FindArtifact("key", "nvrtc 13.0").ok());
  EXPECT_EQ(store->ReadArtifact(sha256).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(store->PutArtifact(CompiledFrom("cubin"), "cubin").ok());
  EXPECT_EQ(store->ReadArtifact(sha256).value(), "cubin");
}

}  // namespace
}  // namespace attune::store
