// NVIDIA's tools on this host: Nsight Compute and compute-sanitizer, around a worker that launches one candidate.
#ifndef ATTUNE_SERVER_PROFILE_TOOLS_H_
#define ATTUNE_SERVER_PROFILE_TOOLS_H_

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/profile.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/supervisor/worker_options.h"

namespace attune::profile {

// What is launched, where.
struct Target {
  v1::Device device;
  worker::v1::LaunchJob job;  // without runs
};

// Thread-safe. Calls block; they are Cancelled when stopped and DeadlineExceeded after the time they are given. One
// that has ended leaves no process behind.
class Tools {
 public:
  virtual ~Tools() = default;

  // FailedPrecondition, in a line, when the host has no such tool.
  virtual absl::Status CheckProfiler() const = 0;
  virtual absl::Status CheckSanitizer() const = 0;

  // The counters of a recipe's kernels, warmed up by one run. FailedPrecondition when the driver keeps them from this
  // user.
  virtual absl::StatusOr<v1::Profile> Profile(const Target& target, absl::Duration most,
                                              const std::stop_token& stop) = 0;
  // What a run finds that comes to no result says why.
  virtual absl::StatusOr<v1::SanitizerRun> Sanitize(const Target& target, v1::SanitizerTool tool, absl::Duration most,
                                                    const std::stop_token& stop) = 0;
};

// FailedPrecondition, of a daemon without any.
absl::Status NoTools();

struct ToolOptions {
  supervisor::WorkerOptions worker;
  std::string ncu;                // path; empty: in PATH, else in the CUDA toolkit
  std::string compute_sanitizer;  // the same
};
std::unique_ptr<Tools> MakeTools(const ToolOptions& options);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_TOOLS_H_
