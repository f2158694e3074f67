#include "server/daemon/copy_from.h"

#include <filesystem>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "server/store/testing/test_directory.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDatabase[] = "postgresql://attune:secret@/attune?host=/tmp/attune_no_such_folder";

Settings Given(const std::string& data_dir, const std::string& store = "") {
  Settings settings;
  settings.data_dir = data_dir;
  settings.store = store;
  return settings;
}

class CopyFromTest : public ::testing::Test {
 protected:
  void ExpectRefused(int code, const std::string& from, const Settings& settings, const std::string& message) {
    std::ostringstream report;
    std::ostringstream progress;
    EXPECT_EQ(CopyFrom(from, settings, report, progress), code) << message;
    EXPECT_THAT(progress.str(), HasSubstr(message));
    EXPECT_THAT(progress.str(), Not(HasSubstr("secret")));
    EXPECT_THAT(report.str(), IsEmpty());
  }

  const store::TestDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
};

TEST_F(CopyFromTest, RefusesFlagsThatMakeNoSense) {
  for (const char* store : {"host=db user=attune password=secret", "/var/lib/attune", "mysql://attune:secret@db"}) {
    ExpectRefused(2, "/var/lib/attune", Given(data_, store),
                  "attuned: --store begins with neither postgresql:// nor postgres://");
  }
  const std::string bad = "postgresql://attune:secret@db/attune?no_such_option=1";
  ExpectRefused(2, "/var/lib/attune", Given(data_, bad), "attuned: --store: the connection string");
  ExpectRefused(2, bad, Given(data_), "attuned: --copy_from, to --store or else --data_dir: the connection ");
  ExpectRefused(2, kDatabase, Given(""), "attuned: --data_dir is empty");
  ExpectRefused(2, "/var/lib/attune", Given(data_), "both stores are SQLite's");
  ExpectRefused(2, kDatabase, Given(data_, kDatabase), "both stores are on PostgreSQL");
  EXPECT_FALSE(std::filesystem::exists(data_));
}

TEST_F(CopyFromTest, SaysWhatIsNotThere) {
  ExpectRefused(1, data_, Given(data_, kDatabase), "there is no attune.db in it");
  ExpectRefused(1, kDatabase, Given(data_), "/tmp/attune_no_such_folder");
}

}  // namespace
}  // namespace attune
