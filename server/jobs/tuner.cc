#include "server/jobs/tuner.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"
#include "server/base/seed.h"
#include "server/jobs/evaluate_job.h"
#include "server/jobs/job.h"
#include "server/jobs/job_lanes.h"
#include "server/jobs/journal.h"
#include "server/jobs/operations.h"
#include "server/jobs/retry_trials.h"
#include "server/jobs/tune_problem.h"
#include "server/sweep/plan_sweep.h"
#include "server/sweep/sweep_job.h"
#include "server/sweep/sweep_plan.h"
#include "server/trials/device_slot.h"
#include "server/trials/trial_claims.h"
#include "server/verify/footprint.h"

namespace attune::jobs {
namespace {

using Fill = std::function<void(v1::Operation&)>;

v1::Policy OrHot(v1::Policy policy) { return policy == v1::POLICY_UNSPECIFIED ? v1::POLICY_HOT : policy; }

// Equal for requests that ask for the same: without the id, with defaults spelled out.
template <typename Request>
std::string IdentityOf(store::JobKind kind, Request request, const std::string& device_id) {
  request.clear_request_id();
  if constexpr (std::is_same_v<Request, v1::SweepRequest>) {
    request.mutable_plan()->set_device_id(device_id);
    request.mutable_plan()->set_policy(OrHot(request.plan().policy()));
  } else {
    request.set_device_id(device_id);
    request.set_policy(OrHot(request.policy()));
  }
  if constexpr (std::is_same_v<Request, v1::TuneRequest>) {
    std::sort(request.mutable_families()->begin(), request.mutable_families()->end());
    if (request.strategy().kind() == v1::Strategy::KIND_UNSPECIFIED) {
      request.mutable_strategy()->set_kind(v1::Strategy::KIND_EXHAUSTIVE);
    }
  }
  return absl::StrCat(static_cast<int>(kind), request.SerializeAsString());
}

class JobTuner : public Tuner {
 public:
  JobTuner(TunerOptions options, const std::vector<std::string>& device_ids)
      : operations_(options.store, options.clock), lanes_(device_ids) {
    shop_.store = options.store;
    shop_.compiler = options.compiler;
    shop_.families = std::move(options.families);
    shop_.compile_ahead = options.compile_ahead > 0 ? options.compile_ahead : 4 * std::max(1, options.compiler->size());
    shop_.play_off_size = static_cast<size_t>(std::max(1, options.play_off_size));
    shop_.promoted = options.promoted ? std::move(options.promoted) : [](const v1::Incumbent&) {};
    shop_.clock = options.clock;
    shop_.claims = &claims_;
    for (const auto& [id, worker] : options.devices) {
      slots_[id] = std::make_unique<trials::DeviceSlot>(worker, options.idle_release, options.clock);
    }
  }

  ~JobTuner() override { Drain(absl::ZeroDuration()); }

