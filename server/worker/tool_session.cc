#include "server/worker/tool_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace attune::worker {
namespace {

// With a null pointer at the end, as exec takes them.
std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentIn(const std::string& directory) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, "TMPDIR=")) variables.emplace_back(*variable);
  }
  variables.push_back(absl::StrCat("TMPDIR=", directory));
  // Profilers keep settings there; a service has none.
  if (getenv("HOME") == nullptr) variables.push_back(absl::StrCat("HOME=", directory));
  return variables;
}

// Its process id; the error of posix_spawn otherwise.
absl::StatusOr<pid_t> Spawn(const worker::v1::ToolRequest& request, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy = [&actions] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  if (!request.directory().empty()) posix_spawn_file_actions_addchdir_np(&actions, request.directory().c_str());
  const std::vector<std::string> command(request.command().begin(), request.command().end());
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command.front().c_str(), &actions, nullptr, Pointers(command).data(),
                                Pointers(EnvironmentIn(request.directory())).data());
  if (error == 0) return pid;
  return absl::UnavailableError(absl::StrCat("cannot start '", command.front(), "': ", strerror(error)));
}

// What the program writes until it has ended, though others still hold the pipe; the first `most` bytes of it.
std::string ReadUntilEnd(int output, int ended, size_t most) {
  std::string text;
  char block[16 << 10];
  for (bool open = true, over = false; open;) {
    pollfd entries[] = {{output, POLLIN, 0}, {ended, POLLIN, 0}};
    if (!over && poll(entries, 2, -1) < 0) continue;  // interrupted
    over = over || entries[1].revents != 0;
    const ssize_t size = read(output, block, sizeof block);
    if (size > 0) text.append(block, std::min(static_cast<size_t>(size), most - text.size()));
    const bool nothing = size < 0 && (errno == EAGAIN || errno == EINTR);
    open = size > 0 ? !over || text.size() < most : nothing && !over;
  }
  return text;
}

}  // namespace

worker::v1::Response ToolSession::Handle(const worker::v1::Request& request) {
  worker::v1::Response response;
  if (!request.has_tool()) return NotServed(request, "tool");
  absl::StatusOr<worker::v1::ToolResponse> ran = Run(request.tool());
  if (!ran.ok()) return ErrorResponse(ran.status());
  *response.mutable_tool() = *std::move(ran);
  return response;
}

absl::StatusOr<worker::v1::ToolResponse> ToolSession::Run(const worker::v1::ToolRequest& request) {
  if (request.command().empty()) return absl::InvalidArgumentError("tool: command is empty; it must name a program");
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  const absl::Cleanup close_output = [&pipe] { close(pipe[0]); };
  const absl::StatusOr<pid_t> pid = Spawn(request, pipe[1]);
  close(pipe[1]);
  if (!pid.ok()) return pid.status();
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (ended < 0 || fcntl(pipe[0], F_SETFL, O_NONBLOCK) != 0) return absl::ErrnoToStatus(errno, "pidfd_open");
  const absl::Cleanup close_ended = [ended] { close(ended); };
  worker::v1::ToolResponse response;
  response.set_output(ReadUntilEnd(pipe[0], ended, static_cast<size_t>(std::max<int64_t>(request.most_output(), 0))));
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  response.set_exit_code(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  return response;
}

void EndGroupWithPeer(int fd) {
  std::thread([fd] {
    pollfd entry = {fd, POLLRDHUP, 0};
    while (poll(&entry, 1, -1) < 0 && errno == EINTR) {
    }
    kill(0, SIGKILL);
  }).detach();
}

}  // namespace attune::worker
