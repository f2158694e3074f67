// attune-worker: one process that compiles, or holds a device, or looks what the host has, for the daemon that started
// it (docs/design.md, Processes). Not meant to be started by hand.
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "server/device/device.h"
#include "server/device/opencl/opencl_backend.h"
#include "server/device/opencl/pocl_environment.h"
#include "server/worker/cage.h"
#include "server/worker/compile_session.h"
#include "server/worker/device_lock.h"
#include "server/worker/device_session.h"
#include "server/worker/launch_job.h"
#include "server/worker/sandbox.h"
#include "server/worker/session.h"
#include "server/worker/system_calls.h"
#include "server/worker/tool_session.h"
#include "server/worker/toolkit_files.h"

ABSL_FLAG(std::string, role, "", "what this worker does: compile, device, probe, tool or launch");
ABSL_FLAG(std::string, device, "", "with --role=device or launch: the device's id, as in cuda:0");
ABSL_FLAG(std::string, job, "", "with --role=launch: file with a serialised LaunchJob");
ABSL_FLAG(int, fd, 3, "descriptor of the socket to the daemon");
ABSL_FLAG(std::string, emulate, "", "device profile whose limits CUDA devices take on, as in l4; empty: none");
ABSL_FLAG(std::string, verify, "device", "with --role=device: where outputs are compared, device or host");
ABSL_FLAG(std::string, lock_dir, "", "with --role=device: directory of the device locks");
ABSL_FLAG(bool, cage, false, "confine compiling, or a device that is this host's CPU, to what they need");

namespace attune::worker {
namespace {

using Backends = std::vector<std::unique_ptr<device::Backend>>;

absl::StatusOr<std::pair<device::Backend*, attune::v1::Device>> FindDevice(const Backends& backends,
                                                                           const std::string& id) {
  for (const std::unique_ptr<device::Backend>& backend : backends) {
    for (const attune::v1::Device& device : backend->Devices()) {
      if (device.id() == id) return std::pair(backend.get(), device);
    }
  }
  return absl::NotFoundError(absl::StrCat("--device is '", id, "', which this host does not have"));
}

int Run(Session& session) {
  const absl::Status status = Serve(absl::GetFlag(FLAGS_fd), session);
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << "attune-worker --role=" << absl::GetFlag(FLAGS_role) << ": " << status.message() << std::endl;
  return EXIT_FAILURE;
}

// A host that cannot cage a worker still tunes. Of what its kernel has not (Unavailable) the daemon warns once.
void SayIfOpen(const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status)) return;
  std::cerr << "attune-worker: not fully caged: " << status.message() << std::endl;
}

// To what times kernels and what answers calls: there is a compiler for each core. Threads inherit it.
void GiveWay() {
  constexpr int kNice = 10;
  errno = 0;
  const int nice = getpriority(PRIO_PROCESS, 0);  // may be -1
  if (errno != 0 || setpriority(PRIO_PROCESS, 0, nice + kNice) != 0) {
    std::cerr << "attune-worker: does not give way to others: " << std::strerror(errno) << std::endl;
  }
}

// The one folder that this process writes in.
std::string MakeScratch() {
  SayIfOpen(device::opencl::PreparePoclEnvironment());
  const char* const given = getenv("POCL_CACHE_DIR");
  const char* const home = getenv("HOME");
  // A cache that is kept (pocl_environment.h) may be where PoCL has it by default.
  const std::string scratch = given != nullptr ? given : absl::StrCat(home == nullptr ? "" : home, "/.cache/pocl");
  std::error_code ignored;  // then it can be written no more than it could before
  std::filesystem::create_directories(scratch, ignored);
  setenv("POCL_CACHE_DIR", scratch.c_str(), /*overwrite=*/1);
  setenv("TMPDIR", scratch.c_str(), /*overwrite=*/1);  // of the linker
  return scratch;
}

// Reads and writes nothing but what compiling needs. What finds the compilers is opened before.
void CageCompiler() {
  SayIfOpen(Confine({LimitsOfCompiler(), ToolkitFiles(), {MakeScratch()}}));
  SayIfOpen(DropCapabilities());
  SayIfOpen(AllowCallsOfWorker());
}

int RunDevice(const Backends& backends, const std::function<void()>& cage) {
  auto found = FindDevice(backends, absl::GetFlag(FLAGS_device));
  if (!found.ok()) {
    FailedSession failed(found.status());
    return Run(failed);
  }
  const auto& [backend, info] = *found;
  const absl::StatusOr<DeviceLock> lock = DeviceLock::Take(absl::GetFlag(FLAGS_lock_dir), info);
  if (!lock.ok()) {
    FailedSession failed(lock.status());
    return Run(failed);
  }
  cage();
  device::Backend* const opener = backend;
  const auto look = absl::GetFlag(FLAGS_verify) == "host" ? verify::PreparedProblem::Look::kOnHost
                                                          : verify::PreparedProblem::Look::kOnDevice;
  DeviceSession session(
      info, [opener, id = info.id()] { return opener->Open(id); }, look);
  return Run(session);
}