  absl::Status Resume() override {
    absl::StatusOr<std::vector<store::Job>> jobs = shop_.store->UnfinishedJobs();
    if (!jobs.ok()) return jobs.status();
    for (const store::Job& job : *jobs) Requeue(job);
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest& request) override {
    absl::StatusOr<trials::DeviceSlot*> slot = SlotFor(request.device_id());
    if (!slot.ok()) return slot.status();
    absl::StatusOr<Problem> problem = FromProto(request.problem());
    if (!problem.ok()) return problem.status();
    if (absl::Status status = CheckFamilies(request.families(), *problem, (*slot)->device()); !status.ok()) {
      return status;
    }
    absl::Status fits = verify::CheckFits(*problem, (*slot)->device(), verify::HostBytes());
    if (!fits.ok()) return fits;
    return Start(store::JobKind::kTune, request, **slot, ToText(*problem),
                 absl::StrCat("tune ", ToText(*problem), " on ", (*slot)->device().id()));
  }

  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest& request) override {
    absl::StatusOr<trials::DeviceSlot*> slot = SlotFor(request.plan().device_id());
    if (!slot.ok()) return slot.status();
    absl::StatusOr<std::vector<Problem>> problems = sweep::ExpandPlan(request.plan());
    if (!problems.ok()) return problems.status();
    return Start(store::JobKind::kSweep, request, **slot, /*problem_text=*/"",
                 absl::StrCat("sweep ", request.plan().title(), request.plan().title().empty() ? "" : ": ",
                              problems->size(), " problems on ", (*slot)->device().id()));
  }

  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest& request) override {
    absl::StatusOr<trials::DeviceSlot*> slot = SlotFor(request.device_id());
    if (!slot.ok()) return slot.status();
    absl::StatusOr<search::Subject> subject = MakeSubject(shop_, **slot, request.problem(), request.policy());
    if (!subject.ok()) return subject.status();
    absl::StatusOr<space::Variant> variant = RequestedVariant(request.variant(), *subject, shop_.families);
    if (!variant.ok()) return variant.status();
    return Start(store::JobKind::kEvaluate, request, **slot, subject->problem_text,
                 absl::StrCat(request.pin() ? "serve " : "evaluate ", variant->ToText(), " for ", subject->problem_text,
                              " on ", (*slot)->device().id()));
  }

  absl::StatusOr<v1::PlanSweepResponse> PlanSweep(const v1::SweepRequest& request,
                                                  const space::Stopped& stopped) override {
    absl::StatusOr<trials::DeviceSlot*> slot = SlotFor(request.plan().device_id());
    if (!slot.ok()) return slot.status();
    return sweep::PlanSweep(shop_, **slot, request.plan(), stopped);
  }

  absl::StatusOr<v1::RetryTrialsResponse> RetryTrials(const v1::TrialFilter& filter) override {
    std::vector<v1::Device> devices;
    for (const auto& [id, slot] : slots_) devices.push_back(slot->device());
    return jobs::RetryTrials(shop_, devices, filter);
  }

  absl::StatusOr<v1::Operation> GetOperation(absl::string_view name) override { return operations_.Get(name); }

  absl::StatusOr<v1::Operation> Cancel(absl::string_view name) override {
    if (const std::shared_ptr<LiveOperation> live = operations_.Find(name); live != nullptr) {
      live->RequestStop(/*cancel=*/true);
      if (live->Withdraw()) operations_.Finish(live, v1::Operation::STATE_CANCELLED, absl::OkStatus(), [](auto&) {});
    }
    return operations_.Get(name);
  }

  absl::StatusOr<std::function<void()>> Watch(absl::string_view name, Watcher watcher) override {
    return operations_.Watch(name, std::move(watcher));
  }

  void Drain(absl::Duration grace) override {
    draining_ = true;
    lanes_.Stop();
    for (const std::shared_ptr<LiveOperation>& live : operations_.InFlight()) live->RequestStop(/*cancel=*/false);
    lanes_.AwaitQuiet(grace);
  }

 private:
  absl::StatusOr<trials::DeviceSlot*> SlotFor(const std::string& device_id) {
    const auto it = device_id.empty() ? slots_.begin() : slots_.find(device_id);
    if (it != slots_.end()) return it->second.get();
    const std::string here =
        absl::StrJoin(slots_, ", ", [](std::string* out, const auto& slot) { absl::StrAppend(out, slot.first); });
    return absl::FailedPreconditionError(
        absl::StrCat("device_id is ", Quoted(device_id), "; this host has ", here.empty() ? "no device" : here));
  }

