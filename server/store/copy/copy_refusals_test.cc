// What is not copied, what a copy that ends early leaves, and differences.
#include <signal.h>

#include <fstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "server/store/copy/testing/copy_fixture.h"
#include "server/store/postgresql/migrations.h"
#include "server/store/sqlite/migrations.h"

namespace attune::store::copy {
namespace {

using postgresql::TestServer;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::KilledBySignal;
using testing::SizeIs;
using testing::UnorderedElementsAre;

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

TEST_F(CopyRefusalsTest, RefusesADatabaseWithNothingButCode) {
  FillSqlite();
  OpenPostgresql();
  RunInPostgresql("INSERT INTO artifact_code (sha256, used_ns, bytes) VALUES ('left', 0, 'code')");
  const absl::Status status = Copy(ToPostgresql()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(" has rows in artifact_code: a copy replaces nothing"));
}

TEST_F(CopyRefusalsTest, RefusesARoleThatMayNotSetSequences) {
  FillSqlite();
  OpenPostgresql();
  RunInPostgresql(
      "DO $$ BEGIN CREATE ROLE filler LOGIN; EXECUTE format('GRANT USAGE ON SCHEMA %I TO filler', current_schema());"
      " EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO filler', current_schema()); END $$");
  CopyOptions options = ToPostgresql();
  options.to.database += " user=filler";
  const absl::Status status = Copy(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(),
              HasSubstr("the role filler may not set the sequence of problems; copy as the role that"));
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
  const size_t newest = sqlite::Migrations().size();
  RunInSqlite(absl::StrCat("PRAGMA user_version = ", newest - 1));
  EXPECT_THAT(
      Copy(ToPostgresql()).status().message(),
      HasSubstr(absl::StrCat("is of schema version ", newest - 1, "; both stores must be of version ", newest, ": ")));
  RunInSqlite(absl::StrCat("PRAGMA user_version = ", newest + 1));
  EXPECT_THAT(Copy(ToPostgresql()).status().message(), HasSubstr("start the newer one"));
  RunInSqlite(absl::StrCat("PRAGMA user_version = ", newest));
  OpenPostgresql();
  const size_t there = postgresql::Migrations().size();
  RunInPostgresql(absl::StrCat("UPDATE attune_schema SET version = ", there - 1));
  EXPECT_THAT(
      Copy(ToPostgresql()).status().message(),
      HasSubstr(absl::StrCat("is of schema version ", there - 1, "; both stores must be of version ", there, ": ")));
  CopyOptions same = ToPostgresql();
  same.to = {.directory = other_};
  EXPECT_EQ(Copy(same).status().code(), absl::StatusCode::kInvalidArgument);
}

// The process is killed when jobs are written, before blobs' rows are, and when jobs are compared: before the commit.
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
  for (const auto& [folder, what] :
       {std::pair("/blobs", "contents of blobs"), std::pair("/artifacts", "compiled code")}) {
    damaged.progress = [changed = other_ + folder](const std::string& line) {
      if (!absl::StartsWith(line, "copied blobs")) return;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(changed)) {
        if (entry.is_regular_file()) std::ofstream(entry.path()) << "other bytes";
      }
    };
    const absl::Status status = Copy(damaged).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("the copy is not the same: ", what, ": artifact ")));
    EXPECT_FALSE(std::filesystem::exists(other_ + "/attune.db"));
    EXPECT_FALSE(std::filesystem::exists(other_ + "/copied.db"));
  }
}

// Triggers of the target change bytes, and when code was used.
TEST_F(CopyRefusalsTest, ContentsThatTheDatabaseChangesAreNamedAndNothingIsKept) {
  FillSqlite();
  OpenPostgresql();
  struct Change {
    const char* table;
    const char* change;
    const char* words;
  };
  for (const Change& change :
       {Change{"artifact_code", "NEW.bytes := ''other''", "compiled code: artifact "},
        Change{"blob_contents", "NEW.data := ''other''", "contents of blobs: blob "},
        Change{"artifact_code", "NEW.used_ns := 0", " and 1970-01-01T00:00:00+00:00 in PostgreSQL at "}}) {
    RunInPostgresql(absl::StrCat("CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ",
                                 change.change, "; RETURN NEW; END'; CREATE TRIGGER spoil BEFORE INSERT ON ",
                                 change.table, " FOR EACH ROW EXECUTE FUNCTION spoil()"));
    const absl::Status status = Copy(ToPostgresql()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << change.change;
    EXPECT_THAT(status.message(), HasSubstr(change.words));
    EXPECT_EQ(InPostgresql(absl::StrCat("SELECT count(*) FROM ", change.table)), 0);
    RunInPostgresql(absl::StrCat("DROP TRIGGER spoil ON ", change.table));
  }
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
    artifact.compile_key = "removed";
    artifact.sha256 = Sha256("removed code");
    ASSERT_TRUE(store->PutArtifact(artifact, "removed code").ok());
  }
  const std::string damaged = Sha256("damaged code");
  std::ofstream(absl::StrCat(data_, "/artifacts/", damaged.substr(0, 2), "/", damaged)) << "other code";
  const std::string removed = Sha256("removed code");
  std::filesystem::remove(absl::StrCat(data_, "/artifacts/", removed.substr(0, 2), "/", removed));
  std::filesystem::remove(absl::StrCat(data_, "/blobs/", gone.substr(0, 2), "/", gone));
  const absl::StatusOr<CopyReport> report = Copy(ToPostgresql());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->left_out, SizeIs(3));
  EXPECT_THAT(report->left_out, Contains(HasSubstr(absl::StrCat(removed, " is gone"))));
  EXPECT_THAT(report->left_out, Contains(HasSubstr(damaged)));
  EXPECT_THAT(report->left_out, Contains(HasSubstr(gone)));
  const std::unique_ptr<Store> shared = OpenPostgresql();
  EXPECT_EQ(shared->FindArtifact("damaged", "nvrtc 13.0")->sha256, damaged);
  EXPECT_TRUE(absl::IsNotFound(shared->ReadArtifact(damaged).status()));
  EXPECT_THAT(shared->blobs().Find({"token:ci", "triton", "gone", {"gone"}}).value(), IsEmpty());
  // The rows are there, and no code in artifact_code.
  const absl::StatusOr<CopyReport> back = Copy(ToSqlite());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->left_out, UnorderedElementsAre(HasSubstr(absl::StrCat(damaged, " of PostgreSQL at ")),
                                                   HasSubstr(absl::StrCat(removed, " of PostgreSQL at "))));
}

}  // namespace
}  // namespace attune::store::copy
