#include "server/daemon/settings.h"

#include <stdlib.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace attune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Settings Good() {
  Settings settings;
  settings.listen = {"localhost:7411", "unix:/run/attune/attuned.sock"};
  settings.data_dir = "data";
  settings.compile_timeout = absl::Seconds(120);
  settings.trial_timeout = absl::Seconds(10);
  settings.idle_release = absl::ZeroDuration();
  settings.on_miss = "compile";
  settings.drain_timeout = absl::Seconds(15);
  settings.log_format = "json";
  settings.log_level = "info";
  return settings;
}

TEST(Settings, OfAnOrdinaryDaemonHaveNoMistake) { EXPECT_THAT(MistakesIn(Good()), IsEmpty()); }

TEST(Settings, NameEveryMistakeWithFlagValueAndWhatIsAllowed) {
  Settings settings = Good();
  settings.listen = {"foo", "localhost:99999"};
  settings.compile_workers = -3;
  settings.trial_timeout = absl::Seconds(-3);
  settings.compile_timeout = absl::ZeroDuration();
  settings.job_age = absl::Minutes(5);
  settings.verify = "nowhere";
  settings.emulate = "l5";
  settings.log_level = "loud";
  EXPECT_THAT(
      MistakesIn(settings),
      ElementsAre("--listen: 'foo' is not host:port or unix:/path",
                  "--listen: 'localhost:99999' has a port that is not one of 0 to 65535",
                  "--compile_workers is -3; allowed: 0 (one a core) to 1024",
                  "--compile_timeout is 0; allowed: 100ms to 1h", "--trial_timeout is -3s; allowed: 100ms to 1h",
                  "--job_age is 5m; allowed: 1h to inf", "--verify is 'nowhere'; allowed: device, host",
                  "--emulate is 'l5'; allowed: a100, h100, h200, l4, rtx4090",
                  "--log_level is 'loud'; allowed: debug, info, warning, error"));
}

TEST(Settings, RefuseWhatOtherHostsCanReachUnlessToldSo) {
  Settings settings = Good();
  settings.listen = {"0.0.0.0:7411", "[::1]:7411"};
  EXPECT_THAT(MistakesIn(settings),
              ElementsAre("--listen: '0.0.0.0:7411' can be reached from other hosts, and nothing is encrypted there; "
                          "have it encrypted (--tls_cert, --tls_key), listen on localhost or unix:/path, to both of "
                          "which ssh -L forwards, or say --insecure"));
  settings.insecure = true;
  EXPECT_THAT(MistakesIn(settings), IsEmpty());
}

TEST(Settings, TakeAddressesThatOtherHostsCanReachOnceTheyAreEncrypted) {
  Settings settings = Good();
  settings.listen = {"0.0.0.0:7411"};
  settings.tls_cert = "/no/such/cert";
  settings.tls_key = "/no/such/key";
  settings.cert_role = "boss";
  settings.cert_roles = {"nightly"};
  EXPECT_THAT(
      MistakesIn(settings),
      ElementsAre(
          "--cert_role is 'boss'; allowed: none, reader, tuner, author, admin",
          HasSubstr("--cert_roles: 'nightly' names no certificate; give NAME=ROLE"),
          HasSubstr("--tls_cert is '/no/such/cert' (cannot open /no/such/cert: No such file or directory); it must"),
          HasSubstr("--tls_key is '/no/such/key'"), HasSubstr("--cert_roles is set, without --tls_client_ca")));
  settings.insecure = true;
  EXPECT_THAT(MistakesIn(settings), Contains(HasSubstr("--insecure is set, and --tls_cert")));
}

TEST(Settings, KeepMetricsOnThisHostUnlessToldOtherwise) {
  Settings settings = Good();
  settings.metrics_listen = "9464";
  EXPECT_THAT(MistakesIn(settings), IsEmpty());
  settings.metrics_listen = "0.0.0.0:9464";
  EXPECT_THAT(MistakesIn(settings),
              ElementsAre(HasSubstr("--metrics_listen: '0.0.0.0:9464' can be reached from other hosts")));
  settings.metrics_insecure = true;
  EXPECT_THAT(MistakesIn(settings), IsEmpty());
  settings.metrics_listen = "";
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--metrics_insecure is set, without --metrics_listen"));
}

TEST(Settings, HaveQuotasThatAreNumbers) {
  Settings settings = Good();
  settings.quota_operations = -1;
  settings.quota_requests = 1'000'001;
  settings.quota_device_time = absl::Milliseconds(1);
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--quota_operations is -1; allowed: 0 (none) to 1000000",
                                                "--quota_requests is 1000001; allowed: 0 (none) to 1000000",
                                                "--quota_device_time is 1ms; allowed: 1s to 24000h"));
}

TEST(Settings, KnowTheRolesThatThereAre) {
  Settings settings = Good();
  settings.anonymous_role = "root";
  settings.socket_role = "";
  settings.user_roles = {"1001=reader", "1002=boss"};
  EXPECT_THAT(
      MistakesIn(settings),
      ElementsAre("--anonymous_role is 'root'; allowed: none, reader, tuner, author, admin",
                  "--socket_role is ''; allowed: none, reader, tuner, author, admin",
                  "--user_roles: '1002=boss' has the role 'boss'; allowed: none, reader, tuner, author, admin"));
}