  template <typename Names>
  absl::Status CheckFamilies(const Names& names, const Problem& problem, const v1::Device& device) {
    const std::vector<std::string> wanted(names.begin(), names.end());
    const auto families = search::FamiliesFor(shop_.families, device.backend(), family::v1::ROLE_SEARCH, wanted);
    std::vector<std::string> reasons;
    for (const std::string& name : wanted) {
      if (std::none_of(families.begin(), families.end(), [&](const auto& family) { return family->name() == name; })) {
        reasons.push_back(absl::StrCat(name, ": there is no such family for ", device.id()));
      }
    }
    // Some that apply are enough, but a name that nothing has is a mistake.
    if (!reasons.empty()) return absl::FailedPreconditionError(absl::StrJoin(reasons, "; "));
    for (const std::shared_ptr<const space::Family>& family : families) {
      absl::Status applies = space::Applies(*family, problem, device);
      if (applies.ok()) return applies;
      reasons.push_back(absl::StrCat(family->name(), ": ", applies.message()));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("no kernel family applies to ", ToText(problem), " on ", device.id(), ": ",
                     reasons.empty() ? "there is none" : absl::StrJoin(reasons, "; ")));
  }

  template <typename Request>
  absl::StatusOr<v1::Operation> Start(store::JobKind kind, const Request& request, trials::DeviceSlot& slot,
                                      std::string problem_text, std::string title) {
    if (draining_) return absl::UnavailableError("the server is shutting down and takes no new work");
    Operations::Wanted wanted{kind,
                              request.SerializeAsString(),
                              request.request_id(),
                              IdentityOf(kind, request, slot.device().id()),
                              std::move(title),
                              std::move(problem_text)};
    absl::StatusOr<Operations::Started> started = operations_.Start(wanted);
    if (!started.ok()) return started.status();
    if (started->fresh) Enqueue(started->live, request, slot);
    return std::move(started->operation);
  }

  template <typename Request>
  void Enqueue(const std::shared_ptr<LiveOperation>& live, const Request& request, trials::DeviceSlot& slot) {
    trials::Priority priority = trials::Priority::kInteractive;
    if constexpr (std::is_same_v<Request, v1::SweepRequest>) priority = trials::Priority::kBackground;
    if constexpr (std::is_same_v<Request, v1::TuneRequest>) {
      if (request.background()) priority = trials::Priority::kBackground;
    }
    const auto run = [this, live, request, &slot, priority] {
      JobContext context{shop_, slot, *live, priority, ""};
      RunJob(live, [&] { return Run(context, request); });
    };
    lanes_.Add(slot.device().id(), priority, {live->waiter(), run, [live] { return live->done(); }});
  }

  void Requeue(const store::Job& job) {
    switch (job.kind) {
      case store::JobKind::kTune:
        return RequeueAs<v1::TuneRequest>(job, [](const auto& request) { return request.device_id(); });
      case store::JobKind::kSweep:
        return RequeueAs<v1::SweepRequest>(job, [](const auto& request) { return request.plan().device_id(); });
      case store::JobKind::kEvaluate:
        return RequeueAs<v1::EvaluateVariantRequest>(job, [](const auto& request) { return request.device_id(); });
    }
  }

  template <typename Request, typename DeviceOf>
  void RequeueAs(const store::Job& job, DeviceOf device_of) {
    Request request;
    const bool parsed = request.ParseFromString(job.request);
    absl::StatusOr<trials::DeviceSlot*> slot = SlotFor(device_of(request));
    const std::string identity = slot.ok() ? IdentityOf(job.kind, request, (*slot)->device().id()) : job.name;
    const std::shared_ptr<LiveOperation> live = operations_.Adopt(job, identity);
    if (parsed && slot.ok()) return Enqueue(live, request, **slot);
    live->Withdraw();
    operations_.Finish(live, v1::Operation::STATE_FAILED,
                       parsed ? slot.status() : absl::DataLossError("the stored request cannot be read"), [](auto&) {});
  }

