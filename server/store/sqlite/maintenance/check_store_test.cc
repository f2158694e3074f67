#include "server/store/sqlite/maintenance/check_store.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {
namespace {

using ::testing::HasSubstr;

class CheckStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.directory = directory_.path()});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  StoreReport Check() {
    const absl::StatusOr<StoreReport> report = CheckStore(directory_.path());
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(StoreReport());
  }
  std::string file() const { return directory_.path() + "/attune.db"; }

  TestDirectory directory_;
};

TEST_F(CheckStoreTest, OneThatIsNotThereIsMadeLater) {
  EXPECT_FALSE(Check().exists);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  EXPECT_FALSE(CheckStore(directory_.path() + "/none")->exists);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/none"));
}

TEST_F(CheckStoreTest, OneThatIsSoundHasTheNewestVersionAndIsLeftAsItIs) {
  Open().reset();
  const auto size = std::filesystem::file_size(file());
  const auto time = std::filesystem::last_write_time(file());
  const StoreReport report = Check();
  EXPECT_TRUE(report.exists);
  EXPECT_EQ(report.version, report.newest);
  EXPECT_EQ(report.trials, 0);
  EXPECT_EQ(std::filesystem::file_size(file()), size);
  EXPECT_EQ(std::filesystem::last_write_time(file()), time);
}

TEST_F(CheckStoreTest, OneInUseIsLeftAlone) {
  const std::unique_ptr<Store> store = Open();
  EXPECT_THAT(Check().in_use, HasSubstr("the store is in use by process"));
}

TEST_F(CheckStoreTest, OneThatIsDamagedIsAnError) {
  Open().reset();
  {
    // Behind the header, so that the file is still a database.
    std::fstream damaged(file(), std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(4096);
    damaged << std::string(16 * 4096, 'x');
  }
  EXPECT_TRUE(absl::IsDataLoss(CheckStore(directory_.path()).status())) << CheckStore(directory_.path()).status();
}

TEST_F(CheckStoreTest, OneWithADamagedIndexIsAnError) {
  Open().reset();
  std::optional<int64_t> page;
  {
    const auto connection = sqlite::Connection::Open(file(), sqlite::Connection::Access::kRead);
    ASSERT_TRUE(connection.ok()) << connection.status();
    page = *sqlite::Statement(**connection,
                              "SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'problems'")
                .FindInt();
  }
  ASSERT_TRUE(page.has_value());
  {
    std::fstream damaged(file(), std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp((*page - 1) * 4096);
    damaged << std::string(4096, 'x');
  }
  EXPECT_TRUE(absl::IsDataLoss(CheckStore(directory_.path()).status())) << CheckStore(directory_.path()).status();
}

TEST_F(CheckStoreTest, SomethingElseIsAnError) {
  std::ofstream(file()) << std::string(8192, 'x');
  EXPECT_TRUE(absl::IsDataLoss(CheckStore(directory_.path()).status())) << CheckStore(directory_.path()).status();
}

}  // namespace
}  // namespace attune::store
