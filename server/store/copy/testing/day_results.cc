// What a day's jobs find out, and what they compile.
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"
#include "server/store/copy/testing/day.h"
#include "server/store/copy/testing/day_answers.h"
#include "server/store/rows/names.h"
#include "server/store/testing/store_contract.h"

namespace attune::store::copy {
namespace {

constexpr v1::Verdict kBad[] = {v1::VERDICT_WRONG_RESULT, v1::VERDICT_TIMEOUT, v1::VERDICT_SLOW, v1::VERDICT_UNSTABLE,
                                v1::VERDICT_LOST};

}  // namespace

void Day::AppendTrial() {
  v1::Trial trial = SampleTrial(16 * (1 + Draw(12)), 10 + Draw(1000) / 8.0);
  const int card = Draw(3);
  trial.set_device_id(absl::StrCat("cuda:", card));
  if (card == 2) {
    trial.mutable_dependencies()->set_device_fingerprint("h100");
    trial.clear_device_uuid();
  } else {
    trial.set_device_uuid(absl::StrCat("GPU-", card));
  }
  trial.set_problem_text(Problem());
  trial.set_policy(Policy());
  trial.mutable_dependencies()->set_source_hash(Chance(80) ? "source 1" : "source 2");
  if (Chance(30)) {
    trial.set_verdict(kBad[Draw(5)]);
    if (trial.verdict() != v1::VERDICT_SLOW) trial.clear_timing();
    trial.clear_recipe();
  }
  trial.set_artifact_sha256(Sha256(absl::StrCat("code ", Draw(30))));
  SetNow(trial.mutable_finish_time());
  const MadeJob* const job = unfinished_.empty() || Chance(50) ? nullptr : &unfinished_[Draw(unfinished_.size())];
  trial.set_job(job == nullptr ? "" : job->parent.empty() ? job->name : job->parent);
  const JobWrite write = WriteOf(job);
  const std::string name = Ask("append", [&](Store& store) { return NameOr(store.AppendTrial(trial, write)); });
  if (!IdOf(kTrials, name).has_value()) return;  // the job is not leased
  if (job != nullptr && Chance(5)) {
    const std::string again =
        Ask("append again", [&](Store& store) { return NameOr(store.AppendTrial(trial, write)); });
    EXPECT_EQ(again, name);
  }
  trials_.push_back({name, trial.problem_text(), trial.dependencies().device_fingerprint(), trial.policy(),
                     trial.verdict() == v1::VERDICT_OK});
}

void Day::Promote() {
  if (trials_.empty()) return;
  const MadeTrial& trial = trials_[Draw(trials_.size())];
  const Served served = {trial.problem, trial.device_class, trial.policy};
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(trial.name);
  incumbent.set_job("operations/promoter");
  incumbent.set_why("faster, \u00fcberall");
  incumbent.set_pinned(Chance(10));
  if (Chance(50)) incumbent.mutable_timing()->set_median_us(7 + Draw(100));
  incumbent.add_ties()->set_text("attention_simt:BLOCK_M=32");
  v1::Alternative& least = *incumbent.add_alternatives();
  least.set_objective(v1::OBJECTIVE_ENERGY);
  least.mutable_trial()->set_name(trial.name);
  SetNow(incumbent.mutable_promote_time());
  const std::string expected = Chance(5) ? "incumbents/7777" : served_[served];
  const std::string name = Ask("promote", [&](Store& store) {
    absl::StatusOr<v1::Incumbent> made = store.Promote(incumbent, expected, {});
    return made.ok() ? made->name() : CodeOf(made.status());
  });
  if (!IdOf(kIncumbents, name).has_value()) return;
  incumbents_[served].push_back(name);
  served_[served] = name;
}

void Day::RollBack() {
  if (incumbents_.empty()) return;
  auto chosen = std::next(incumbents_.begin(), Draw(incumbents_.size()));
  const auto& [problem, device_class, policy] = chosen->first;
  const std::string to = Chance(30) ? chosen->second[Draw(chosen->second.size())] : "";
  const std::string name =
      Ask("roll back", [&, &problem = problem, &device_class = device_class, policy = policy](Store& store) {
        absl::StatusOr<v1::Incumbent> now = store.RollBack(problem, device_class, policy, "slower in production", to);
        return now.ok() ? now->name() : CodeOf(now.status());
      });
  if (IdOf(kIncumbents, name).has_value()) served_[chosen->first] = name;
}

void Day::Unpin() {
  if (incumbents_.empty()) return;
  const auto& [problem, device_class, policy] = std::next(incumbents_.begin(), Draw(incumbents_.size()))->first;
  Ask("unpin", [&, &problem = problem, &device_class = device_class, policy = policy](Store& store) {
    return TextOr(store.Unpin(problem, device_class, policy));
  });
}

void Day::Retry() {
  v1::TrialFilter filter;
  filter.set_problem(Problem());
  filter.add_verdicts(kBad[Draw(5)]);
  Ask("retry", [&](Store& store) {
    const absl::StatusOr<Retried> retried = store.RetryTrials(filter);
    return retried.ok() ? absl::StrCat(retried->trials, " of ", retried->problems.size()) : CodeOf(retried.status());
  });
}

void Day::Report() {
  if (trials_.empty()) return;
  const std::string& trial = trials_[Draw(trials_.size())].name;
  if (Chance(50)) {
    v1::Profile profile;
    profile.add_kernels()->set_entry(absl::StrCat("attention", done_));
    Ask("profile", [&](Store& store) { return CodeOf(store.RecordProfile(trial, profile, {})); });
    return;
  }
  v1::Sanitizing sanitizing;
  sanitizing.add_runs()->set_tool(Chance(50) ? v1::SANITIZER_TOOL_MEMCHECK : v1::SANITIZER_TOOL_RACECHECK);
  Ask("sanitize", [&](Store& store) { return CodeOf(store.RecordSanitizing(trial, sanitizing, {})); });
}

void Day::Retime() {
  v1::Retiming retiming;
  retiming.set_problem_text(Problem());
  retiming.set_device_id(kDevice);
  if (Chance(70)) retiming.set_device_uuid("GPU-0");
  retiming.set_policy(Policy());
  retiming.set_variant("attention_simt:BLOCK_M=64");
  retiming.mutable_timing()->set_median_us(10 + Draw(100) / 4.0);
  retiming.mutable_dependencies()->set_device_fingerprint(kClass);
  SetNow(retiming.mutable_finish_time());
  Ask("retime", [&](Store& store) { return NameOr(store.AppendRetiming(retiming, {})); });
}

void Day::RecordBaseline() {
  v1::Baseline baseline;
  baseline.set_problem_text(Problem());
  baseline.set_device_id(kDevice);
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_contender(Chance(50) ? "flash" : "cudnn");
  baseline.set_median_us(10 + Draw(100));
  SetNow(baseline.mutable_record_time());
  Ask("baseline", [&](Store& store) { return TextOr(store.RecordBaseline(baseline)); });
}

void Day::PutArtifact() {
  const std::string code = absl::StrCat("code ", Draw(30));
  CompiledArtifact artifact;
  artifact.compile_key = absl::StrCat("key ", Draw(60));
  artifact.toolchain = Chance(80) ? "nvrtc 13.0" : "nvrtc 12.9";
  artifact.log = "ptxas info \xfd";
  artifact.compile_ms = Draw(10000) / 16.0;
  if (Chance(25)) {
    artifact.verdict = v1::VERDICT_COMPILE_ERROR;
  } else {
    artifact.sha256 = Sha256(code);
    artifact.entries.emplace_back().set_name("attention");
  }
  const absl::string_view bytes = artifact.sha256.empty() ? absl::string_view() : absl::string_view(code);
  Ask("artifact", [&](Store& store) { return CodeOf(store.PutArtifact(artifact, bytes)); });
}

void Day::ForgetFailures() {
  const std::vector<std::string> keys = {absl::StrCat("key ", Draw(60)), absl::StrCat("key ", Draw(60))};
  Ask("forget",
      [&](Store& store) { return absl::StrCat(store.ForgetFailedCompiles(keys, "nvrtc 13.0").value_or(-1)); });
}

void Day::Submit() {
  v1::Submission submission;
  submission.set_content_hash(absl::StrCat("hash", Draw(20)));
  submission.set_family(absl::StrCat("submitted_", submission.content_hash()));
  submission.set_principal(Chance(50) ? "token:ada" : "token:bob");
  if (Chance(60)) submission.set_loop("tiles");
  submission.set_device_id(kDevice);
  submission.set_policy(v1::POLICY_HOT);
  submission.set_state(v1::Submission::STATE_PRIVATE);
  SetNow(submission.mutable_create_time());
  submission.set_operation(absl::StrCat("operations/submitted", ++submissions_));
  submission.mutable_result()->set_decision(Chance(50) ? v1::SubmitResult::DECISION_KEEP
                                                       : v1::SubmitResult::DECISION_REVERT);
  v1::SourceFile& file = *submission.add_files();
  file.set_path("kernel.cl");
  file.set_text(absl::StrCat("// ", submission.content_hash(), " \xff"));
  Ask("submit", [&](Store& store) { return TextOr(store.RecordSubmission(submission, {})); });
}

void Day::MoveSubmission() {
  if (submissions_ == 0) return;
  const std::string name = absl::StrCat("submissions/", 1 + Draw(submissions_));
  const SubmissionMove move = {Chance(60) ? v1::Submission::STATE_ADOPTED : v1::Submission::STATE_WITHDRAWN, "root"};
  Ask("move", [&](Store& store) { return CodeOf(store.MoveSubmission(name, move).status()); });
}

}  // namespace attune::store::copy
