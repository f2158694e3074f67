#include "server/store/sqlite/maintenance/restore.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/files.h"
#include "server/store/sqlite/connection.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A store with one incumbent, and a backup of it.
class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    store_ = OpenSqliteStore({.directory = PathOf("data")}).value();
    CompiledArtifact artifact;
    artifact.compile_key = "key";
    artifact.toolchain = "nvrtc 13.0";
    artifact.sha256 = Sha256("code");
    EXPECT_TRUE(store_->PutArtifact(artifact, "code").ok());
    v1::Trial trial = SampleTrial();
    trial.set_artifact_sha256(artifact.sha256);
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(store_->AppendTrial(trial, {}).value());
    EXPECT_TRUE(store_->Promote(incumbent, "", {}).ok());
    const absl::Status status = store_->Backup(backup_).status();
    EXPECT_TRUE(status.ok()) << status;
  }

  std::string PathOf(absl::string_view name) const { return absl::StrCat(directory_.path(), "/", name); }
  std::string ArtifactIn(absl::string_view directory) const {
    return absl::StrCat(directory, "/artifacts/", Sha256("code").substr(0, 2), "/", Sha256("code"));
  }

  const TestDirectory directory_;
  const std::string backup_ = PathOf("backup");
  const std::string target_ = PathOf("elsewhere/data");
  std::unique_ptr<Store> store_;
};

TEST_F(RestoreTest, ServesEveryIncumbentWithItsArtifact) {
  const absl::StatusOr<Restored> restored = Restore(backup_, target_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->trials, 1);
  EXPECT_EQ(restored->incumbents, 1);
  EXPECT_EQ(restored->artifacts, 1);
  EXPECT_THAT(restored->left_out, IsEmpty());
  const std::unique_ptr<Store> store = OpenSqliteStore({.directory = target_}).value();
  const absl::StatusOr<v1::Incumbent> served = store->GetIncumbent(kProblem, kClass, v1::POLICY_HOT);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(store->ReadArtifact(served->trial().artifact_sha256()).value(), "code");
  EXPECT_TRUE(store->AppendTrial(SampleTrial(), {}).ok());
}

TEST_F(RestoreTest, LeavesTheBackupAsItIs) {
  const std::string before = ReadFile(backup_ + "/attune.db").value();
  ASSERT_TRUE(Restore(backup_, target_).ok());
  EXPECT_TRUE(ReadFile(backup_ + "/attune.db").value() == before);
  EXPECT_TRUE(Restore(backup_, PathOf("third")).ok()) << "as often as one likes";
}

TEST_F(RestoreTest, ReplacesNoStore) {
  store_->AppendTrial(SampleTrial(), {}).value();
  const absl::Status in_use = Restore(backup_, PathOf("data")).status();
  EXPECT_EQ(in_use.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(in_use.message()), HasSubstr("in use by process"));
  store_.reset();
  const absl::Status exists = Restore(backup_, PathOf("data")).status();
  EXPECT_EQ(exists.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(exists.message()), HasSubstr(PathOf("data/attune.db exists")));
  store_ = OpenSqliteStore({.directory = PathOf("data")}).value();
  EXPECT_EQ(store_->ListTrials({}, v1::ListTrialsRequest::ORDER_NEWEST, 10, "")->items.size(), 2U);
}

TEST_F(RestoreTest, KeepsOutOfADirectoryWhoseDatabaseIsGoneButNotItsLog) {
  std::filesystem::create_directories(target_);
  std::ofstream(target_ + "/attune.db-wal") << "commits of another database";
  EXPECT_EQ(Restore(backup_, target_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RestoreTest, RefusesADamagedDatabaseAndMakesNone) {
  const auto size = std::filesystem::file_size(backup_ + "/attune.db");
  {
    std::fstream file(backup_ + "/attune.db", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << std::string(size / 4, '\xee');
  }
  EXPECT_EQ(Restore(backup_, target_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(target_ + "/attune.db"));
  EXPECT_FALSE(std::filesystem::exists(target_ + "/restored.db"));
  std::filesystem::resize_file(backup_ + "/attune.db", 0);
  EXPECT_EQ(Restore(backup_, target_).status().code(), absl::StatusCode::kDataLoss) << "an empty file is no database";
}

TEST_F(RestoreTest, RefusesABackupOfANewerVersion) {
  sqlite::Connection::Open(backup_ + "/attune.db", sqlite::Connection::Access::kWrite)
      .value()
      ->Execute("PRAGMA user_version = 1000")
      .IgnoreError();
  const absl::Status status = Restore(backup_, target_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1000"));
}

TEST_F(RestoreTest, RefusesWhatIsNoBackup) {
  const absl::Status missing = Restore(PathOf("nowhere"), target_).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("is not a backup"));
  const absl::Status in_use = Restore(PathOf("data"), target_).status();
  EXPECT_EQ(in_use.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(in_use.message()), HasSubstr("not a backup"));
  EXPECT_FALSE(std::filesystem::exists(target_ + "/attune.db"));
}

TEST_F(RestoreTest, LeavesOutADamagedArtifactAndSaysSo) {
  std::ofstream(ArtifactIn(backup_)) << "other";
  const absl::StatusOr<Restored> restored = Restore(backup_, target_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->artifacts, 0);
  EXPECT_THAT(restored->left_out, ElementsAre(HasSubstr("is damaged")));
  EXPECT_FALSE(std::filesystem::exists(ArtifactIn(target_)));
}

TEST_F(RestoreTest, GoesOnWhereACrashEnded) {
  std::filesystem::create_directories(target_ + "/artifacts");
  std::ofstream(target_ + "/restored.db") << "half";
  const absl::StatusOr<Restored> restored = Restore(backup_, target_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_FALSE(std::filesystem::exists(target_ + "/restored.db"));
}

}  // namespace
}  // namespace attune::store
