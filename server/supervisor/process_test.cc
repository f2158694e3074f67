#include "server/supervisor/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/testing/processes.h"

namespace attune::supervisor {
namespace {

std::unique_ptr<Process> Shell(
    const std::string& script, LineSink output = [](absl::string_view) {}) {
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Spawn("/bin/sh", {"-c", script}, std::move(output));
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

Process::Exit ExitOf(Process& process) {
  const std::optional<Process::Exit> exit = process.Wait(After(absl::Seconds(60)));
  EXPECT_TRUE(exit.has_value());
  return exit.value_or(Process::Exit());
}

TEST(Process, TellsHowItEnded) {
  EXPECT_EQ(ExitOf(*Shell("exit 3")).reason, "exited with 3");
  const Process::Exit crash = ExitOf(*Shell("kill -SEGV $$"));
  EXPECT_EQ(crash.reason, "killed by SIGSEGV");
  EXPECT_EQ(crash.signal, SIGSEGV);
}

TEST(Process, HasItsSocketAsDescriptorThree) {
  const std::unique_ptr<Process> process = Shell("echo hello >&3");
  char text[6] = {};
  EXPECT_EQ(read(process->fd(), text, 6), 6);
  EXPECT_EQ(std::string(text, 5), "hello");
}

TEST(Process, BringsWhatItWritesInLines) {
  std::vector<std::string> lines;
  std::unique_ptr<Process> process =
      Shell("echo one; echo two >&2; printf three", [&lines](absl::string_view line) { lines.emplace_back(line); });
  EXPECT_EQ(ExitOf(*process).code, 0);
  process.reset();
  EXPECT_THAT(lines, ::testing::ElementsAre("one", "two", "three"));
}

TEST(Process, InheritsNoOtherDescriptor) {
  ASSERT_EQ(dup2(STDERR_FILENO, 57), 57);  // without close-on-exec
  EXPECT_EQ(ExitOf(*Shell("test ! -e /proc/self/fd/57")).code, 0);
  close(57);
}

TEST(Process, ThatCannotBeStartedIsNamed) {
  const absl::Status status = Process::Spawn("/nonexistent/worker", {}, [](absl::string_view) {}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "cannot start '/nonexistent/worker': No such file or directory");
  EXPECT_TRUE(HasNoChildren());
}

TEST(Process, IsReapedAtOnceThoughNobodyWaits) {
  const std::unique_ptr<Process> process = Shell("kill -KILL $$");
  EXPECT_TRUE(AwaitNoChildren());
  EXPECT_EQ(ExitOf(*process).reason, "killed by SIGKILL");
}

TEST(Process, IsKilledWhenItIsStopped) {
  const std::unique_ptr<Process> process = Shell("kill -STOP $$; echo on >&3");
  const Process::Exit exit = ExitOf(*process);
  EXPECT_TRUE(exit.stopped);
  EXPECT_EQ(exit.reason, "stopped by a signal");
  char text[4];
  EXPECT_EQ(read(process->fd(), text, 4), 0);
}

TEST(Process, IsStillThereWhenTheDeadlinePasses) {
  const std::unique_ptr<Process> process = Shell("read line <&3");
  EXPECT_FALSE(process->Wait(After(absl::ZeroDuration())).has_value());
  process->Kill();
  EXPECT_EQ(ExitOf(*process).reason, "killed by SIGKILL");
  process->Kill();  // harmless now
}

TEST(Process, IsGoneWithItsChildrenWhenDestroyed) {
  std::unique_ptr<Process> process = Shell("(echo x >&3; exec cat <&3 >/dev/null) & echo y >&3; wait");
  char text[4];
  for (ssize_t size = 0; size < 4;) size += read(process->fd(), text + size, 4 - size);
  const int socket = dup(process->fd());
  process.reset();
  EXPECT_TRUE(HasNoChildren());
  EXPECT_EQ(read(socket, text, 1), 0);  // all holders of the other end have ended
  close(socket);
}

}  // namespace
}  // namespace attune::supervisor
