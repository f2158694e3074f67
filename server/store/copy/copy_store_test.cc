#include "server/store/copy/copy_store.h"

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "server/store/artifact_files.h"
#include "server/store/copy/testing/copy_fixture.h"

namespace attune::store::copy {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

TEST_F(CopyStoreTest, AllOfSqliteIsOnPostgresqlAndBackAgain) {
  const std::vector<Listing> before = FillSqlite();
  const std::map<std::string, std::string> files = FilesOf(data_);
  const absl::StatusOr<CopyReport> report = Copy(ToPostgresql());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->left_out, IsEmpty());
  EXPECT_EQ(report->home, kHolder);
  EXPECT_THAT(report->rows, Contains(Pair("trials", InPostgresql("SELECT count(*) FROM trials"))));
  EXPECT_GT(InPostgresql("SELECT count(*) FROM trials"), 100);
  EXPECT_EQ(report->artifacts, InPostgresql("SELECT count(*) FROM artifact_code"));
  EXPECT_GT(report->blobs, 0);
  EXPECT_THAT(lines_, Contains(HasSubstr("copied trials: ")));
  EXPECT_THAT(lines_, Contains(HasSubstr("compared compiled code: ")));
  EXPECT_EQ(FilesOf(data_), files) << "the source is another";
  ExpectSameListings(before, Listings(*OpenPostgresql(), /*leases=*/false));

  const absl::StatusOr<CopyReport> back = Copy(ToSqlite());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->rows, report->rows);
  EXPECT_FALSE(std::filesystem::exists(other_ + "/copied.db"));
  ExpectSameListings(before, Listings(*OpenSqlite(other_), /*leases=*/false));
}

TEST_F(CopyStoreTest, WhenCodeWasUsedIsCopied) {
  FillSqlite();
  const std::string sha256 = ListArtifactFiles(data_ + "/artifacts")->front().sha256;
  const absl::Time used = absl::FromUnixNanos(1'700'000'000'123'456'789);
  ASSERT_TRUE(ArtifactFiles::Open(data_ + "/artifacts").value()->SetUsed(sha256, used).ok());
  ASSERT_TRUE(Copy(ToPostgresql()).ok());
  const int64_t there = InPostgresql(absl::StrCat("SELECT used_ns FROM artifact_code WHERE sha256 = '", sha256, "'"));
  EXPECT_LE(absl::AbsDuration(absl::FromUnixNanos(there) - used), ArtifactFiles::kUseResolution);
  ASSERT_TRUE(Copy(ToSqlite()).ok());
  const ArtifactFile oldest = ListArtifactFiles(other_ + "/artifacts")->front();
  EXPECT_EQ(oldest.sha256, sha256);
  EXPECT_LE(absl::AbsDuration(oldest.used - used), ArtifactFiles::kUseResolution);
}

TEST_F(CopyStoreTest, WhatPostgresqlHasMadeIsInSqlite) {
  std::vector<Listing> before = Fill(*OpenPostgresql());
  // As a variant stays whose trial was not committed, and a job is of a problem that has no trial.
  RunInPostgresql("INSERT INTO variants (text, message) VALUES ('of no trial', '')");
  ASSERT_GT(InPostgresql("SELECT count(*) FROM jobs WHERE problem NOT IN (SELECT text FROM problems)"), 0);
  const absl::StatusOr<CopyReport> report = Copy(ToSqlite());
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectSameListings(before, Listings(*OpenSqlite(other_), /*leases=*/false));
}

TEST_F(CopyStoreTest, BothGoOnWithNumbersOfTheirOwn) {
  std::string last;
  {
    FillSqlite();
    const std::unique_ptr<Store> store = OpenSqlite(data_);
    last = store->AppendTrial(SampleTrial(), {}).value();
  }
  ASSERT_TRUE(Copy(ToPostgresql()).ok());
  const std::unique_ptr<Store> shared = OpenPostgresql();
  int before = 0;
  int after = 0;
  ASSERT_TRUE(absl::SimpleAtoi(last.substr(7), &before));
  ASSERT_TRUE(absl::SimpleAtoi(shared->AppendTrial(SampleTrial(), {}).value().substr(7), &after));
  EXPECT_EQ(after, before + 1);
  // Each kind of row can be added to.
  for (const char* table : {"problems", "devices", "device_classes", "families", "variants", "dependencies",
                            "incumbents", "retimings", "baselines", "artifacts", "submissions", "jobs", "blobs"}) {
    EXPECT_GT(InPostgresql(absl::StrCat("SELECT nextval(pg_get_serial_sequence('", table,
                                        "', 'id')) - coalesce((SELECT max(id) FROM ", table, "), 0)")),
              0)
        << table;
  }
  EXPECT_EQ(InPostgresql("SELECT space FROM blob_space"),
            InPostgresql("SELECT sum(greatest(1, (bytes + 4095) / 4096) * 4096)::bigint FROM blobs"));
}

TEST_F(CopyStoreTest, APageTokenOfOneGoesOnInTheOther) {
  Page<v1::Trial> first;
  std::vector<std::string> rest;
  {
    FillSqlite();
    const std::unique_ptr<Store> store = OpenSqlite(data_);
    first = store->ListTrials({}, v1::ListTrialsRequest::ORDER_FASTEST, 20, "").value();
    ASSERT_FALSE(first.next_page_token.empty());
    rest = NamesFrom(*store, first.next_page_token);
  }
  ASSERT_TRUE(Copy(ToPostgresql()).ok());
  EXPECT_THAT(rest, SizeIs(50));
  EXPECT_EQ(NamesFrom(*OpenPostgresql(), first.next_page_token), rest);
}

TEST_F(CopyStoreTest, LeasesAreGivenUpAndTheDaemonGoesOnWithItsJobs) {
  Fence old;
  {
    const std::unique_ptr<Store> store = OpenSqlite(data_);
    Job job;
    job.name = "operations/running";
    job.operation.set_name(job.name);
    ASSERT_TRUE(store->queue().Create(job, {}).ok());
    const auto leased = store->queue().Lease(job.name, "attuned", absl::Hours(1));
    ASSERT_TRUE(leased.ok() && leased->has_value());
    old = {job.name, (*leased)->epoch};
    ASSERT_TRUE(store->AppendTrial(SampleTrial(), NewWrite(old)).ok());
  }
  ASSERT_TRUE(Copy(ToPostgresql()).ok());
  const std::unique_ptr<Store> shared = OpenPostgresql();
  EXPECT_THAT(shared->queue().Held().value(), IsEmpty());
  EXPECT_THAT(shared->queue().Leasable("another").value(), IsEmpty());
  EXPECT_EQ(shared->queue().Leasable(kHolder).value(), std::vector<std::string>{old.job});
  const auto leased = shared->queue().Lease(old.job, kHolder, absl::Hours(1));
  ASSERT_TRUE(leased.ok() && leased->has_value());
  EXPECT_GT((*leased)->epoch, old.epoch);
  EXPECT_TRUE(IsStale(shared->AppendTrial(SampleTrial(), NewWrite(old)).status()));
}

TEST(StoreAddressTest, TellsDatabasesFromDirectories) {
  EXPECT_EQ(ParseStoreAddress("postgresql://attune@db/attune").database, "postgresql://attune@db/attune");
  EXPECT_EQ(ParseStoreAddress("postgres://db/attune").database, "postgres://db/attune");
  EXPECT_EQ(ParseStoreAddress("/var/lib/attune").directory, "/var/lib/attune");
  EXPECT_THAT(ParseStoreAddress("/var/lib/attune").database, IsEmpty());
}

}  // namespace
}  // namespace attune::store::copy