  // A job that takes more memory than there is fails alone.
  static absl::StatusOr<Fill> Guarded(const std::function<absl::StatusOr<Fill>()>& run) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("the server has too little memory left for this job");
    }
  }

  // A job's life on its thread. `run` gives what fills in the response.
  void RunJob(const std::shared_ptr<LiveOperation>& live, const std::function<absl::StatusOr<Fill>()>& run) {
    if (!live->Begin()) return;
    LogJob("job started", live->Snapshot());
    const absl::Status saved = operations_.Save(*live);
    absl::StatusOr<Fill> fill = saved.ok() ? Guarded(run) : saved;
    if (fill.ok()) return operations_.Finish(live, v1::Operation::STATE_SUCCEEDED, absl::OkStatus(), *fill);
    if (!live->stop_token().stop_requested()) {
      return operations_.Finish(live, v1::Operation::STATE_FAILED, fill.status(), [](auto&) {});
    }
    if (live->cancelled()) {
      return operations_.Finish(live, v1::Operation::STATE_CANCELLED, absl::OkStatus(), [](auto&) {});
    }
    // The daemon goes down: the job stays unfinished in the store and is resumed by the next one.
    LogJob("job interrupted, goes on at the next start", live->Snapshot());
  }

  absl::StatusOr<Fill> Run(JobContext& context, const v1::TuneRequest& request) {
    absl::StatusOr<search::Subject> subject = MakeSubject(shop_, context.slot, request.problem(), request.policy());
    if (!subject.ok()) return subject.status();
    TuneSpec spec;
    spec.subject = *std::move(subject);
    spec.families = {request.families().begin(), request.families().end()};
    spec.strategy = request.strategy();
    spec.seed = SeedFrom(request.request_id().empty() ? context.operation.name() : request.request_id());
    spec.retry_known = request.retry_known();
    absl::StatusOr<TuneOutcome> outcome = TuneProblem(context, spec);
    if (!outcome.ok()) return outcome.status();
    return [result = std::move(outcome->result)](v1::Operation& operation) { *operation.mutable_tune() = result; };
  }

  absl::StatusOr<Fill> Run(JobContext& context, const v1::SweepRequest& request) {
    const auto save = [&](const v1::SweepReport& report) {
      context.operation.Update([&](v1::Operation& operation) { *operation.mutable_sweep() = report; });
      return operations_.Save(context.operation);
    };
    absl::StatusOr<v1::SweepReport> report =
        sweep::RunSweep(context, request.plan(), context.operation.Snapshot().sweep(), save);
    if (!report.ok()) return report.status();
    return [result = *std::move(report)](v1::Operation& operation) { *operation.mutable_sweep() = result; };
  }

  absl::StatusOr<Fill> Run(JobContext& context, const v1::EvaluateVariantRequest& request) {
    absl::StatusOr<search::Subject> subject = MakeSubject(shop_, context.slot, request.problem(), request.policy());
    if (!subject.ok()) return subject.status();
    absl::StatusOr<space::Variant> variant = RequestedVariant(request.variant(), *subject, shop_.families);
    if (!variant.ok()) return variant.status();
    absl::StatusOr<v1::EvaluateResult> result =
        EvaluateVariant(context, *subject, *variant, request.pin() ? std::make_optional(request.why()) : std::nullopt);
    if (!result.ok()) return result.status();
    return [result = *std::move(result)](v1::Operation& operation) { *operation.mutable_evaluate() = result; };
  }

  trials::TrialClaims claims_;
  Workshop shop_;
  std::map<std::string, std::unique_ptr<trials::DeviceSlot>> slots_;
  Operations operations_;
  std::atomic<bool> draining_ = false;
  JobLanes lanes_;  // last: its jobs use all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tuner>> Tuner::Create(TunerOptions options) {
  if (options.store == nullptr) return absl::InvalidArgumentError("TunerOptions.store is null; it is needed");
  if (options.compiler == nullptr) return absl::InvalidArgumentError("TunerOptions.compiler is null; it is needed");
  std::vector<std::string> device_ids;
  for (const auto& [id, worker] : options.devices) {
    if (worker == nullptr || worker->device().id() != id) {
      return absl::InvalidArgumentError(absl::StrCat("TunerOptions.devices['", id, "'] is not that device's worker"));
    }
    device_ids.push_back(id);
  }
  return std::make_unique<JobTuner>(std::move(options), device_ids);
}

}  // namespace attune::jobs
