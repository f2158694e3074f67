#include "server/profile/sanitizing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/profile/findings.h"
#include "server/profile/trial_code.h"
#include "server/trials/store_wait.h"

namespace attune::profile {
namespace {

// One tool's run on the device.
absl::StatusOr<v1::SanitizerRun> RunTool(v1::SanitizerTool tool, const Target& target, absl::Duration most,
                                         Tools& tools, const trials::Job& job, trials::DeviceUse& use) {
  v1::SanitizerRun found;
  const absl::Status ran = use.Lend([&]() -> absl::Status {
    absl::StatusOr<v1::SanitizerRun> one = tools.Sanitize(target, tool, most, job.stop);
    if (!one.ok()) return one.status();
    found = *std::move(one);
    return absl::OkStatus();
  });
  if (absl::IsDeadlineExceeded(ran)) {
    found.set_tool(tool);
    found.set_incomplete(absl::StrCat(Word(tool), " came to no result: ", ran.message()));
    return found;
  }
  if (!ran.ok()) return ran;
  return found;
}

absl::Status Record(const v1::SanitizerRun& found, const std::string& trial, store::Store& store,
                    const trials::Job& job) {
  v1::Sanitizing sanitizing;
  *sanitizing.add_runs() = found;
  sanitizing.set_operation(job.name);
  SetTimestamp(absl::Now(), sanitizing.mutable_time());
  return trials::WriteFor(
      job, [&](const store::JobWrite& write) { return store.RecordSanitizing(trial, sanitizing, write); });
}

bool HasAll(const v1::Sanitizing& sanitizing) {
  const std::vector<v1::SanitizerTool> all = AllSanitizers();
  return std::all_of(all.begin(), all.end(), [&](v1::SanitizerTool tool) {
    return std::any_of(sanitizing.runs().begin(), sanitizing.runs().end(),
                       [&](const auto& run) { return run.tool() == tool && run.incomplete().empty(); });
  });
}

std::vector<v1::SanitizerRun> RunsOf(const v1::Sanitizing& sanitizing) {
  return {sanitizing.runs().begin(), sanitizing.runs().end()};
}

std::string FindingsText(const v1::SanitizerRun& run) {
  return absl::StrCat(Word(run.tool()), " reports ", run.errors(), run.errors() == 1 ? " error" : " errors",
                      run.findings().empty() ? "" : absl::StrCat(": ", run.findings(0)));
}

}  // namespace

std::vector<v1::SanitizerTool> AllSanitizers() {
  return {v1::SANITIZER_TOOL_MEMCHECK, v1::SANITIZER_TOOL_RACECHECK, v1::SANITIZER_TOOL_SYNCCHECK,
          v1::SANITIZER_TOOL_INITCHECK};
}

absl::Status CheckSanitizers(const v1::Device& device, const Tools* tools) {
  if (device.backend() != v1::BACKEND_CUDA) {
    return absl::FailedPreconditionError(absl::StrCat(
        device.id(), " (", device.model(), ") is a device of OpenCL: compute-sanitizer knows CUDA devices alone"));
  }
  if (tools == nullptr) return NoTools();
  return tools->CheckSanitizer();
}

absl::StatusOr<std::vector<v1::SanitizerRun>> Sanitize(const v1::Trial& trial, const Target& target,
                                                       absl::Span<const v1::SanitizerTool> tools,
                                                       const SanitizerMeans& means, const trials::Job& job,
                                                       trials::DeviceUse& use,
                                                       absl::FunctionRef<void(size_t, v1::SanitizerTool)> report) {
  absl::Duration left = means.most;
  std::vector<v1::SanitizerRun> runs;
  for (const v1::SanitizerTool tool : tools) {
    report(runs.size(), tool);
    const absl::Duration before = use.busy();
    absl::StatusOr<v1::SanitizerRun> found = RunTool(tool, target, left, *means.tools, job, use);
    if (!found.ok()) return found.status();
    left = std::max(left - (use.busy() - before), absl::ZeroDuration());
    if (absl::Status kept = Record(*found, trial.name(), means.store, job); !kept.ok()) return kept;
    runs.push_back(*std::move(found));
  }
  return runs;
}

absl::StatusOr<std::vector<v1::SanitizerRun>> SanitizeTrial(const std::string& trial, const v1::Device& device,
                                                            const SanitizerMeans& means, const trials::Job& job,
                                                            trials::DeviceUse& use) {
  if (absl::Status can = CheckSanitizers(device, means.tools); !can.ok()) return can;
  const absl::StatusOr<v1::Trial> stored = ReadTrial(trial, means.store, job);
  if (!stored.ok()) return stored.status();
  if (HasAll(stored->sanitizing())) return RunsOf(stored->sanitizing());
  const absl::StatusOr<Target> target = TargetOf(*stored, device, means.store, job);
  if (!target.ok()) return target.status();
  return Sanitize(*stored, *target, AllSanitizers(), means, job, use, [&](size_t, v1::SanitizerTool tool) {
    job.progress.SetPhase(v1::OperationProgress::PHASE_VERIFY,
                          absl::StrCat(Word(tool), " of ", stored->variant().text()));
  });
}

std::string TroubleOf(absl::Span<const v1::SanitizerRun> runs) {
  std::vector<std::string> bad;
  for (const v1::SanitizerRun& run : runs) {
    if (!run.incomplete().empty()) bad.push_back(run.incomplete());
    if (run.errors() > 0) bad.push_back(FindingsText(run));
  }
  return absl::StrJoin(bad, "; ");
}

std::string FindingsOf(absl::Span<const v1::SanitizerRun> runs) {
  std::vector<std::string> bad;
  for (const v1::SanitizerRun& run : runs) {
    if (run.errors() > 0) bad.push_back(FindingsText(run));
  }
  return absl::StrJoin(bad, "; ");
}

}  // namespace attune::profile
