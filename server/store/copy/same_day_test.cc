// SQLite's and PostgreSQL's store through the same day: each operation is answered alike, and each listing is the same.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/store/copy/testing/day.h"
#include "server/store/copy/testing/listings.h"
#include "server/store/postgresql/store.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::copy {
namespace {

constexpr uint32_t kSeed = 20261127;
constexpr int kOperations = 2000;

TEST(SameDayTest, BothStoresAnswerAlike) {
  if (!postgresql::TestServer::Missing().empty()) GTEST_SKIP() << postgresql::TestServer::Missing();
  const TestDirectory directory;
  const std::unique_ptr<Store> sqlite =
      OpenSqliteStore({.directory = directory.path() + "/sqlite", .blob_limit = kBlobLimit}).value();
  postgresql::StoreOptions options;
  options.database.connection.target = postgresql::TestServer::Get().Target("same_day");
  options.home = kHolder;
  options.cache_directory = directory.path() + "/cache";
  options.blob_limit = kBlobLimit;
  const std::unique_ptr<Store> shared = postgresql::PostgresqlStore::Open(options).value();

  Day day({sqlite.get(), shared.get()}, kSeed);
  day.Work(kOperations);
  ASSERT_FALSE(HasFailure());
  const std::vector<Listing> listings = Listings(*sqlite, /*leases=*/true);
  ExpectSameListings(listings, Listings(*shared, /*leases=*/true));
  // A day on which little happened would show little.
  std::map<std::string, size_t> lines;
  for (const Listing& listing : listings) lines[listing.name] = listing.lines.size();
  EXPECT_GT(lines["newest trials"], 100);
  for (const char* some :
       {"all incumbents", "jobs", "retimings", "baselines", "submissions", "blobs", "unfinished jobs"}) {
    EXPECT_GT(lines[some], 3) << some;
  }
}

}  // namespace
}  // namespace attune::store::copy
