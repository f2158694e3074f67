#include "server/daemon/environment_flags.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/daemon/flags.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FlagsOfEnvironment, AreThoseOfVariablesWithTheDaemonsPrefix) {
  const char* const environment[] = {"PATH=/bin",
                                     "ATTUNED_LOG_LEVEL=debug",
                                     "ATTUNE_SERVER=l4:7411",
                                     "ATTUNED_LISTEN=a:1,unix:/s=1",
                                     "ATTUNED_BACKUP_DIR=",
                                     nullptr};
  const auto flags = FlagsOfEnvironment(environment);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(*flags, ElementsAre("--backup_dir=", "--listen=a:1,unix:/s=1", "--log_level=debug"));
  const char* const nothing[] = {nullptr};
  EXPECT_THAT(*FlagsOfEnvironment(nothing), IsEmpty());
}

// Of a service called attuned, in every pod of its namespace.
TEST(FlagsOfEnvironment, PassesOverWhatKubernetesSets) {
  const char* const environment[] = {"ATTUNED_SERVICE_HOST=10.0.0.7", "ATTUNED_SERVICE_PORT=7411",
                                     "ATTUNED_PORT=tcp://10.0.0.7:7411", "ATTUNED_PORT_7411_TCP_ADDR=10.0.0.7",
                                     nullptr};
  const auto flags = FlagsOfEnvironment(environment);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(*flags, IsEmpty());
}

TEST(FlagsOfEnvironment, NamesAVariableOfNoFlag) {
  const char* const environment[] = {"ATTUNED_DATA=/srv", nullptr};
  const absl::Status status = FlagsOfEnvironment(environment).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'ATTUNED_DATA', which stands for no flag"));
}

}  // namespace
}  // namespace attune
