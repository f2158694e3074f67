#include "server/worker/tool_session.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/test_directory.h"

namespace attune::worker {
namespace {

using ::testing::HasSubstr;

worker::v1::Response RunScript(const std::string& script, int64_t most_output = 1 << 20,
                               const std::string& directory = "") {
  worker::v1::Request request;
  for (const char* word : {"/bin/sh", "-c"}) request.mutable_tool()->add_command(word);
  request.mutable_tool()->add_command(script);
  request.mutable_tool()->set_directory(directory);
  request.mutable_tool()->set_most_output(most_output);
  return ToolSession().Handle(request);
}

TEST(ToolSession, AnswersWithOutputAndExitCode) {
  const worker::v1::Response response = RunScript("echo out; echo err >&2; exit 7");
  EXPECT_EQ(response.tool().output(), "out\nerr\n");
  EXPECT_EQ(response.tool().exit_code(), 7);
}

TEST(ToolSession, NamesTheSignalThatEndedIt) {
  EXPECT_EQ(RunScript("kill -ABRT $$").tool().exit_code(), 128 + SIGABRT);
}

TEST(ToolSession, KeepsTheBeginningOfMuchOutputAndLetsItWrite) {
  const worker::v1::Response response = RunScript("echo begin; head -c 3000000 /dev/zero; exit 3", 1000);
  EXPECT_EQ(response.tool().output().size(), 1000U);
  EXPECT_THAT(response.tool().output(), ::testing::StartsWith("begin\n"));
  EXPECT_EQ(response.tool().exit_code(), 3);
}

// Profilers leave helpers that hold the pipe.
TEST(ToolSession, WaitsForNobodyThatItsProgramHasStarted) {
  const worker::v1::Response response = RunScript("sleep 600 & echo $!");
  const pid_t helper = std::stoi(response.tool().output());
  EXPECT_EQ(kill(helper, SIGKILL), 0) << "it still ran";
}

TEST(ToolSession, RunsInItsDirectoryWithTemporaryFilesThere) {
  const store::TestDirectory directory;
  EXPECT_EQ(RunScript("pwd; echo $TMPDIR", 1000, directory.path()).tool().output(),
            absl::StrCat(directory.path(), "\n", directory.path(), "\n"));
}

TEST(ToolSession, SaysWhatCannotBeStarted) {
  worker::v1::Request request;
  request.mutable_tool()->add_command("/nowhere/ncu");
  EXPECT_THAT(ToolSession().Handle(request).error_message(), HasSubstr("cannot start '/nowhere/ncu'"));
  request.mutable_tool()->clear_command();
  EXPECT_THAT(ToolSession().Handle(request).error_message(), HasSubstr("command is empty"));
  EXPECT_NE(ToolSession().Handle(worker::v1::Request()).error_code(), 0);
}

// The daemon is gone: whatever the tool has started goes with it.
TEST(EndGroupWithPeer, EndsWhatWasStarted) {
  int fds[2], alive[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  ASSERT_EQ(pipe(alive), 0);  // held by the whole group
  const pid_t leader = fork();
  if (leader == 0) {
    setpgid(0, 0);
    close(fds[0]);
    close(alive[0]);
    if (fork() == 0) {
      close(fds[1]);
      for (;;) pause();
    }
    EndGroupWithPeer(fds[1]);
    const bool told = write(alive[1], "x", 1) == 1;
    for (; told;) pause();
  }
  close(fds[1]);
  close(alive[1]);
  char byte = 0;
  ASSERT_EQ(read(alive[0], &byte, 1), 1);
  close(fds[0]);
  EXPECT_EQ(read(alive[0], &byte, 1), 0) << "nobody holds the pipe any more";
  int status = 0;
  EXPECT_EQ(waitpid(leader, &status, 0), leader);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  close(alive[0]);
}

}  // namespace
}  // namespace attune::worker
