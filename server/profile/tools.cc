#include "server/profile/tools.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/attune/quote.h"
#include "server/base/clock.h"
#include "server/base/reason.h"
#include "server/profile/counters.h"
#include "server/profile/executable.h"
#include "server/profile/findings.h"
#include "server/supervisor/tool_worker.h"

namespace attune::profile {
namespace {

constexpr size_t kMostComplaint = 400;

// A folder that only this user can look into, gone with this.
class Scratch {
 public:
  static absl::StatusOr<std::unique_ptr<Scratch>> Make() {
    std::error_code ignored;
    std::string path = absl::StrCat(std::filesystem::temp_directory_path(ignored).string(), "/attune-tool-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
    return std::unique_ptr<Scratch>(new Scratch(path));
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// One call's time and place.
struct Attempt {
  const Scratch& scratch;
  absl::Duration until;  // of SteadyNow
  const std::stop_token& stop;
};

// The last line that says what went wrong.
std::string Complaint(absl::string_view output) {
  std::string found = "it printed nothing";
  for (absl::string_view line : absl::StrSplit(output, '\n', absl::SkipWhitespace())) {
    if (absl::StartsWith(line, "attune-worker")) return Cleaned(line, kMostComplaint);
    if (!absl::StartsWith(line, "==PROF==")) found = Cleaned(line, kMostComplaint);
  }
  return found;
}

absl::Status Failed(const worker::v1::ToolResponse& response) {
  if (absl::StrContains(response.output(), "ERR_NVGPUCTRPERM")) {
    return WithReason(absl::FailedPreconditionError(
                          "the driver keeps performance counters from the daemon's user (ERR_NVGPUCTRPERM): load the "
                          "nvidia module with NVreg_RestrictProfilingToAdminUsers=0, or give the daemon CAP_SYS_ADMIN "
                          "(docs/profile.md)"),
                      "NO_COUNTERS");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("ncu measured no kernel, exit code ", response.exit_code(), ": ", Complaint(response.output())));
}

class HostTools final : public Tools {
 public:
  explicit HostTools(const ToolOptions& options) : options_(options) {}

  absl::Status CheckProfiler() const override { return Ncu().status(); }
  absl::Status CheckSanitizer() const override { return Sanitizer().status(); }

  absl::StatusOr<v1::Profile> Profile(const Target& target, absl::Duration most, const std::stop_token& stop) override {
    const absl::StatusOr<std::string> ncu = Ncu();
    if (!ncu.ok()) return ncu.status();
    const absl::StatusOr<std::unique_ptr<Scratch>> scratch = Scratch::Make();
    if (!scratch.ok()) return scratch.status();
    const Attempt attempt{**scratch, SteadyNow() + most, stop};
    absl::StatusOr<std::set<std::string>> available = Available(*ncu, attempt);
    if (!available.ok()) return available.status();
    // The first run warms up, the second one is measured.
    const absl::StatusOr<std::vector<std::string>> launch = Write(target, 2, **scratch);
    if (!launch.ok()) return launch.status();
    std::vector<Metric> metrics = Choose(*available);
    while (true) {
      const auto response = Run(Command(*ncu, target, metrics, *launch), attempt);
      if (!response.ok()) return response.status();
      const std::set<std::string> unknown = Unknown(response->output());
      const size_t left = std::erase_if(metrics, [&](const Metric& metric) { return unknown.count(metric.name) > 0; });
      if (left > 0) continue;
      absl::StatusOr<std::vector<v1::KernelProfile>> kernels = KernelsIn(response->output(), metrics);
      if (!kernels.ok()) return Failed(*response);
      v1::Profile profile;
      for (v1::KernelProfile& kernel : *kernels) *profile.add_kernels() = std::move(kernel);
      return profile;
    }
  }

  absl::StatusOr<v1::SanitizerRun> Sanitize(const Target& target, v1::SanitizerTool tool, absl::Duration most,
                                            const std::stop_token& stop) override {
    const absl::StatusOr<std::string> sanitizer = Sanitizer();
    if (!sanitizer.ok()) return sanitizer.status();
    const absl::StatusOr<std::unique_ptr<Scratch>> scratch = Scratch::Make();
    if (!scratch.ok()) return scratch.status();
    const absl::StatusOr<std::vector<std::string>> launch = Write(target, 1, **scratch);
    if (!launch.ok()) return launch.status();
    std::vector<std::string> command = {*sanitizer};
    for (const std::string& option : SanitizerOptions(tool)) command.push_back(option);
    command.insert(command.end(), launch->begin(), launch->end());
    const auto response = Run(command, {**scratch, SteadyNow() + most, stop});
    if (!response.ok()) return response.status();
    return RunOf(tool, response->output(), response->exit_code());
  }

 private:
  absl::StatusOr<std::string> Ncu() const { return FindExecutable("ncu", options_.ncu, "--ncu"); }
  absl::StatusOr<std::string> Sanitizer() const {
    return FindExecutable("compute-sanitizer", options_.compute_sanitizer, "--compute_sanitizer");
  }

  absl::StatusOr<worker::v1::ToolResponse> Run(const std::vector<std::string>& command, const Attempt& attempt) const {
    return supervisor::RunTool(
        options_.worker, {command, attempt.scratch.path(), std::max(attempt.until - SteadyNow(), absl::ZeroDuration())},
        attempt.stop);
  }

  // What this ncu can collect on this host's devices.
  absl::StatusOr<std::set<std::string>> Available(const std::string& ncu, const Attempt& attempt) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (asked_ == ncu) return available_;
    }
    const auto listing = Run({ncu, "--query-metrics"}, attempt);
    if (!listing.ok()) return listing.status();
    std::set<std::string> available = MetricsIn(listing->output());
    if (available.empty()) return Failed(*listing);
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_ = ncu;
    return available_ = std::move(available);
  }

  // The command that launches the target, which a file in `scratch` describes.
  absl::StatusOr<std::vector<std::string>> Write(const Target& target, int runs, const Scratch& scratch) const {
    worker::v1::LaunchJob job = target.job;
    job.set_runs(runs);
    const std::string path = scratch.path() + "/job.binpb";
    std::ofstream file(path, std::ios::binary);
    if (!job.SerializeToOstream(&file) || !file.flush()) {
      return absl::UnavailableError(absl::StrCat("cannot write ", path));
    }
    std::vector<std::string> command = {std::filesystem::absolute(options_.worker.executable).string(), "--role=launch",
                                        absl::StrCat("--device=", target.device.id()), absl::StrCat("--job=", path)};
    if (!options_.worker.emulate.empty()) command.push_back(absl::StrCat("--emulate=", options_.worker.emulate));
    return command;
  }

  // Clocks and caches stay as they are in use. Entries are C identifiers.
  static std::vector<std::string> Command(const std::string& ncu, const Target& target,
                                          const std::vector<Metric>& metrics, const std::vector<std::string>& launch) {
    std::set<std::string> entries;
    const auto& launches = target.job.candidate().recipe().launches();
    for (const v1::KernelLaunch& kernel : launches) entries.insert(kernel.entry());
    const std::string names =
        absl::StrJoin(metrics, ",", [](std::string* out, const Metric& metric) { absl::StrAppend(out, metric.name); });
    std::vector<std::string> command = {ncu,
                                        "--csv",
                                        "--page=raw",
                                        "--print-units=base",
                                        "--target-processes=all",
                                        "--clock-control=none",
                                        "--cache-control=none",
                                        absl::StrCat("--kernel-name=regex:^(", absl::StrJoin(entries, "|"), ")$"),
                                        absl::StrCat("--launch-skip=", launches.size()),
                                        absl::StrCat("--launch-count=", launches.size()),
                                        absl::StrCat("--metrics=", names)};
    command.insert(command.end(), launch.begin(), launch.end());
    return command;
  }

  const ToolOptions options_;
  std::mutex mutex_;
  std::string asked_;                // the ncu that available_ is of
  std::set<std::string> available_;  // base names
};

}  // namespace

absl::Status NoTools() {
  return WithReason(absl::FailedPreconditionError("this host runs no profiler and no sanitizer"), "NO_TOOL");
}

std::unique_ptr<Tools> MakeTools(const ToolOptions& options) { return std::make_unique<HostTools>(options); }

}  // namespace attune::profile
