#include "server/device/opencl/pocl_environment.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace attune::device::opencl {
namespace {

namespace fs = std::filesystem;

// A process that has prepared its environment and waits to be killed.
struct Process {
  pid_t pid;
  std::string directory;  // its POCL_CACHE_DIR
};

Process StartProcess(const std::string& parent) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("POCL_CACHE_DIR", parent.c_str(), 1);
    std::string said = PreparePoclEnvironment().ok() && PreparePoclEnvironment().ok() ? getenv("POCL_CACHE_DIR") : "";
    said += '\n';
    if (write(ends[1], said.data(), said.size()) < 0) _exit(1);
    while (true) pause();
  }
  close(ends[1]);
  Process process{pid, ""};
  for (char c = 0; read(ends[0], &c, 1) == 1 && c != '\n';) process.directory += c;
  close(ends[0]);
  return process;
}

void Kill(const Process& process) {
  kill(process.pid, SIGKILL);
  waitpid(process.pid, nullptr, 0);
}

TEST(PoclEnvironment, EachProcessHasItsOwnDirectoryForAsLongAsItLives) {
  const std::string parent = testing::TempDir() + "/pocl-" + std::to_string(getpid());
  std::vector<Process> processes;
  std::set<std::string> directories;
  for (int i = 0; i < 4; ++i) {
    processes.push_back(StartProcess(parent));
    const std::string& directory = processes.back().directory;
    ASSERT_EQ(fs::path(directory).parent_path(), parent);
    EXPECT_EQ(fs::status(directory).permissions(), fs::perms::owner_all);
    directories.insert(directory);
  }
  EXPECT_EQ(directories.size(), 4);
  for (const std::string& directory : directories) EXPECT_TRUE(fs::exists(directory)) << directory;

  // The next one removes what a killed one left, and nothing else.
  fs::create_directories(processes[0].directory + "/_UNCACHED_abcdef/scale");
  fs::create_directory(parent + "/another's");
  Kill(processes[0]);
  processes.push_back(StartProcess(parent));
  EXPECT_FALSE(fs::exists(processes[0].directory));
  for (size_t i = 1; i < processes.size(); ++i) EXPECT_TRUE(fs::exists(processes[i].directory));
  EXPECT_TRUE(fs::exists(parent + "/another's"));
  for (size_t i = 1; i < processes.size(); ++i) Kill(processes[i]);
  fs::remove_all(parent);
}

// Who keeps PoCL's cache wants one for all processes.
TEST(PoclEnvironment, AKeptCacheIsLeftAlone) {
  setenv("POCL_KERNEL_CACHE", "1", 1);
  const Process process = StartProcess("/kept/cache");
  EXPECT_EQ(process.directory, "/kept/cache");
  Kill(process);
  unsetenv("POCL_KERNEL_CACHE");
}

}  // namespace
}  // namespace attune::device::opencl
