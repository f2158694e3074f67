#include "server/jobs/on_miss.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"
#include "server/base/pause.h"
#include "server/base/proto_time.h"
#include "server/catalog/code_rejection.h"
#include "server/catalog/families.h"
#include "server/space/space.h"
#include "server/trials/tuning_key.h"

namespace attune::jobs {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr int kMostALook = 32;                            // that turn out to be known, or impossible
constexpr absl::Duration kFirstQuiet = absl::Minutes(1);  // after a job that failed; twice as long after the next

// What is the code's own fault, and so may befall other problems: a trial may be too long, or its times too unsteady,
// for one of them alone.
bool IsWrong(v1::Verdict verdict) {
  return verdict == v1::VERDICT_WRONG_RESULT || verdict == v1::VERDICT_OUT_OF_BOUNDS || verdict == v1::VERDICT_CRASHED;
}

}  // namespace

void OnMiss::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (Pause(stop, kBetweenLooks)) Look();
  });
}

void OnMiss::Look() {
  for (const v1::Device& device : means_.host.devices) LookAt(device, work_[device.id()]);
}

void OnMiss::LookAt(const v1::Device& device, Work& work) {
  if (work.job.has_value()) {
    const absl::StatusOr<v1::Operation> now = means_.tuner.GetOperation(work.job->name);
    if (now.ok() && !now->done()) return;
    if (now.ok()) Conclude(device, work, *now);
    work.job.reset();
  }
  for (int i = 0; i < kMostALook && MayStart(device, work); ++i) {
    std::optional<Case> next = Next(device);
    if (!next.has_value() || StartJob(device, *std::move(next), work)) return;
  }
}

bool OnMiss::MayStart(const v1::Device& device, Work& work) {
  const absl::Duration now = options_.clock();
  while (!work.starts.empty() && work.starts.front() <= now - absl::Hours(1)) work.starts.pop_front();
  return now >= work.quiet_until && work.starts.size() < static_cast<size_t>(options_.per_hour) &&
         means_.tuner.IsIdle(device.id());
}

std::optional<OnMiss::Case> OnMiss::Next(const v1::Device& device) {
  const absl::Duration now = options_.clock();
  const bool checking = options_.what == What::kCheck;
  const std::optional<v1::Miss> miss = means_.misses.First(device.fingerprint(), [&](const v1::Miss& one) {
    const auto it = seen_.find(ToText(catalog::KeyOf(one)));
    return it == seen_.end() || it->second.until <= now || (checking && it->second.variant != one.variant().text());
  });
  if (!miss.has_value()) return std::nullopt;
  const absl::StatusOr<Problem> problem = FromProto(miss->problem());
  if (!problem.ok()) return std::nullopt;
  return Case{catalog::KeyOf(*miss), *problem, miss->variant().text()};
}

bool OnMiss::StartJob(const v1::Device& device, Case about, Work& work) {
  // Unless the store knows it already, as after a restart.
  const bool checking = options_.what == What::kCheck;
  if (checking && (about.variant.empty() || Judge(device, about) != v1::VERDICT_UNSPECIFIED)) {
    Remember(about, absl::InfiniteDuration());
    return false;
  }
  const absl::StatusOr<v1::Operation> started = Begin(device, about);
  if (!started.ok()) {
    LogInfo("nothing is done about a miss",
            {{"problem", about.key.problem_text}, {"device", device.id()}, {"why", started.status().message()}});
    Remember(about, options_.clock() + options_.hold);
    Count("refused");
    return false;
  }
  Count("started");
  work.starts.push_back(options_.clock());
  work.job = Job{started->name(), std::move(about)};
  return true;
}

absl::StatusOr<v1::Operation> OnMiss::Begin(const v1::Device& device, const Case& about) {
  if (options_.what == What::kCheck) {
    v1::EvaluateVariantRequest request;
    *request.mutable_problem() = ToProto(about.problem);
    request.set_device_id(device.id());
    request.set_policy(about.key.policy);
    request.mutable_variant()->set_text(about.variant);
    request.set_on_miss(true);
    return means_.tuner.Evaluate(request);
  }
  v1::TuneRequest request;
  *request.mutable_problem() = ToProto(about.problem);
  request.set_device_id(device.id());
  request.set_policy(about.key.policy);
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_max_trials(options_.trials);
  SetDuration(options_.trial_time, request.mutable_strategy()->mutable_max_time());
  request.set_on_miss(true);
  return means_.tuner.Tune(request);
}

void OnMiss::Conclude(const v1::Device& device, Work& work, const v1::Operation& ended) {
  const Case& about = work.job->about;
  const absl::Duration now = options_.clock();
  const v1::Verdict verdict = Judge(device, about);
  const bool checked = options_.what == What::kCheck && verdict != v1::VERDICT_UNSPECIFIED;
  // What was tuned is no miss any more.
  if (!ended.tune().has_incumbent()) Remember(about, checked ? absl::InfiniteDuration() : now + options_.hold);
  Count(ended.state() == v1::Operation::STATE_SUCCEEDED ? "succeeded" : "failed");
  if (ended.state() == v1::Operation::STATE_SUCCEEDED) {
    work.failures = 0;
    return;
  }
  work.quiet_until = now + std::min(options_.hold, kFirstQuiet * (1 << std::min(work.failures, 10)));
  ++work.failures;
}

v1::Verdict OnMiss::Judge(const v1::Device& device, const Case& about) {
  const absl::StatusOr<space::Variant> variant = space::ParseVariant(
      about.variant, catalog::FamiliesFor(means_.host.families, device.backend(), family::v1::ROLE_SEARCH));
  const absl::StatusOr<catalog::TuningKey> tuning_key =
      trials::MakeTuningKey(about.problem, device, about.key.policy, means_.host);
  if (!variant.ok() || !tuning_key.ok()) return v1::VERDICT_UNSPECIFIED;
  const absl::StatusOr<std::vector<v1::Trial>> known = catalog::KnownToday(means_.store, *tuning_key);
  if (!known.ok()) return v1::VERDICT_UNSPECIFIED;
  const auto trial = std::find_if(known->begin(), known->end(), [&](const v1::Trial& one) {
    return one.variant().text() == about.variant && one.dependencies().source_hash() == variant->family->source_hash;
  });
  if (trial == known->end()) return v1::VERDICT_UNSPECIFIED;
  const absl::StatusOr<space::CompileSpec> spec = space::SpecFor(*variant, about.problem, device);
  if (IsWrong(trial->verdict()) && spec.ok()) {
    means_.supply.Condemn(spec->key, absl::StrCat("for ", about.key.problem_text, " it ended with ",
                                                  Word(trial->verdict()), ": ", trial->detail()));
  }
  return trial->verdict();
}

void OnMiss::Count(const char* result) const {
  if (options_.metrics != nullptr) options_.metrics->OnMiss(result);
}

void OnMiss::Remember(const Case& about, absl::Duration until) {
  if (seen_.size() >= catalog::Misses::kMost) seen_.clear();
  seen_[ToText(about.key)] = {about.variant, until};
}

}  // namespace attune::jobs
