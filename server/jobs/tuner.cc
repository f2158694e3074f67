#include "server/jobs/tuner.h"

#include <atomic>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"
#include "server/jobs/job_lanes.h"
#include "server/jobs/job_log.h"
#include "server/jobs/operations.h"
#include "server/trials/device_slot.h"

namespace attune::jobs {
namespace {

using Fill = JobKind::Fill;

class JobTuner : public Tuner {
 public:
  JobTuner(TunerOptions options, const std::vector<std::string>& device_ids)
      : store_(*options.store),
        kinds_(std::move(options.kinds)),
        operations_(options.store, options.clock),
        lanes_(device_ids) {
    for (const auto& [id, worker] : options.devices) {
      slots_[id] = std::make_unique<trials::DeviceSlot>(worker, options.idle_release, options.clock);
    }
  }
  ~JobTuner() override { Drain(absl::ZeroDuration()); }

  absl::Status Resume() override {
    absl::StatusOr<std::vector<store::Job>> jobs = store_.UnfinishedJobs();
    if (!jobs.ok()) return jobs.status();
    for (const store::Job& job : *jobs) Requeue(job);
    return absl::OkStatus();
  }

  absl::StatusOr<v1::Operation> Tune(const v1::TuneRequest& request) override {
    return Start(store::JobKind::kTune, request.SerializeAsString());
  }
  absl::StatusOr<v1::Operation> Sweep(const v1::SweepRequest& request) override {
    return Start(store::JobKind::kSweep, request.SerializeAsString());
  }
  absl::StatusOr<v1::Operation> Evaluate(const v1::EvaluateVariantRequest& request) override {
    return Start(store::JobKind::kEvaluate, request.SerializeAsString());
  }

  absl::StatusOr<v1::Operation> GetOperation(absl::string_view name) override { return operations_.Get(name); }

  absl::StatusOr<v1::Operation> Cancel(absl::string_view name) override {
    if (const std::shared_ptr<LiveOperation> live = operations_.Find(name); live != nullptr) {
      live->RequestStop(/*cancel=*/true);
      if (live->Withdraw()) End(live, v1::Operation::STATE_CANCELLED);
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
    if (const auto it = slots_.find(device_id); it != slots_.end()) return it->second.get();
    const std::string here =
        absl::StrJoin(slots_, ", ", [](std::string* out, const auto& slot) { absl::StrAppend(out, slot.first); });
    return absl::FailedPreconditionError(
        absl::StrCat("device_id is ", Quoted(device_id), "; this host has ", here.empty() ? "no device" : here));
  }

  absl::StatusOr<v1::Operation> Start(store::JobKind id, const std::string& request) {
    const JobKind& kind = *kinds_.at(id);
    const absl::StatusOr<JobTerms> terms = kind.Terms(request);
    if (!terms.ok()) return terms.status();
    const absl::StatusOr<trials::DeviceSlot*> slot = SlotFor(terms->device_id);
    if (!slot.ok()) return slot.status();
    absl::StatusOr<JobTitle> title = kind.Admit(request, (*slot)->device());
    if (!title.ok()) return title.status();
    if (draining_) return absl::UnavailableError("the server is shutting down and takes no new work");
    absl::StatusOr<Operations::Started> started =
        operations_.Start({id, request, terms->request_id, terms->identity, title->title, title->problem_text});
    if (!started.ok()) return started.status();
    if (started->fresh) Enqueue(started->live, kind, request, terms->priority, **slot);
    return std::move(started->operation);
  }

  void Requeue(const store::Job& job) {
    const JobKind& kind = *kinds_.at(job.kind);
    const absl::StatusOr<JobTerms> terms = kind.Terms(job.request);
    const absl::StatusOr<trials::DeviceSlot*> slot = terms.ok() ? SlotFor(terms->device_id) : terms.status();
    const std::shared_ptr<LiveOperation> live = operations_.Adopt(job, slot.ok() ? terms->identity : job.name);
    if (slot.ok()) return Enqueue(live, kind, job.request, terms->priority, **slot);
    live->Withdraw();
    End(live, v1::Operation::STATE_FAILED, slot.status());
  }

  void Enqueue(const std::shared_ptr<LiveOperation>& live, const JobKind& kind, const std::string& request,
               trials::Priority priority, trials::DeviceSlot& slot) {
    const auto run = [this, live, &kind, request, priority, &slot] {
      RunJob(live, [&] {
        const trials::Job job{live->name(), priority, live->stop_token(), live->waiter(), *live};
        return kind.Run(request, {slot, job, live->Snapshot(), [&](absl::FunctionRef<void(v1::Operation&)> change) {
                                    live->Update(change);
                                    return operations_.Save(*live);
                                  }});
      });
    };
    lanes_.Add(slot.device().id(), priority, {live->waiter(), run, [live] { return live->done(); }});
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
    if (!live->stop_token().stop_requested()) return End(live, v1::Operation::STATE_FAILED, fill.status());
    if (live->cancelled()) return End(live, v1::Operation::STATE_CANCELLED);
    // The daemon goes down: the job stays unfinished in the store and is resumed by the next one.
    LogJob("job interrupted, goes on at the next start", live->Snapshot());
  }

  // Without a response.
  void End(const std::shared_ptr<LiveOperation>& live, v1::Operation::State state,
           const absl::Status& error = absl::OkStatus()) {
    operations_.Finish(live, state, error, [](v1::Operation&) {});
  }

  store::Store& store_;
  const std::map<store::JobKind, const JobKind*> kinds_;
  std::map<std::string, std::unique_ptr<trials::DeviceSlot>> slots_;
  Operations operations_;
  std::atomic<bool> draining_ = false;
  JobLanes lanes_;  // last: its jobs use all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tuner>> Tuner::Create(TunerOptions options) {
  if (options.store == nullptr) return absl::InvalidArgumentError("TunerOptions.store is null; it is needed");
  for (const store::JobKind kind : {store::JobKind::kTune, store::JobKind::kSweep, store::JobKind::kEvaluate}) {
    if (options.kinds[kind] == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("TunerOptions.kinds lacks the kind of job ", static_cast<int>(kind)));
    }
  }
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