// A device whose kernels run in this process. They run on threads that PoCL starts with its devices: these, and they
// alone, are started by a thread that may do no more than a kernel may.
int RunCpuDevice() {
  const std::string scratch = MakeScratch(), lock_dir = absl::GetFlag(FLAGS_lock_dir);
  SayIfOpen(DeviceLock::MakeDirectory(lock_dir));
  SayIfOpen(Confine({LimitsOfDevice(), {}, {scratch, lock_dir}}));
  Backends backends;
  backends.push_back(device::MakeOpenClBackend());
  std::thread([&backends, &scratch] {
    // Locks are this process's to take, and no kernel's.
    SayIfOpen(Confine({LimitsOfDevice(), {}, {scratch}}));
    SayIfOpen(DropCapabilities());
    SayIfOpen(AllowCallsOfKernels(absl::GetFlag(FLAGS_fd)));
    backends.front()->Devices();
  }).join();
  return RunDevice(backends, [&scratch] {
    // The lock is taken, which may be another user's file.
    SayIfOpen(DropCapabilities());
    SayIfOpen(Confine({LimitsOfDevice(), {}, {scratch}}));
    SayIfOpen(AllowCallsOfWorker());
    ExitWithPeer(absl::GetFlag(FLAGS_fd));
  });
}

absl::Status LaunchFromFile() {
  const std::string path = absl::GetFlag(FLAGS_job);
  std::ifstream file(path, std::ios::binary);
  worker::v1::LaunchJob job;
  if (!file.good() || !job.ParseFromIstream(&file)) {
    return absl::InvalidArgumentError(absl::StrCat("--job is '", path, "', which is no file with a job"));
  }
  const Backends backends = device::HostBackends(absl::GetFlag(FLAGS_emulate));
  const auto found = FindDevice(backends, absl::GetFlag(FLAGS_device));
  if (!found.ok()) return found.status();
  const absl::StatusOr<std::unique_ptr<device::Device>> device = found->first->Open(found->second.id());
  if (!device.ok()) return device.status();
  return Launch(**device, job);
}

// Started by a tool, which looks into this process and may have left the thread that started it.
int RunLaunch() {
  const absl::Status status = LaunchFromFile();
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << "attune-worker --role=launch: " << status.message() << std::endl;
  return EXIT_FAILURE;
}

int RunTool() {
  // Killed with the daemon it would leave behind what it has started.
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  EndGroupWithPeer(absl::GetFlag(FLAGS_fd));
  if (absl::Status status = DenySystemCallsOfTools(); !status.ok()) {
    std::cerr << "attune-worker: running without a system call filter: " << status.message() << std::endl;
  }
  ToolSession session;
  return Run(session);
}

int Main() {
  const std::string role = absl::GetFlag(FLAGS_role);
  if (role != "compile" && role != "device" && role != "probe" && role != "tool") {
    std::cerr << "attune-worker: --role is '" << role << "'; allowed: compile, device, probe, tool and launch"
              << std::endl;
    return 2;
  }
  if (role == "tool") return RunTool();
  if (role == "compile") GiveWay();
  // A host that forbids the filter still tunes; what is lost is a second wall, and the log says so.
  if (absl::Status status = DenySystemCalls(); !status.ok()) {
    std::cerr << "attune-worker: running without a system call filter: " << status.message() << std::endl;
  }
  if (const std::string verify = absl::GetFlag(FLAGS_verify); verify != "device" && verify != "host") {
    std::cerr << "attune-worker: --verify is '" << verify << "'; allowed: device and host" << std::endl;
    return 2;
  }
  const bool cage = absl::GetFlag(FLAGS_cage);
  if (role == "device" && cage) return RunCpuDevice();
  // NVRTC 13 answers from the driver's cache where there is one, without a log and so without a resource report. Both
  // read this when they are loaded. The artifact store is our cache.
  if (role == "compile") setenv("CUDA_CACHE_DISABLE", "1", /*overwrite=*/1);
  // Every thread is as caged as the one that starts it.
  if (role == "compile" && cage) CageCompiler();
  ExitWithPeer(absl::GetFlag(FLAGS_fd));
  Backends backends = device::HostBackends(absl::GetFlag(FLAGS_emulate));
  if (role == "device") return RunDevice(backends, [] {});
  if (role == "probe") {
    ProbeSession session(std::move(backends));
    return Run(session);
  }
  CompileSession session(std::move(backends));
  return Run(session);
}

}  // namespace
}  // namespace attune::worker

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("compiles and measures kernels for attuned, which starts it");
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_role) == "launch") return attune::worker::RunLaunch();
  if (absl::Status status = attune::worker::HardenProcess(); !status.ok()) {
    std::cerr << "attune-worker: " << status.message() << std::endl;
    return EXIT_FAILURE;
  }
  return attune::worker::Main();
}
