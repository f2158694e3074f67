// With the real worker: what is shown is what of a tool is left.
#include "server/supervisor/tool_worker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/test_directory.h"

namespace attune::supervisor {
namespace {

using ::testing::HasSubstr;

class ToolWorkerTest : public ::testing::Test {
 protected:
  ToolWorkerTest() { options_.executable = ATTUNE_WORKER; }

  absl::StatusOr<worker::v1::ToolResponse> RunScript(const std::string& script,
                                                     absl::Duration most = absl::Minutes(2)) {
    return RunTool(options_, {{"/bin/sh", "-c", script}, directory_.path(), most}, stop_.get_token());
  }
  // Blocks until the script has made the fifo's writer; the returned pipe is at its end when nobody of the script
  // lives.
  std::string Fifo() {
    const std::string path = directory_.path() + "/alive";
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  // Whether nobody has the fifo open for writing any more; waits for that.
  static void AwaitNobody(int fifo) {
    char byte = 0;
    while (read(fifo, &byte, 1) > 0) {
    }
  }

  const store::TestDirectory directory_;
  WorkerOptions options_;
  std::stop_source stop_;
};

TEST_F(ToolWorkerTest, BringsWhatTheProgramSaid) {
  const auto response = RunScript("echo hello; exit 3");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->output(), "hello\n");
  EXPECT_EQ(response->exit_code(), 3);
}

// A list of metrics is long, and its end counts.
TEST_F(ToolWorkerTest, BringsAllOfALongList) {
  const auto response = RunScript("head -c 3000000 /dev/zero; echo end");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->output().size(), 3000004U);
}

// A profiler's target may leave its session and still ends with it.
TEST_F(ToolWorkerTest, EndsAllThatIsLateThoughItLeftItsSession) {
  const std::string fifo = Fifo();
  std::thread reader([&] {
    const int end = open(fifo.c_str(), O_RDONLY);
    AwaitNobody(end);
    close(end);
  });
  const auto response =
      RunScript(absl::StrCat("exec 9>", fifo, "; setsid sh -c 'sleep 600 & sleep 600' & echo x >&9; sleep 600"),
                absl::Seconds(2));
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("'/bin/sh' was ended after 2s"));
  reader.join();  // hangs if one was left
}

TEST_F(ToolWorkerTest, EndsAllThatIsCancelled) {
  const std::string fifo = Fifo();
  std::thread reader([&] {
    const int end = open(fifo.c_str(), O_RDONLY);
    char byte = 0;
    EXPECT_EQ(read(end, &byte, 1), 1);
    stop_.request_stop();
    AwaitNobody(end);
    close(end);
  });
  const auto response = RunScript(absl::StrCat("exec 9>", fifo, "; sleep 600 & echo x >&9; sleep 600"));
  EXPECT_EQ(response.status().code(), absl::StatusCode::kCancelled);
  reader.join();
}

TEST_F(ToolWorkerTest, EndsWhatItsProgramLeavesBehind) {
  const std::string fifo = Fifo();
  std::thread reader([&] {
    const int end = open(fifo.c_str(), O_RDONLY);
    AwaitNobody(end);
    close(end);
  });
  EXPECT_TRUE(RunScript(absl::StrCat("exec 9>", fifo, "; sleep 600 & exit 0")).ok());
  reader.join();
}

TEST_F(ToolWorkerTest, SaysWhatCannotBeStarted) {
  const auto response = RunTool(options_, {{"/nowhere/ncu"}, directory_.path(), absl::Minutes(1)}, stop_.get_token());
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("cannot start '/nowhere/ncu'"));
}

}  // namespace
}  // namespace attune::supervisor
