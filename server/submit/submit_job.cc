#include "server/submit/submit_job.h"

#include <stop_token>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/base/pause.h"
#include "server/base/proto_time.h"
#include "server/search/todays_variant.h"
#include "server/store/page_token.h"
#include "server/submit/package.h"
#include "server/submit/sanitizer_gate.h"
#include "server/submit/verdict.h"
#include "server/trials/store_wait.h"
#include "server/trials/tuning_key.h"

namespace attune::submit {
namespace {

// Stops a submission when its job is stopped, or after `most`.
class TimeBox {
 public:
  TimeBox(const trials::Job& job, absl::Duration most)
      : on_stop_(job.stop, [this] { stop_.request_stop(); }),
        on_abort_(job.abort, [this] { abort_.request_stop(); }),
        clock_([this, most](const std::stop_token& ended) {
          if (!Pause(ended, most)) return;
          stop_.request_stop();
          abort_.request_stop();
        }) {}

  trials::Job Boxed(const trials::Job& job) const {
    return {job.name, job.priority, stop_.get_token(), job.waiter, job.progress, job.epoch, abort_.get_token()};
  }

 private:
  std::stop_source stop_;
  std::stop_source abort_;
  std::stop_callback<std::function<void()>> on_stop_;
  std::stop_callback<std::function<void()>> on_abort_;
  std::jthread clock_;  // last: it ends first
};

v1::SubmitResult::Row Reverted(const std::string& problem, v1::Verdict verdict, const std::string& why) {
  v1::SubmitResult::Row row;
  row.set_problem(problem);
  row.mutable_trial()->set_problem_text(problem);
  row.mutable_trial()->set_verdict(verdict);
  row.mutable_trial()->set_detail(why);
  return row;
}

std::vector<std::string> TextsOf(const v1::SubmitRequest& request) {
  std::vector<std::string> texts;
  for (const v1::Problem& problem : request.problems()) {
    const absl::StatusOr<Problem> plain = FromProto(problem);
    texts.push_back(plain.ok() ? ToText(*plain) : "");
  }
  return texts;
}

std::string PrincipalOf(const jobs::JobRun& run) {
  return run.before.principal().empty() ? "daemon" : run.before.principal();
}

// As it is kept.
v1::Submission SubmissionOf(const v1::SubmitRequest& request, const Package& package, const jobs::JobRun& run,
                            const v1::SubmitResult& result) {
  v1::Submission submission;
  submission.set_content_hash(package.content_hash);
  submission.set_family(package.manifest.name());
  submission.set_principal(PrincipalOf(run));
  submission.set_loop(request.loop());
  submission.set_hypothesis(request.hypothesis());
  submission.set_base(request.base());
  for (std::string& text : TextsOf(request)) submission.add_problems(std::move(text));
  submission.set_device_id(run.slot.device().id());
  submission.set_policy(request.policy());
  submission.set_state(v1::Submission::STATE_PRIVATE);
  *submission.mutable_create_time() = run.before.create_time();
  submission.set_operation(run.job.name);
  *submission.mutable_result() = result;
  *submission.mutable_files() = request.files();
  return submission;
}

}  // namespace

jobs::JobTerms SubmitJob::TermsOf(const v1::SubmitRequest& request) const {
  jobs::JobTerms terms;
  terms.device = request.device_id();
  terms.own = true;  // an iteration of a loop of theirs
  return terms;
}

void SubmitJob::SetDevice(const std::string& device_id, v1::SubmitRequest& request) const {
  request.set_device_id(device_id);
}

absl::StatusOr<jobs::JobTitle> SubmitJob::AdmitRequest(const v1::SubmitRequest& request,
                                                       const std::vector<const v1::Device*>& cards) const {
  const auto family = FamilyOf(request.files(), options_.library);
  if (!family.ok()) return family.status();
  const v1::Device& device = *cards.front();
  if ((*family)->manifest.backend() != device.backend()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel is for ", v1::Backend_Name((*family)->manifest.backend()), ", and ", device.id(),
                     " is a device of ", v1::Backend_Name(device.backend())));
  }
  for (const v1::Problem& problem : request.problems()) {
    const absl::StatusOr<Problem> plain = FromProto(problem);
    if (!plain.ok()) return plain.status();
    const auto key = trials::MakeTuningKey(*plain, device, request.policy(), options_.host);
    if (!key.ok()) return key.status();
  }
  const std::vector<std::string> texts = TextsOf(request);
  return jobs::JobTitle{
      absl::StrCat("submit ", (*family)->name(), " for ", absl::StrJoin(texts, ", "), " on ", device.id()),
      texts.size() == 1 ? texts.front() : ""};
}

absl::StatusOr<std::optional<Base>> SubmitJob::Served(const catalog::TuningKey& tuning_key,
                                                      const jobs::JobRun& run) const {
  const auto served = trials::ReadFor(run.job, [&] { return options_.results.Served(catalog::KeyOf(tuning_key)); });
  if (!served.ok()) return served.status();
  if (!served->has_value()) return std::nullopt;
  absl::StatusOr<space::Variant> today = search::TodaysVariant((*served)->trial(), tuning_key, options_.host.families);
  if (!today.ok()) return std::nullopt;
  return Base{(*served)->name(), *std::move(today)};
}

absl::StatusOr<std::optional<v1::Submission>> SubmitJob::Previous(const v1::SubmitRequest& request,
                                                                  const std::string& content_hash,
                                                                  const jobs::JobRun& run) const {
  store::Store& store = options_.means.code.store();
  const store::SubmissionFilter filter{.principal = PrincipalOf(run), .loop = request.loop()};
  std::string token;
  do {
    const auto page =
        trials::ReadFor(run.job, [&] { return store.ListSubmissions(filter, store::kMostPageSize, token); });
    if (!page.ok()) return page.status();
    for (const v1::Submission& submission : page->items) {
      const bool kept = submission.result().decision() == v1::SubmitResult::DECISION_KEEP &&
                        submission.state() != v1::Submission::STATE_WITHDRAWN;
      if (kept && submission.content_hash() != content_hash) return submission;
    }
    token = page->next_page_token;
  } while (!token.empty());
  return std::nullopt;
}

