#include "server/store/backups.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/maintenance/restore.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class BackupsTest : public testing::Test {
 protected:
  BackupsTest() : store_(OpenSqliteStore({.directory = PathOf("data")}).value()), backups_(store_.get(), PathOf("b")) {}

  std::string PathOf(absl::string_view name) const { return absl::StrCat(directory_.path(), "/", name); }

  // The incumbent's name; its artifact is `code`.
  std::string Promote(const std::string& code, int block_m, const std::string& previous) {
    CompiledArtifact artifact;
    artifact.compile_key = code;
    artifact.toolchain = "nvrtc 13.0";
    artifact.sha256 = Sha256(code);
    EXPECT_TRUE(store_->PutArtifact(artifact, code).ok());
    v1::Trial trial = SampleTrial(block_m);
    trial.set_artifact_sha256(artifact.sha256);
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(store_->AppendTrial(trial, {}).value());
    absl::StatusOr<v1::Incumbent> promoted = store_->Promote(incumbent, previous, {});
    EXPECT_TRUE(promoted.ok()) << promoted.status();
    return promoted.ok() ? promoted->name() : "";
  }

  Backup MustCreate(absl::string_view id = "") {
    absl::StatusOr<Backup> backup = backups_.Create(id);
    EXPECT_TRUE(backup.ok()) << backup.status();
    return backup.ok() ? *std::move(backup) : Backup();
  }

  std::vector<std::string> List(int page_size) {
    std::vector<std::string> ids;
    std::string token;
    do {
      absl::StatusOr<Page<Backup>> page = backups_.List(page_size, token);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const Backup& backup : page->items) ids.push_back(backup.id);
      token = page->next_page_token;
    } while (!token.empty());
    return ids;
  }

  // What is in the directory of the backups.
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    if (!std::filesystem::exists(PathOf("b"))) return names;
    for (const auto& entry : std::filesystem::directory_iterator(PathOf("b"))) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const TestDirectory directory_;
  std::unique_ptr<Store> store_;
  Backups backups_;
};

TEST_F(BackupsTest, SayWhatTheyHold) {
  const std::string first = Promote("first", 64, "");
  Promote("second", 128, first);
  ASSERT_TRUE(store_->AppendTrial(SampleTrial(32), {}).ok());
  Job job;
  job.name = "operations/1";
  ASSERT_TRUE(store_->queue().Create(job, {}).ok());
  const Backup backup = MustCreate("nightly");
  EXPECT_EQ(backup.id, "nightly");
  EXPECT_EQ(backup.path, PathOf("b/nightly"));
  EXPECT_EQ(backup.manifest.trials(), 3);
  EXPECT_EQ(backup.manifest.incumbents(), 1);
  EXPECT_EQ(backup.manifest.jobs(), 1);
  EXPECT_EQ(backup.manifest.artifacts(), 2) << "of the one before, too: a rollback serves it again";
  EXPECT_EQ(backup.manifest.missing_artifacts(), 0);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(PathOf("b/nightly/attune.db")));
  EXPECT_EQ(backup.manifest.bytes(), size + 5 + 6);
  const absl::StatusOr<Page<Backup>> listed = backups_.List(0, "");
  ASSERT_EQ(listed->items.size(), 1U);
  EXPECT_EQ(listed->items[0].path, backup.path);
  EXPECT_EQ(listed->items[0].manifest.SerializeAsString(), backup.manifest.SerializeAsString());
}

TEST_F(BackupsTest, HoldNothingOfLaterAndNoLogOfTheDatabase) {
  store_->AppendTrial(SampleTrial(), {}).value();
  MustCreate("one");
  store_->AppendTrial(SampleTrial(), {}).value();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(PathOf("b/one"))) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files, testing::UnorderedElementsAre("attune.db", "artifacts", "backup.textproto"));
  ASSERT_TRUE(Restore(PathOf("b/one"), PathOf("restored")).ok());
  const std::unique_ptr<Store> restored = OpenSqliteStore({.directory = PathOf("restored")}).value();
  EXPECT_EQ(restored->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 1U);
}

TEST_F(BackupsTest, AreWholeWhileOthersWrite) {
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    while (!stop) {
      EXPECT_TRUE(store_->AppendTrial(SampleTrial(++written), {}).ok());
    }
  });
  for (int i = 0; i < 5; ++i) {
    const int before = written;
    const Backup backup = MustCreate(absl::StrCat("b", i));
    EXPECT_GE(backup.manifest.trials(), before - 1);
    const absl::StatusOr<Restored> restored = Restore(backup.path, PathOf(absl::StrCat("restored", i)));
    EXPECT_TRUE(restored.ok()) << restored.status();
    EXPECT_EQ(restored->trials, backup.manifest.trials());
  }
  stop = true;
  writer.join();
}

