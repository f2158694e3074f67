#include "server/profile/profile_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/base/proto_time.h"
#include "server/catalog/bound.h"
#include "server/profile/findings.h"
#include "server/profile/sanitizing.h"
#include "server/profile/trial_code.h"
#include "server/trials/device_slot.h"
#include "server/trials/reference.h"
#include "server/trials/store_wait.h"

namespace attune::profile {
namespace {

jobs::JobTerms TermsOn(const std::string& device) {
  jobs::JobTerms terms;
  terms.device = device;
  terms.priority = trials::Priority::kBackground;
  return terms;
}

absl::StatusOr<jobs::JobTitle> TitleOf(absl::string_view what, const v1::ProfiledCode& code, store::Store& store,
                                       const v1::Device& device) {
  const absl::StatusOr<v1::Trial> trial = store.GetTrial(code.trial());
  if (!trial.ok()) return trial.status();
  return jobs::JobTitle{absl::StrCat(what, " ", trial->name(), " on ", device.id(), ": ", trial->variant().text(),
                                     " for ", trial->problem_text()),
                        trial->problem_text()};
}

// The trial as it is kept now, for an answer.
absl::StatusOr<v1::Trial> Answer(const std::string& name, const Means& means, const trials::Job& job) {
  absl::StatusOr<v1::Trial> trial = ReadTrial(name, means.store, job);
  if (trial.ok()) trial->clear_recipe();
  return trial;
}

void Report(const trials::Job& job, int64_t done, int64_t total, const std::string& what) {
  job.progress.Change([&](v1::OperationProgress& progress) {
    progress.set_phase(v1::OperationProgress::PHASE_TRIALS);
    progress.set_trials_done(done);
    progress.set_trials_total(total);
    progress.set_message(what);
  });
}

std::vector<v1::SanitizerTool> ToolsOf(const v1::SanitizeRequest& request) {
  std::vector<v1::SanitizerTool> tools;
  for (const int tool : request.tools()) tools.push_back(static_cast<v1::SanitizerTool>(tool));
  if (tools.empty()) tools = AllSanitizers();
  std::sort(tools.begin(), tools.end());
  tools.erase(std::unique(tools.begin(), tools.end()), tools.end());
  return tools;
}

v1::SanitizeResult ResultOf(const std::vector<v1::SanitizerRun>& runs, v1::Trial trial) {
  v1::SanitizeResult result;
  const std::string bad = TroubleOf(runs);
  result.set_clean(bad.empty());
  const std::string names = absl::StrJoin(
      runs, ", ", [](std::string* out, const v1::SanitizerRun& run) { absl::StrAppend(out, Word(run.tool())); });
  result.set_reason(bad.empty() ? absl::StrCat("clean under ", names) : bad);
  *result.mutable_trial() = std::move(trial);
  return result;
}

}  // namespace

jobs::JobTerms ProfileJob::TermsOf(const v1::ProfileRequest& request) const { return TermsOn(request.device_id()); }
jobs::JobTerms SanitizeJob::TermsOf(const v1::SanitizeRequest& request) const { return TermsOn(request.device_id()); }

void ProfileJob::SetDevice(const std::string& device_id, v1::ProfileRequest& request) const {
  request.set_device_id(device_id);
}
void SanitizeJob::SetDevice(const std::string& device_id, v1::SanitizeRequest& request) const {
  request.set_device_id(device_id);
}

absl::StatusOr<jobs::JobTitle> ProfileJob::AdmitRequest(const v1::ProfileRequest& request,
                                                        const std::vector<const v1::Device*>& cards) const {
  if (means_.tools == nullptr) return NoTools();
  if (absl::Status here = means_.tools->CheckProfiler(); !here.ok()) return here;
  return TitleOf("profile", request.code(), means_.store, *cards.front());
}

absl::StatusOr<jobs::JobTitle> SanitizeJob::AdmitRequest(const v1::SanitizeRequest& request,
                                                         const std::vector<const v1::Device*>& cards) const {
  if (means_.tools == nullptr) return NoTools();
  if (absl::Status here = means_.tools->CheckSanitizer(); !here.ok()) return here;
  return TitleOf("sanitize", request.code(), means_.store, *cards.front());
}

absl::StatusOr<jobs::JobKind::Fill> ProfileJob::RunRequest(const v1::ProfileRequest& request,
                                                           const jobs::JobRun& run) const {
  const trials::Job& job = run.job;
  if (means_.tools == nullptr) return NoTools();  // one that an earlier process has left
  if (absl::Status open = trials::OpenDevice(run.slot, job); !open.ok()) return open;
  const absl::StatusOr<v1::Trial> trial = ReadTrial(request.code().trial(), means_.store, job);
  if (!trial.ok()) return trial.status();
  const absl::StatusOr<Target> target = TargetOf(*trial, run.slot.device(), means_.store, job);
  if (!target.ok()) return target.status();
  Report(job, 0, 1, absl::StrCat("profiling ", trial->variant().text()));
  v1::Profile profile;
  {
    trials::DeviceUse use(run.slot, job.priority, job.stop, job.waiter, job.abort);
    absl::Status ran = use.Lend([&]() -> absl::Status {
      absl::StatusOr<v1::Profile> measured = means_.tools->Profile(*target, means_.most, job.stop);
      if (!measured.ok()) return measured.status();
      profile = *std::move(measured);
      return absl::OkStatus();
    });
    if (!ran.ok()) return ran;
  }
  profile.set_operation(job.name);
  SetTimestamp(absl::Now(), profile.mutable_time());
  absl::Status kept = trials::WriteFor(
      job, [&](const store::JobWrite& write) { return means_.store.RecordProfile(trial->name(), profile, write); });
  if (!kept.ok()) return kept;
  absl::StatusOr<v1::Trial> now = Answer(trial->name(), means_, job);
  if (!now.ok()) return now.status();
  Report(job, 1, 1, "profiled");
  v1::ProfileResult result;
  *result.mutable_trial() = *std::move(now);
  result.set_bound(catalog::BoundOf(profile));
  return [result = std::move(result)](v1::Operation& operation) {
    *operation.mutable_profile() = result;
    return absl::OkStatus();
  };
}

absl::StatusOr<jobs::JobKind::Fill> SanitizeJob::RunRequest(const v1::SanitizeRequest& request,
                                                            const jobs::JobRun& run) const {
  const trials::Job& job = run.job;
  if (means_.tools == nullptr) return NoTools();  // one that an earlier process has left
  if (absl::Status open = trials::OpenDevice(run.slot, job); !open.ok()) return open;
  const absl::StatusOr<v1::Trial> trial = ReadTrial(request.code().trial(), means_.store, job);
  if (!trial.ok()) return trial.status();
  const absl::StatusOr<Target> target = TargetOf(*trial, run.slot.device(), means_.store, job);
  if (!target.ok()) return target.status();
  const std::vector<v1::SanitizerTool> tools = ToolsOf(request);
  const auto total = static_cast<int64_t>(tools.size());
  const auto report = [&](size_t done, v1::SanitizerTool tool) {
    Report(job, static_cast<int64_t>(done), total, absl::StrCat(Word(tool), " of ", trial->variant().text()));
  };
  trials::DeviceUse use(run.slot, job.priority, job.stop, job.waiter, job.abort);
  const auto runs = Sanitize(*trial, *target, tools, {means_.store, means_.tools, means_.most}, job, use, report);
  if (!runs.ok()) return runs.status();
  absl::StatusOr<v1::Trial> now = Answer(trial->name(), means_, job);
  if (!now.ok()) return now.status();
  Report(job, total, total, "sanitized");
  return [result = ResultOf(*runs, *std::move(now))](v1::Operation& operation) {
    *operation.mutable_sanitize() = result;
    return absl::OkStatus();
  };
}

}  // namespace attune::profile