absl::StatusOr<std::optional<Base>> SubmitJob::Submitted(const v1::Submission& submission,
                                                         const catalog::TuningKey& tuning_key) const {
  const auto family = FamilyOf(submission.files(), options_.library);
  if (!family.ok()) return std::nullopt;  // what it includes is another by now
  // The variant that it was kept with; for a problem that it was not submitted for, its guess.
  for (const v1::SubmitResult::Row& row : submission.result().rows()) {
    if (row.problem() != tuning_key.problem_text) continue;
    absl::StatusOr<space::Variant> variant = space::ParseVariant(row.trial().variant().text(), {*family});
    if (!variant.ok() || !space::Feasible(*variant, tuning_key.problem, tuning_key.device).ok()) continue;
    return Base{submission.name(), *std::move(variant)};
  }
  absl::StatusOr<space::Variant> guess = space::Guess(*family, tuning_key.problem, tuning_key.device);
  if (!guess.ok()) return std::nullopt;
  return Base{submission.name(), *std::move(guess)};
}

absl::StatusOr<std::optional<Base>> SubmitJob::BaseOf(const v1::SubmitRequest& request, const std::string& content_hash,
                                                      const catalog::TuningKey& tuning_key,
                                                      const jobs::JobRun& run) const {
  std::string name = request.base();
  if (name == "previous") {
    const auto previous = Previous(request, content_hash, run);
    if (!previous.ok()) return previous.status();
    name = previous->has_value() ? (*previous)->name() : "";
  }
  if (!absl::StartsWith(name, "submissions/")) return Served(tuning_key, run);
  const auto submission = trials::ReadFor(run.job, [&] { return options_.means.code.store().GetSubmission(name); });
  if (!submission.ok()) return submission.status();
  return Submitted(*submission, tuning_key);
}

absl::StatusOr<v1::SubmitResult> SubmitJob::TryAll(const v1::SubmitRequest& request,
                                                   const std::shared_ptr<const space::Family>& family,
                                                   const std::string& content_hash, const jobs::JobRun& run,
                                                   const trials::Job& job) const {
  v1::SubmitResult result;
  const v1::Device& device = run.slot.device();
  for (const v1::Problem& problem : request.problems()) {
    const absl::StatusOr<Problem> plain = FromProto(problem);
    if (!plain.ok()) return plain.status();
    const auto key = trials::MakeTuningKey(*plain, device, request.policy(), options_.host);
    if (!key.ok()) return key.status();
    const absl::StatusOr<std::optional<Base>> base = BaseOf(request, content_hash, *key, run);
    if (!base.ok()) return base.status();
    const std::string late = absl::StrCat("the submission took longer than ", absl::FormatDuration(options_.times.all));
    v1::SubmitResult::Row& row = *result.add_rows();
    std::optional<measure::Gain> gain;
    const auto is_late = [&] { return job.stop.stop_requested() && !run.job.stop.stop_requested(); };
    if (is_late()) {
      row = Reverted(key->problem_text, v1::VERDICT_TIMEOUT, late);
    } else if (base->has_value() && (*base)->variant.family->name() == family->name()) {
      row = Reverted(key->problem_text, v1::VERDICT_INFEASIBLE,
                     absl::StrCat("its base, ", (*base)->name, ", is this very content"));
    } else {
      absl::StatusOr<Tried> tried = TryProblem(family, *key, *base, means_, run.slot, job);
      if (!tried.ok() && !is_late()) return tried.status();
      if (tried.ok()) gain = tried->gain;
      row = tried.ok() ? std::move(tried->row) : Reverted(key->problem_text, v1::VERDICT_TIMEOUT, late);
    }
    Decide(device, gain, row);
  }
  DecideAll(result);
  return result;
}

absl::StatusOr<jobs::JobKind::Fill> SubmitJob::RunRequest(const v1::SubmitRequest& request,
                                                          const jobs::JobRun& run) const {
  const absl::StatusOr<Package> package = ReadPackage(request.files());
  if (!package.ok()) return package.status();
  const auto family = FamilyOf(*package, options_.library);
  if (!family.ok()) return family.status();
  if (absl::Status open = trials::OpenDevice(run.slot, run.job); !open.ok()) return open;
  absl::StatusOr<v1::SubmitResult> result;
  {
    const TimeBox box(run.job, options_.times.all);
    result = TryAll(request, *family, package->content_hash, run, box.Boxed(run.job));
  }
  if (!result.ok()) return result.status();
  if (run.job.stop.stop_requested()) return absl::CancelledError("stopped");
  const auto turn = IsSanitizersTurn(request, PrincipalOf(run), options_.sanitizers.store, run.job);
  if (!turn.ok()) return turn.status();
  if (*turn) {
    if (absl::Status done = Sanitize(options_.sanitizers, run.slot, run.job, *result); !done.ok()) return done;
  }
  const v1::Submission submission = SubmissionOf(request, *package, run, *result);
  const auto recorded = trials::WriteFor(run.job, [&](const store::JobWrite& write) {
    return options_.means.code.store().RecordSubmission(submission, write);
  });
  if (!recorded.ok()) return recorded.status();
  result->set_submission(recorded->name());
  return [result = *std::move(result)](v1::Operation& operation) {
    *operation.mutable_submit() = result;
    return absl::OkStatus();
  };
}

}  // namespace attune::submit
