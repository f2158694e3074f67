// A store in files and a schema of the program's PostgreSQL server, for tests that copy one to the other.
#ifndef ATTUNE_SERVER_STORE_COPY_TESTING_COPY_FIXTURE_H_
#define ATTUNE_SERVER_STORE_COPY_TESTING_COPY_FIXTURE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "server/store/copy/copy_store.h"
#include "server/store/copy/testing/day.h"
#include "server/store/copy/testing/listings.h"
#include "server/store/files.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/store.h"
#include "server/store/postgresql/testing/server.h"
#include "server/store/sqlite/connection.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::copy {

class CopyStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    using postgresql::TestServer;
    if (!TestServer::Missing().empty()) GTEST_SKIP() << TestServer::Missing();
    static int schemas = 0;
    target_ = TestServer::Get().Target(absl::StrCat("copy", ++schemas));
  }

  // A store with some hundred of everything in data_, and its listings.
  static constexpr int kOperations = 400;
  std::vector<Listing> FillSqlite() const {
    static const auto& filled = *new Filled();
    std::filesystem::copy(filled.directory.path(), data_, std::filesystem::copy_options::recursive);
    return filled.listings;
  }

  static std::unique_ptr<Store> OpenSqlite(const std::string& directory) {
    return OpenSqliteStore({.directory = directory}).value();
  }
  std::unique_ptr<Store> OpenPostgresql() const {
    postgresql::StoreOptions options;
    options.database.connection.target = target_;
    options.home = kHolder;
    options.cache_directory = directory_.path() + "/cache";
    return postgresql::PostgresqlStore::Open(options).value();
  }

  // Works in a store, and says what is in it afterwards.
  static std::vector<Listing> Fill(Store& store) {
    Day day({&store}, 7);
    day.Work(kOperations);
    return Listings(store, /*leases=*/false);
  }

  CopyOptions ToPostgresql() {
    return {.from = {.directory = data_}, .to = {.database = target_}, .home = [] { return std::string(kHolder); }};
  }
  CopyOptions ToSqlite() { return {.from = {.database = target_}, .to = {.directory = other_}}; }

  absl::StatusOr<CopyReport> Copy(CopyOptions options) {
    lines_.clear();
    const auto given = std::move(options.progress);
    options.progress = [this, given](const std::string& line) {
      lines_.push_back(line);
      given(line);
    };
    return CopyStore(options);
  }

  static std::vector<std::string> NamesFrom(Store& store, const std::string& token) {
    const auto page = store.ListTrials({}, v1::ListTrialsRequest::ORDER_FASTEST, 50, token);
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> names;
    if (!page.ok()) return names;
    for (const v1::Trial& trial : page->items) names.push_back(trial.name());
    return names;
  }

  int64_t InPostgresql(const std::string& query) const {
    const auto connection = postgresql::Connection::Open({.target = target_}).value();
    auto rows = connection->Query(query);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && rows->Step().value() ? rows->Int(0) : -1;
  }
  void RunInPostgresql(const std::string& script) const {
    const auto connection = postgresql::Connection::Open({.target = target_}).value();
    const absl::Status status = connection->ExecuteScript(script);
    EXPECT_TRUE(status.ok()) << status;
  }
  void RunInSqlite(const std::string& script) const {
    const auto connection = sqlite::Connection::Open(data_ + "/attune.db", sqlite::Connection::Access::kWrite).value();
    const absl::Status status = connection->Execute(script);
    EXPECT_TRUE(status.ok()) << status;
  }
  // By their hashes: all but those that reading makes.
  static std::map<std::string, std::string> FilesOf(const std::string& directory) {
    std::map<std::string, std::string> hashes;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file() || IsOfSqlite(entry.path().filename().string())) continue;
      hashes[entry.path().string()] = Sha256(ReadFile(entry.path().string()).value());
    }
    return hashes;
  }

  struct Filled {
    const TestDirectory directory;
    const std::vector<Listing> listings = Fill(*OpenSqlite(directory.path()));
  };
  static bool IsOfSqlite(const std::string& file) {
    return file == "attune.lock" || file == "attune.db-wal" || file == "attune.db-shm";
  }

  const TestDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
  const std::string other_ = directory_.path() + "/other";
  std::string target_;
  std::vector<std::string> lines_;
};

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_TESTING_COPY_FIXTURE_H_
