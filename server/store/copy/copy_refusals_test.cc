// What is not copied, what a copy that ends early leaves, and differences.
#include <signal.h>

#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "server/store/copy/testing/copy_fixture.h"

namespace attune::store::copy {
namespace {

using postgresql::TestServer;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::KilledBySignal;
using testing::SizeIs;

class CopyRefusalsTest : public CopyStoreTest {};

TEST_F(CopyRefusalsTest, ReplacesNothing) {
  FillSqlite();
  ASSERT_TRUE(Copy(ToPostgresql()).ok());
  const absl::Status again = Copy(ToPostgresql()).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(again.message(), HasSubstr(" has rows in "));
  EXPECT_THAT(again.message(), HasSubstr("name an empty database or schema"));

  CopyOptions options = ToSqlite();
  options.to.directory = data_;
  const absl::Status over = Copy(options).status();
  EXPECT_EQ(over.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(over.message(), HasSubstr("attune.db exists: a copy replaces nothing"));
}

TEST_F(CopyRefusalsTest, RefusesStoresThatAreInUse) {
  {
    const std::unique_ptr<Store> store = OpenSqlite(data_);
    const absl::Status source = Copy(ToPostgresql()).status();
    EXPECT_EQ(source.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(source.message(), HasSubstr("in use by process"));
  }
  v1::Host host;
  host.set_name("hosts/day");
  ASSERT_TRUE(OpenPostgresql()->hosts().Register(host, 1).ok());
  const absl::Status target = Copy(ToPostgresql()).status();
  EXPECT_EQ(target.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(target.message(), HasSubstr("is in use by hosts/day; stop them"));
  // As it is at one moment, a store that is in use can be read.
  const absl::StatusOr<CopyReport> source = Copy(ToSqlite());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(source->live_hosts, std::vector<std::string>{"hosts/day"});
  ASSERT_TRUE(OpenPostgresql()->hosts().Leave("hosts/day", 1).ok());
  const absl::Status stopped = Copy(ToPostgresql()).status();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

TEST_F(CopyRefusalsTest, RefusesWhatIsNoStoreOrOfAnotherVersion) {
  EXPECT_EQ(Copy(ToSqlite()).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Copy(ToSqlite()).status().message(), HasSubstr("attune was never there"));
  EXPECT_FALSE(std::filesystem::exists(other_ + "/attune.db"));
  EXPECT_EQ(Copy(ToPostgresql()).status().code(), absl::StatusCode::kNotFound);
  FillSqlite();
  RunInSqlite("PRAGMA user_version = 10");
  EXPECT_THAT(Copy(ToPostgresql()).status().message(), HasSubstr("is of schema version 10; what is copied must be of"));
  RunInSqlite("PRAGMA user_version = 99");
  EXPECT_THAT(Copy(ToPostgresql()).status().message(), HasSubstr("start the newer one"));
  RunInSqlite("PRAGMA user_version = 11");
  OpenPostgresql();
  RunInPostgresql("UPDATE attune_schema SET version = 2");
  EXPECT_THAT(Copy(ToPostgresql()).status().message(), HasSubstr("is of schema version 2; what is copied must be of"));
  CopyOptions same = ToPostgresql();
  same.to = {.directory = other_};
  EXPECT_EQ(Copy(same).status().code(), absl::StatusCode::kInvalidArgument);
}

// The process is killed when it begins to compare: all is written, nothing is committed.
TEST_F(CopyRefusalsTest, AKilledCopyLeavesAnEmptyStore) {
  FillSqlite();
  OpenPostgresql();
  const auto killed_at = [](const std::string& word) {
    return [word](const std::string& line) {
      if (absl::StartsWith(line, word)) raise(SIGKILL);
    };
  };
  for (const char* word : {"copied jobs", "compared jobs"}) {
    CopyOptions options = ToPostgresql();
    options.progress = killed_at(word);
    EXPECT_EXIT(Copy(options).IgnoreError(), KilledBySignal(SIGKILL), "");
    EXPECT_EQ(InPostgresql("SELECT count(*) FROM trials"), 0) << word;
  }
  const absl::StatusOr<CopyReport> whole = Copy(ToPostgresql());
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const char* word : {"copied jobs", "compared jobs"}) {
    CopyOptions options = ToSqlite();
    options.progress = killed_at(word);
    EXPECT_EXIT(Copy(options).IgnoreError(), KilledBySignal(SIGKILL), "");
    EXPECT_TRUE(std::filesystem::exists(other_ + "/copied.db"));
    EXPECT_FALSE(std::filesystem::exists(other_ + "/attune.db"));
  }
  const absl::StatusOr<CopyReport> back = Copy(ToSqlite());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->rows, whole->rows);
  EXPECT_FALSE(std::filesystem::exists(other_ + "/copied.db"));
}

TEST_F(CopyRefusalsTest, AServerThatDiesLeavesAnEmptyStore) {
  FillSqlite();
  OpenPostgresql();
  CopyOptions options = ToPostgresql();
  options.progress = [](const std::string& line) {
    if (absl::StartsWith(line, "copied trials")) TestServer::Get().Kill();
  };
  EXPECT_EQ(Copy(options).status().code(), absl::StatusCode::kUnavailable);
  TestServer::Get().Start();
  EXPECT_EQ(InPostgresql("SELECT count(*) FROM trials"), 0);
  const absl::Status again = Copy(ToPostgresql()).status();
  EXPECT_TRUE(again.ok()) << again;
}

// The target's files change between the copying and the comparison.
TEST_F(CopyRefusalsTest, BytesThatTheTargetChangesAreNamedAndNothingIsKept) {
  FillSqlite();
  ASSERT_TRUE(Copy(ToPostgresql()).ok());
  CopyOptions damaged = ToSqlite();
  damaged.progress = [this](const std::string& line) {
    if (!absl::StartsWith(line, "copied blobs")) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(other_ + "/artifacts")) {
      if (entry.is_regular_file()) std::ofstream(entry.path()) << "other code";
    }
  };
  const absl::Status status = Copy(damaged).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("the copy is not the same: compiled code: artifact "));
  EXPECT_FALSE(std::filesystem::exists(other_ + "/attune.db"));
  EXPECT_FALSE(std::filesystem::exists(other_ + "/copied.db"));
}

// A trigger of the target changes what is put there.
TEST_F(CopyRefusalsTest, ARowThatTheTargetChangesIsNamed) {
  FillSqlite();
  OpenPostgresql();
  RunInPostgresql(
      "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS"
      " 'BEGIN IF NEW.id = 5 THEN NEW.rank_us := 1; END IF; RETURN NEW; END';"
      "CREATE TRIGGER spoil BEFORE INSERT ON trials FOR EACH ROW EXECUTE FUNCTION spoil()");
  const absl::Status status = Copy(ToPostgresql()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("the copy is not the same: trials, id 5: rank_us is "));
  EXPECT_THAT(status.message(), HasSubstr(" and 1 in PostgreSQL at "));
  EXPECT_EQ(InPostgresql("SELECT count(*) FROM trials"), 0);
  RunInPostgresql(
      "CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS"
      " 'BEGIN IF NEW.id = 5 THEN RETURN NULL; END IF; RETURN NEW; END';"
      "ALTER TABLE trial_bodies DROP CONSTRAINT trial_bodies_trial_id_fkey;"
      "ALTER TABLE trial_recipes DROP CONSTRAINT trial_recipes_trial_id_fkey;"
      "ALTER TABLE trial_reports DROP CONSTRAINT trial_reports_trial_id_fkey;"
      "ALTER TABLE incumbents DROP CONSTRAINT incumbents_trial_id_fkey");
  EXPECT_THAT(Copy(ToPostgresql()).status().message(), HasSubstr("trials, id 5: is in "));
}

TEST_F(CopyRefusalsTest, ARowThatCannotBeStoredIsNamed) {
  FillSqlite();
  RunInSqlite("UPDATE problems SET text = CAST(x'62ff' AS TEXT) WHERE id = 2");
  const absl::Status status = Copy(ToPostgresql()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("problems, id 2: "));
  EXPECT_EQ(InPostgresql("SELECT count(*) FROM problems"), 0);
}

TEST_F(CopyRefusalsTest, TwoUnfinishedJobsThatAskForTheSameAreNamed) {
  OpenPostgresql();
  RunInPostgresql(
      "INSERT INTO jobs (name, kind, request, identity, done, cancelled, operation, home) VALUES"
      " ('operations/a', 1, '', 'same', false, false, '', 'one'),"
      " ('operations/b', 1, '', 'same', false, false, '', 'two')");
  const absl::Status status = Copy(ToSqlite()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("operations/a and operations/b"));
  RunInPostgresql("UPDATE jobs SET done = true, end_ns = 1 WHERE name = 'operations/a'");
  EXPECT_TRUE(Copy(ToSqlite()).ok());
}

TEST_F(CopyRefusalsTest, CodeAndBlobsThatAreGoneOrDamagedAreLeftOutAndNamed) {
  std::string gone;
  {
    FillSqlite();
    const std::unique_ptr<Store> store = OpenSqlite(data_);
    CompiledArtifact artifact;
    artifact.compile_key = "damaged";
    artifact.toolchain = "nvrtc 13.0";
    artifact.sha256 = Sha256("damaged code");
    ASSERT_TRUE(store->PutArtifact(artifact, "damaged code").ok());
    v1::Blob blob;
    blob.set_principal("token:ci");
    blob.set_namespace_("triton");
    blob.set_key("gone");
    blob.set_file("gone");
    blob.set_data("gone data");
    gone = store->blobs().Put(blob)->sha256();
  }
  const std::string damaged = Sha256("damaged code");
  std::ofstream(absl::StrCat(data_, "/artifacts/", damaged.substr(0, 2), "/", damaged)) << "other code";
  std::filesystem::remove(absl::StrCat(data_, "/blobs/", gone.substr(0, 2), "/", gone));
  const absl::StatusOr<CopyReport> report = Copy(ToPostgresql());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->left_out, SizeIs(2));
  EXPECT_THAT(report->left_out, Contains(HasSubstr(damaged)));
  EXPECT_THAT(report->left_out, Contains(HasSubstr(gone)));
  const std::unique_ptr<Store> shared = OpenPostgresql();
  EXPECT_EQ(shared->FindArtifact("damaged", "nvrtc 13.0")->sha256, damaged);
  EXPECT_TRUE(absl::IsNotFound(shared->ReadArtifact(damaged).status()));
  EXPECT_THAT(shared->blobs().Find({"token:ci", "triton", "gone", {"gone"}}).value(), IsEmpty());
}

}  // namespace
}  // namespace attune::store::copy