TEST(Settings, SayWhomTheServerServes) {
  Settings settings = Good();
  settings.anonymous_role = "none";
  settings.user_roles = {"1001=reader"};
  const auto options = ServerOptionsOf(settings);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->anonymous, access::Role::kNone);
  EXPECT_EQ(options->users.Of(1000).role, access::Role::kTuner);
  EXPECT_EQ(options->users.Of(1001).role, access::Role::kReader);
  EXPECT_EQ(options->users.Of(geteuid()).role, access::Role::kAdmin);
  EXPECT_FALSE(options->insecure);
}

TEST(Settings, RefuseABackupDirectoryThatCannotBeMade) {
  Settings settings = Good();
  settings.backup_dir = ::testing::TempDir() + "/attune-backups";
  EXPECT_THAT(MistakesIn(settings), IsEmpty()) << "it need not be there yet";
  settings.backup_dir = "/proc/y";
  EXPECT_THAT(
      MistakesIn(settings),
      ElementsAre(::testing::StartsWith("--backup_dir: cannot make directory '/proc/y': nothing can be made in")));
}

TEST(Settings, KnowWhatAMissMayStart) {
  Settings settings = Good();
  settings.on_miss = "off";
  EXPECT_THAT(MistakesIn(settings), IsEmpty());
  settings.on_miss = "tune";
  EXPECT_THAT(MistakesIn(settings), IsEmpty());
  settings.on_miss = "guess";
  settings.on_miss_per_hour = 0;
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--on_miss is 'guess'; allowed: off, compile, check, tune",
                                                "--on_miss_per_hour is 0; allowed: 1 to 3600"));
}

TEST(Settings, BoundWhatASubmissionTakes) {
  Settings settings = Good();
  settings.submission_trial_timeout = absl::ZeroDuration();
  settings.submission_time = absl::InfiniteDuration();
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--submission_trial_timeout is 0; allowed: 100ms to 1h",
                                                "--submission_time is inf; allowed: 1s to 24h"));
}

TEST(Settings, BoundWhatAProfileTakes) {
  Settings settings = Good();
  settings.profile_time = absl::Hours(1);
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--profile_time is 1h; allowed: 1s to 10m"));
}

TEST(Settings, RefuseToKeepBackupsInTheDataDirectoryItself) {
  Settings settings = Good();
  for (const char* same : {"data", "./data/", "data/../data/."}) {
    settings.backup_dir = same;
    EXPECT_THAT(MistakesIn(settings),
                ElementsAre(absl::StrCat("--backup_dir is '", same,
                                         "', which is --data_dir as well; a backup must not be in the store")));
  }
  settings.backup_dir = "data-backup";
  EXPECT_THAT(MistakesIn(settings), IsEmpty());
}

TEST(Settings, TakeAStoreOnPostgresqlAndNothingElse) {
  Settings settings = Good();
  for (const char* good :
       {"postgresql://attune@db/attune", "postgres:///attune?host=/run/postgresql&sslmode=require"}) {
    settings.store = good;
    EXPECT_THAT(MistakesIn(settings), IsEmpty()) << good;
  }
  settings.store = "mysql://attune:secret@db/attune";
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--store begins with neither postgresql:// nor postgres://; leave it "
                                                "out for SQLite in --data_dir"));
  settings.store = "postgresql://attune:secret@db/attune?no_such_option=1";
  settings.backup_dir = "data-backup";
  EXPECT_THAT(MistakesIn(settings),
              ElementsAre(::testing::AllOf(::testing::StartsWith("--store: the connection string is not valid"),
                                           ::testing::Not(::testing::HasSubstr("secret"))),
                          "--backup_dir is set, and --store: PostgreSQL's own tools (pg_dump) back that up"));
}

TEST(Settings, RefuseWhatIsEmptyOrWithoutEnd) {
  Settings settings = Good();
  settings.listen = {};
  settings.data_dir = "";
  settings.kernels_dir = {"a", ""};
  settings.drain_timeout = absl::InfiniteDuration();
  settings.worker = "/nonexistent/attune-worker";
  EXPECT_THAT(MistakesIn(settings), ElementsAre("--listen is empty; give host:port or unix:/path",
                                                "--data_dir is empty; it must name a directory",
                                                "--kernels_dir has an empty name; give directories, comma-separated",
                                                "--worker is '/nonexistent/attune-worker', which is no executable file",
                                                "--drain_timeout is inf; allowed: 0 to 1h"));
}

TEST(DefaultListen, IsLocalhostAndTheSocketThatClientsLookFor) {
  const std::string runtime = ::testing::TempDir();
  setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
  const std::string directory = geteuid() == 0 ? "/run/attune" : runtime + "/attune";
  EXPECT_THAT(DefaultListen(), ElementsAre(absl::StrCat("unix:", directory, "/attuned.sock"), "localhost:7411"));
  unsetenv("XDG_RUNTIME_DIR");
  if (geteuid() != 0) {
    EXPECT_THAT(DefaultListen(), ElementsAre("localhost:7411"));
  }
}

// Of the vectors that the bench's Python shares, those for the user that runs this: root's place is fixed.
TEST(DefaultLockDir, IsRootsOrTheUsersOwn) {
  for (const auto& vector : Golden("device_lock", "directories")) {
    if (vector["root"].get<bool>() != (geteuid() == 0)) continue;
    const auto& runtime = vector["XDG_RUNTIME_DIR"];
    unsetenv("XDG_RUNTIME_DIR");
    if (!runtime.is_null()) setenv("XDG_RUNTIME_DIR", runtime.get<std::string>().c_str(), 1);
    EXPECT_EQ(DefaultLockDir(vector["data"]), vector["directory"].get<std::string>()) << vector;
  }
  unsetenv("XDG_RUNTIME_DIR");
}

}  // namespace
}  // namespace attune
