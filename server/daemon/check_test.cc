#include "server/daemon/check.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/tokens.h"
#include "server/space/testing/testing_family.h"
#include "server/store/store.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGood[] =
    R"(name: "good" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "good.cu"
       launches { entry: "run" main: true })";

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() {
    families_.Write("good/family.textproto", kGood);
    families_.Write("good/good.cu", "");
    settings_.listen = {"localhost:7411"};
    settings_.data_dir = families_.root() + "/data";
    settings_.kernels_dir = {families_.root()};
    settings_.compile_timeout = settings_.trial_timeout = absl::Seconds(10);
    settings_.lock_dir = families_.root() + "/locks";
    settings_.on_miss = "compile";
    settings_.log_format = "text";
    settings_.log_level = "info";
  }
  bool Passes(const char* what = "all", bool flags_parsed = true) {
    std::ostringstream report;
    const auto probe = [this]() -> absl::StatusOr<supervisor::HostDescription> {
      if (!probed_.ok()) return probed_;
      ++probes_;
      supervisor::HostDescription host;
      v1::BackendStatus& cuda = host.backends.emplace_back();
      cuda.set_backend(v1::BACKEND_CUDA);
      cuda.set_available(true);
      cuda.set_compiler("nvrtc 13.0");
      v1::BackendStatus& opencl = host.backends.emplace_back();
      opencl.set_backend(v1::BACKEND_OPENCL);
      opencl.set_reason("no OpenCL platform");
      if (!has_device_) return host;
      v1::Device& device = host.devices.emplace_back();
      device.set_id("cuda:0");
      device.set_model("NVIDIA L4");
      return host;
    };
    Checks checks = *ParseChecks(what);
    checks.flags_parsed = flags_parsed;
    const bool good = Check(settings_, checks, probe, report);
    report_ = report.str();
    return good;
  }

  space::TestingFamilies families_;
  Settings settings_;
  absl::Status probed_;
  bool has_device_ = true;
  int probes_ = 0;
  std::string report_;
};

TEST_F(CheckTest, PassesWhatIsGoodAndMakesNothing) {
  EXPECT_TRUE(Passes());
  EXPECT_THAT(report_, StartsWith("flags      ok\nmanifests  ok: 1 good kernel family in " + families_.root() +
                                  "\nstore      ok: " + settings_.data_dir +
                                  ", to be made\ntokens     ok: 0\n"
                                  "toolchains ok: CUDA nvrtc 13.0; OPENCL missing: no OpenCL platform\n"
                                  "devices    ok: cuda:0 (l4)\ncage       ok: "));
  EXPECT_FALSE(std::filesystem::exists(settings_.data_dir));
}

TEST_F(CheckTest, NamesEveryMistakeOfEveryPart) {
  settings_.compile_workers = -3;
  settings_.emulate = "l5";
  families_.Write("bad/family.textproto", "nonsense: 1");
  families_.Write("worse/family.textproto", "name: \"worse\"");
  EXPECT_FALSE(Passes());
  for (const char* mistake :
       {"flags      WRONG\n", "  --compile_workers is -3", "  --emulate is 'l5'", "manifests  WRONG: 1 good",
        "/bad/family.textproto: line 1", "/worse/family.textproto: operation", "/worse/family.textproto: sources",
        "store      ok: "}) {
    EXPECT_THAT(report_, HasSubstr(mistake));
  }
}

TEST_F(CheckTest, FlagsThatCouldNotBeParsedAreAMistake) {
  EXPECT_FALSE(Passes("flags", /*flags_parsed=*/false));
  EXPECT_THAT(report_, HasSubstr("flags      WRONG\n  those that standard error names are unknown"));
}

TEST_F(CheckTest, NamesADeviceThatTheHostDoesNotHave) {
  settings_.devices = {"cuda:0", "l4"};
  EXPECT_TRUE(Passes("flags"));
  settings_.devices = {"cuda:0", "foo:0"};
  EXPECT_FALSE(Passes("flags"));
  EXPECT_THAT(report_, HasSubstr("  --devices has 'foo:0'; this host has cuda:0 (l4)\n"));
  probed_ = absl::UnavailableError("no worker");
  EXPECT_FALSE(Passes("flags"));
  EXPECT_THAT(report_, HasSubstr("  --devices: the host could not be probed: no worker\n"));
}

TEST_F(CheckTest, NamesALockDirectoryThatEveryUserMayWriteTo) {
  std::filesystem::create_directories(settings_.lock_dir);
  std::filesystem::permissions(settings_.lock_dir, std::filesystem::perms(0777));
  EXPECT_FALSE(Passes("flags"));
  EXPECT_THAT(report_, HasSubstr("  --lock_dir '" + settings_.lock_dir + "' may be written to by every user"));
}