TEST_F(BackupsTest, CountWhatTheStoreHasNoLonger) {
  Promote("code", 64, "");
  const std::string sha256 = Sha256("code");
  std::filesystem::remove(PathOf(absl::StrCat("data/artifacts/", sha256.substr(0, 2), "/", sha256)));
  const Backup backup = MustCreate();
  EXPECT_EQ(backup.manifest.artifacts(), 0);
  EXPECT_EQ(backup.manifest.missing_artifacts(), 1);
}

TEST_F(BackupsTest, AreNamedByTheTimeUnlessNamed) {
  const std::string first = MustCreate().id;
  const std::string second = MustCreate().id;
  EXPECT_NE(first, second);
  EXPECT_EQ(first.size(), 16U);
  EXPECT_EQ(first[8], 'T');
}

TEST_F(BackupsTest, AreListedNewestFirstAcrossPages) {
  for (const char* id : {"b", "a", "c"}) MustCreate(id);
  EXPECT_THAT(List(1), ElementsAre("c", "a", "b"));
  EXPECT_THAT(List(2), ElementsAre("c", "a", "b"));
  EXPECT_THAT(List(0), ElementsAre("c", "a", "b"));
  EXPECT_EQ(backups_.List(1, "2").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(BackupsTest, PassOverDirectoriesThatAreNone) {
  MustCreate("a");
  std::filesystem::create_directories(PathOf("b/lost+found"));
  std::ofstream(PathOf("b/notes.txt")) << "of the operator";
  EXPECT_THAT(List(10), ElementsAre("a"));
}

TEST_F(BackupsTest, CannotLeaveTheirDirectory) {
  for (const char* id : {"../x", "/tmp/x", ".", "..", ".hidden", "a/b", "a b", "-x", "\x1b[31m"}) {
    const absl::Status status = backups_.Create(id).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << id;
    EXPECT_THAT(std::string(status.message()), HasSubstr("it must be"));
  }
  EXPECT_EQ(backups_.Create(std::string(65, 'a')).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(BackupsTest, ReplaceNothing) {
  store_->AppendTrial(SampleTrial(), {}).value();
  MustCreate("a");
  store_->AppendTrial(SampleTrial(), {}).value();
  EXPECT_EQ(backups_.Create("a").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(backups_.List(1, "")->items[0].manifest.trials(), 1);
}

TEST_F(BackupsTest, NeedADirectory) {
  Backups disabled(store_.get(), "");
  for (const absl::Status& status : {disabled.Create("").status(), disabled.List(0, "").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--backup_dir"));
  }
}

TEST_F(BackupsTest, RemoveWhatACrashLeft) {
  std::filesystem::create_directories(PathOf("b/.unfinished/artifacts"));
  std::ofstream(PathOf("b/.unfinished/attune.db")) << "half";
  MustCreate("a");
  EXPECT_THAT(Files(), ElementsAre("a"));
}

TEST_F(BackupsTest, LeaveNothingWhenTheStoreIsDamaged) {
  store_->AppendTrial(SampleTrial(), {}).value();
  store_.reset();
  ASSERT_TRUE(sqlite::Connection::Open(PathOf("data/attune.db"), sqlite::Connection::Access::kWrite)
                  .value()
                  ->Execute("INSERT INTO trial_bodies VALUES (999, x'00')")
                  .ok());
  store_ = OpenSqliteStore({.directory = PathOf("data")}).value();
  const absl::Status status = Backups(store_.get(), PathOf("b")).Create("a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(Files(), IsEmpty());
}

// On a file system that really is full; needs the right to mount one.
TEST_F(BackupsTest, LeaveNothingOnAFullDisk) {
  const std::string mounted = PathOf("mounted");
  ASSERT_TRUE(std::filesystem::create_directory(mounted));
  if (mount("tmpfs", mounted.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs: " << strerror(errno);
  }
  const absl::Cleanup unmount = [&mounted] { umount2(mounted.c_str(), MNT_DETACH); };
  v1::Trial trial = SampleTrial();
  trial.set_detail(std::string(100'000, 'd'));
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(store_->AppendTrial(trial, {}).ok());
  Backups backups(store_.get(), mounted);
  const absl::Status status = backups.Create("a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_TRUE(std::filesystem::is_empty(mounted));
  EXPECT_TRUE(store_->AppendTrial(trial, {}).ok()) << "the store itself goes on";
}

}  // namespace
}  // namespace attune::store
