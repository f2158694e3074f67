#include "server/access/audit_log.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::access {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() : directory_(absl::StrCat(::testing::TempDir(), "/attune-audit-test-", getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~AuditLogTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<AuditLog> Open(AuditLog::Limits limits = {}) {
    auto log = AuditLog::Open(directory_, limits);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  bool IsOpen(const std::string& file) const {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      if (std::filesystem::read_symlink(entry, ignored) == std::filesystem::canonical(directory_) / file) return true;
    }
    return false;
  }
  static void Await(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!condition() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_TRUE(condition());
  }
  std::vector<std::string> Lines(const std::string& file) const {
    std::ifstream in(directory_ + "/" + file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  const std::string directory_;
};

TEST(AuditLine, SaysWhenWhoWhatAndHowItEnded) {
  const absl::Time time = absl::FromUnixMillis(1'700'000'000'123);
  EXPECT_EQ(AuditLine(time, {"uid:1000", Role::kTuner}, *MethodRow("Tune"), "b1.h1.q8.d64.f16", absl::OkStatus()),
            R"({"time":"2023-11-14T22:13:20.123Z","principal":"uid:1000","role":"tuner","method":"Tune",)"
            R"("resource":"b1.h1.q8.d64.f16","outcome":"OK"})");
  const auto refused = nlohmann::json::parse(
      AuditLine(time, {"loopback", Role::kReader}, *MethodRow("Tune"), "", absl::PermissionDeniedError("no")));
  EXPECT_EQ(refused["outcome"], "PERMISSION_DENIED");
  EXPECT_EQ(refused["error"], "no");
}

TEST(AuditLine, IsOneShortLineWhateverWasSent) {
  const std::string line = AuditLine(absl::Now(), {"loopback", Role::kReader}, *MethodRow("CancelOperation"),
                                     "a\nb\x1b\xff" + std::string(10'000, 'x'), absl::NotFoundError("\n\xff"));
  EXPECT_LT(line.size(), 1000u);
  for (const char c : line) EXPECT_TRUE(c >= ' ' && c <= '~') << line;
  EXPECT_FALSE(nlohmann::json::parse(line, nullptr, false).is_discarded());
}

TEST_F(AuditLogTest, KeepsTheOrderAndGoesOnWithWhatIsThere) {
  Open()->Changed("first");
  {
    const auto log = Open();
    log->Refused("second");
    log->Changed("third");
  }
  EXPECT_THAT(Lines("audit.jsonl"), ElementsAre("first", "second", "third"));
}

TEST_F(AuditLogTest, ALineThatWasCutOffSpoilsNoOther) {
  std::ofstream(directory_ + "/audit.jsonl") << "whole\n{\"time\":\"20";
  Open()->Changed("next");
  EXPECT_THAT(Lines("audit.jsonl"), ElementsAre("whole", "{\"time\":\"20", "next"));
}

// As a full disk does.
TEST_F(AuditLogTest, ALineThatDidNotFitSpoilsNoOther) {
  struct sigaction ignore = {};
  struct sigaction before = {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGXFSZ, &ignore, &before), 0);
  rlimit unlimited = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  rlimit small = unlimited;
  small.rlim_cur = 9;
  auto log = Open();
  log->Changed("first");
  Await([&] { return Lines("audit.jsonl") == std::vector<std::string>{"first"}; });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  log->Changed("second");
  Await([&] { return !IsOpen("audit.jsonl"); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  log->Changed("third");
  log.reset();
  EXPECT_THAT(Lines("audit.jsonl"), ElementsAre("first", "sec", "third"));
  sigaction(SIGXFSZ, &before, nullptr);
}

TEST_F(AuditLogTest, IsItsOwnersAlone) {
  Open();
  struct stat info = {};
  ASSERT_EQ(stat((directory_ + "/audit.jsonl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(AuditLogTest, BeginsAnotherFileWhenOneIsFullAndForgetsTheOldest) {
  {
    const auto log = Open({.file_bytes = 10, .files = 3, .waiting = 100});
    for (const char* line : {"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg"}) log->Changed(line);
  }
  EXPECT_THAT(Lines("audit.jsonl"), ElementsAre("gggg"));
  EXPECT_THAT(Lines("audit.1.jsonl"), ElementsAre("eeee", "ffff"));
  EXPECT_THAT(Lines("audit.2.jsonl"), ElementsAre("cccc", "dddd"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/audit.3.jsonl"));
}

// The file is a pipe that nobody reads until the lines have come, so that the writing thread stands still.
TEST_F(AuditLogTest, AFloodOfRefusalsIsLeftOutAndCountedAndChangesWait) {
  constexpr int kFlood = 100'000;
  const std::string path = directory_ + "/audit.jsonl";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::fstream pipe(path);  // to both read and write: opening does not wait
  auto log = Open({.file_bytes = 1 << 30, .files = 1, .waiting = 100});
  for (int i = 0; i < kFlood; ++i) log->Refused("refused " + std::string(1000, 'x'));
  absl::Notification changed;
  std::thread changing([&] {
    log->Changed("changed");
    changed.Notify();
  });
  int64_t refused = 0;
  int64_t left_out = 0;
  bool seen = false;
  for (std::string line; !seen && std::getline(pipe, line);) {
    if (line == "changed") {
      seen = true;
    } else if (line.starts_with("{")) {
      left_out += nlohmann::json::parse(line)["left_out"].get<int64_t>();
    } else {
      ++refused;
    }
  }
  changing.join();
  EXPECT_TRUE(changed.HasBeenNotified());
  EXPECT_GT(left_out, 0);
  EXPECT_EQ(refused + left_out, kFlood);
}

TEST_F(AuditLogTest, SaysWhyItCannotBeOpened) {
  std::filesystem::create_symlink("/etc/passwd", directory_ + "/audit.jsonl");
  EXPECT_THAT(std::string(AuditLog::Open(directory_).status().message()),
              HasSubstr(absl::StrCat("cannot write the audit log ", directory_, "/audit.jsonl: ")));
}

}  // namespace
}  // namespace attune::access