TEST_F(CheckTest, NamesDirectoriesThatCannotBeMade) {
  families_.Write("file", "");
  settings_.data_dir = families_.root() + "/file/data";
  settings_.lock_dir = "/proc/attune/locks";
  settings_.backup_dir = "/proc/attune/backup";
  EXPECT_FALSE(Passes());
  EXPECT_THAT(report_, HasSubstr("  --backup_dir: cannot make directory '/proc/attune/backup': nothing can be made"));
  EXPECT_THAT(report_, HasSubstr("  --lock_dir: cannot make directory '/proc/attune/locks': nothing can be made in"));
  EXPECT_THAT(report_, HasSubstr("store      WRONG: " + settings_.data_dir + "\n  "));
}

TEST_F(CheckTest, LooksOnlyAtWhatItIsAskedTo) {
  settings_.compile_workers = -3;
  EXPECT_TRUE(Passes("manifests"));
  EXPECT_TRUE(Passes("manifests,store"));
  EXPECT_FALSE(Passes("flags"));
}

TEST_F(CheckTest, ADirectoryWithoutFamiliesIsAMistake) {
  std::filesystem::create_directories(families_.root() + "/empty");
  settings_.kernels_dir = {families_.root() + "/empty"};
  EXPECT_FALSE(Passes("manifests"));
  EXPECT_THAT(report_, HasSubstr("there is no family in "));
}

TEST_F(CheckTest, SaysWhatIsInTheStore) {
  {
    const auto store = store::OpenSqliteStore({.directory = settings_.data_dir});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE(Passes("store"));
    EXPECT_THAT(report_, HasSubstr("not looked into: the store is in use by process"));
  }
  EXPECT_TRUE(Passes("store"));
  EXPECT_THAT(report_, HasSubstr("undamaged, 0 trials, schema version "));
}

TEST_F(CheckTest, LooksAtTheDatabaseWhereTheStoreIsOne) {
  settings_.store = "postgresql:///attune?host=/tmp/attune_no_such_folder";
  EXPECT_FALSE(Passes("store"));
  EXPECT_THAT(report_, HasSubstr("store      WRONG\n  PostgreSQL at /tmp/attune_no_such_folder"));
}

TEST_F(CheckTest, CountsTokensAndNamesADamagedFileOfThem) {
  const std::string file = settings_.data_dir + "/tokens.binpb";
  std::filesystem::create_directories(settings_.data_dir);
  {
    const auto tokens = access::Tokens::Open(file);
    v1::CreateTokenRequest request;
    request.set_role("tuner");
    request.set_id("nightly");
    ASSERT_TRUE((*tokens)->Create(request, "uid:0", absl::Now()).ok());
    request.set_id("old");
    ASSERT_TRUE((*tokens)->Create(request, "uid:0", absl::Now() - 2 * access::Tokens::kDefault).ok());
  }
  EXPECT_TRUE(Passes("tokens"));
  EXPECT_EQ(report_, "tokens     ok: 2, expired: 1\n");
  std::ofstream(file) << "x";
  EXPECT_FALSE(Passes("tokens"));
  EXPECT_THAT(report_, HasSubstr("tokens     WRONG\n  " + file + " is damaged"));
}

TEST_F(CheckTest, TheHostIsProbedOnceAndOnlyWhenItIsAskedFor) {
  EXPECT_TRUE(Passes("flags,manifests,store,tokens"));
  EXPECT_EQ(probes_, 0);
  settings_.devices = {"cuda:0"};
  EXPECT_TRUE(Passes());
  EXPECT_EQ(probes_, 1);
}

TEST_F(CheckTest, AHostWithoutADeviceServesAndOneThatCannotBeProbedIsAMistake) {
  has_device_ = false;
  EXPECT_TRUE(Passes("host"));
  EXPECT_THAT(
      report_,
      HasSubstr("devices    ok: none: stored answers are served, and only other hosts on the same store can tune\n"));
  probed_ = absl::UnavailableError("no worker");
  EXPECT_FALSE(Passes("host"));
  EXPECT_EQ(report_, "host       WRONG\n  it could not be probed: no worker\n");
}

TEST(ParseChecks, SaysWhatIsAllowed) {
  EXPECT_EQ(ParseChecks("kernels").status().message(),
            "--check is 'kernels'; allowed: all, or some of flags, manifests, store, tokens and host");
}

}  // namespace
}  // namespace attune
