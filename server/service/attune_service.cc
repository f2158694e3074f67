#include "server/service/attune_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/catalog/preflight.h"
#include "server/catalog/retry_trials.h"
#include "server/service/calls.h"
#include "server/service/views.h"
#include "server/service/watch.h"
#include "server/sweep/plan_sweep.h"

namespace attune::service {
namespace {

constexpr int kExecutorThreads = 4;
// For calls that wait for a commit: a disk that takes its time keeps nobody waiting who only reads.
constexpr int kWritingThreads = 4;
// For answers with the ranges that they hold for, each a fraction of a second.
constexpr int kRangingThreads = 2;
// For calls that may compute for a second: the others do not wait behind them.
constexpr int kHeavyThreads = 1;
// For trends and comparisons, which dashboards ask for again and again: what starts work does not wait behind them.
constexpr int kHistoryThreads = 1;
// For backups, which may take minutes: one at a time.
constexpr int kCopyingThreads = 1;

// Moves a StatusOr's value into a response.
// Whether nobody waits for the call any more.
space::Stopped GoneWith(grpc::CallbackServerContext* context) {
  return [context] { return context->IsCancelled(); };
}

v1::KernelFamily Translate(const space::Family& family) {
  const family::v1::KernelFamily& manifest = family.manifest;
  v1::KernelFamily out;
  out.set_name(manifest.name());
  out.set_backend(manifest.backend());
  out.set_description(manifest.description());
  out.set_source_hash(family.source_hash);
  for (const auto& parameter : manifest.parameters()) {
    v1::KernelFamily::Parameter& to = *out.add_parameters();
    to.set_name(parameter.name());
    *to.mutable_values() = parameter.values();
    to.set_launch_time(parameter.binding() == family::v1::Parameter::BINDING_LAUNCH_TIME);
    to.set_description(parameter.description());
  }
  const auto translate = [](const family::v1::Constraint& from, v1::KernelFamily::Constraint* to) {
    to->set_expression(from.expr());
    to->set_reason(from.reason());
    to->set_advice(from.advice());
  };
  for (const auto& constraint : manifest.constraints()) translate(constraint, out.add_constraints());
  for (const auto& limit : manifest.problem_limits()) translate(limit, out.add_problem_limits());
  return out;
}

v1::Backup Translate(const store::Backup& backup) {
  const backup::v1::Manifest& manifest = backup.manifest;
  v1::Backup out;
  out.set_name(absl::StrCat("backups/", backup.id));
  out.set_path(backup.path);
  *out.mutable_create_time() = manifest.create_time();
  out.set_bytes(manifest.bytes());
  out.set_trials(manifest.trials());
  out.set_incumbents(manifest.incumbents());
  out.set_jobs(manifest.jobs());
  out.set_artifacts(manifest.artifacts());
  out.set_missing_artifacts(manifest.missing_artifacts());
  *out.mutable_elapsed() = manifest.elapsed();
  return out;
}

}  // namespace

AttuneServiceImpl::AttuneServiceImpl(ServiceOptions options)
    : options_(std::move(options)),
      executor_(kExecutorThreads),
      ranging_(kRangingThreads),
      writing_(kWritingThreads),
      heavy_(kHeavyThreads),
      history_(kHistoryThreads),
      copying_(kCopyingThreads) {}

grpc::ServerUnaryReactor* AttuneServiceImpl::Later(grpc::CallbackServerContext* context, access::MethodRow method,
                                                   const google::protobuf::Message& request,
                                                   std::function<absl::Status()> work, Executor* executor) {
  return service::Later(context, method, request, executor == nullptr ? executor_ : *executor, std::move(work));
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Tune(grpc::CallbackServerContext* context, const v1::TuneRequest* request,
                                                  v1::Operation* response) {
  return Later(
      context, "Tune", *request,
      [this, context, request, response]() -> absl::Status {
        v1::TuneRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(options_.tuner->Tune(valid, AskerOf(*context)), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Sweep(grpc::CallbackServerContext* context,
                                                   const v1::SweepRequest* request, v1::Operation* response) {
  return Later(
      context, "Sweep", *request,
      [this, context, request, response]() -> absl::Status {
        v1::SweepRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(options_.tuner->Sweep(valid, AskerOf(*context)), response);
      },
      &heavy_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::PlanSweep(grpc::CallbackServerContext* context,
                                                       const v1::SweepRequest* request,
                                                       v1::PlanSweepResponse* response) {
  return Later(
      context, "PlanSweep", *request,
      [this, context, request, response]() -> absl::Status {
        v1::SweepRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(
            sweep::PlanSweep(valid.plan(), *options_.host, *options_.results, *options_.store, GoneWith(context)),
            response);
      },
      &heavy_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::EvaluateVariant(grpc::CallbackServerContext* context,
                                                             const v1::EvaluateVariantRequest* request,
                                                             v1::Operation* response) {
  return Later(
      context, "EvaluateVariant", *request,
      [this, context, request, response]() -> absl::Status {
        v1::EvaluateVariantRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(options_.tuner->Evaluate(valid, AskerOf(*context)), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Submit(grpc::CallbackServerContext* context,
                                                    const v1::SubmitRequest* request, v1::Operation* response) {
  return Later(
      context, "Submit", *request,
      [this, context, request, response]() -> absl::Status {
        v1::SubmitRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        if (absl::Status status = options_.submissions->Check(valid, ReaderOf(*context)); !status.ok()) return status;
        return Fill(options_.tuner->Submit(valid, AskerOf(*context)), response);
      },
      &heavy_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::GetSubmission(grpc::CallbackServerContext* context,
                                                           const v1::GetSubmissionRequest* request,
                                                           v1::Submission* response) {
  return Later(context, "GetSubmission", *request, [this, context, request, response] {
    return Fill(options_.submissions->Get(request->name(), ReaderOf(*context)), response);
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListSubmissions(grpc::CallbackServerContext* context,
                                                             const v1::ListSubmissionsRequest* request,
                                                             v1::ListSubmissionsResponse* response) {
  return Later(context, "ListSubmissions", *request, [this, context, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    auto page = options_.submissions->List(*request, *size, ReaderOf(*context));
    if (!page.ok()) return page.status();
    for (v1::Submission& submission : page->items) *response->add_submissions() = std::move(submission);
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::AdoptSubmission(grpc::CallbackServerContext* context,
                                                             const v1::AdoptSubmissionRequest* request,
                                                             v1::Submission* response) {
  return Later(
      context, "AdoptSubmission", *request,
      [this, context, request, response] {
        return Fill(options_.submissions->Adopt(request->name(), ReaderOf(*context)), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::WithdrawSubmission(grpc::CallbackServerContext* context,
                                                                const v1::WithdrawSubmissionRequest* request,
                                                                v1::Submission* response) {
  return Later(
      context, "WithdrawSubmission", *request,
      [this, context, request, response] {
        return Fill(options_.submissions->Withdraw(request->name(), ReaderOf(*context)), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::GetOperation(grpc::CallbackServerContext* context,
                                                          const v1::GetOperationRequest* request,
                                                          v1::Operation* response) {
  return Later(context, "GetOperation", *request,
               [this, request, response] { return Fill(options_.tuner->GetOperation(request->name()), response); });
}

grpc::ServerWriteReactor<v1::Operation>* AttuneServiceImpl::WatchOperation(grpc::CallbackServerContext* context,
                                                                           const v1::WatchOperationRequest* request) {
  if (absl::Status admitted = Admit(*context, "WatchOperation", request); !admitted.ok()) {
    return RefuseWatch(*context, admitted);
  }
  return StartWatch(*context, options_.tuner, &executor_, *request);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListOperations(grpc::CallbackServerContext* context,
                                                            const v1::ListOperationsRequest* request,
                                                            v1::ListOperationsResponse* response) {
  return Later(context, "ListOperations", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    v1::TrialFilter text;
    text.set_problem(request->problem());
    if (absl::Status status = Validate(text, *options_.host); !status.ok()) return status;
    const store::JobFilter filter{request->active_only(), text.problem(), request->parent(), KindOf(request->kind())};
    auto page = options_.store->queue().List(filter, *size, request->page_token());
    if (!page.ok()) return page.status();
    for (v1::Operation& operation : page->items) {
      // The store keeps no progress of running jobs; the tuner has it.
      if (!operation.done()) {
        if (auto live = options_.tuner->GetOperation(operation.name()); live.ok()) operation = *std::move(live);
      }
      if (request->view() == v1::OPERATION_VIEW_BASIC) MakeBasic(operation);
      *response->add_operations() = std::move(operation);
    }
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::CancelOperation(grpc::CallbackServerContext* context,
                                                             const v1::CancelOperationRequest* request,
                                                             v1::Operation* response) {
  return Later(
      context, "CancelOperation", *request,
      [this, request, response] { return Fill(options_.tuner->Cancel(request->name()), response); }, &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::GetTrial(grpc::CallbackServerContext* context,
                                                      const v1::GetTrialRequest* request, v1::Trial* response) {
  return Later(context, "GetTrial", *request,
               [this, request, response] { return Fill(options_.store->GetTrial(request->name()), response); });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListTrials(grpc::CallbackServerContext* context,
                                                        const v1::ListTrialsRequest* request,
                                                        v1::ListTrialsResponse* response) {
  return Later(context, "ListTrials", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    v1::TrialFilter filter = request->filter();
    if (absl::Status status = Validate(filter, *options_.host); !status.ok()) return status;
    auto page = options_.store->ListTrials(filter, request->order(), *size, request->page_token());
    if (!page.ok()) return page.status();
    for (v1::Trial& trial : page->items) {
      if (request->view() == v1::TRIAL_VIEW_BASIC) MakeBasic(trial);
      *response->add_trials() = std::move(trial);
    }
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListIncumbents(grpc::CallbackServerContext* context,
                                                            const v1::ListIncumbentsRequest* request,
                                                            v1::ListIncumbentsResponse* response) {
  return Later(context, "ListIncumbents", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    v1::TrialFilter text;
    text.set_problem(request->problem());
    if (absl::Status status = Validate(text, *options_.host); !status.ok()) return status;
    store::IncumbentFilter filter = catalog::IncumbentsNamed(text.problem(), request->device_id(), *options_.host);
    filter.history = request->history();
    auto page = options_.store->ListIncumbents(filter, *size, request->page_token());
    if (!page.ok()) return page.status();
    for (v1::Incumbent& incumbent : page->items) *response->add_incumbents() = std::move(incumbent);
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::RetryTrials(grpc::CallbackServerContext* context,
                                                         const v1::RetryTrialsRequest* request,
                                                         v1::RetryTrialsResponse* response) {
  return Later(
      context, "RetryTrials", *request,
      [this, request, response]() -> absl::Status {
        v1::RetryTrialsRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        const absl::Status status =
            Fill(catalog::RetryTrials(valid.filter(), *options_.store, *options_.host), response);
        if (status.ok() && options_.supply != nullptr) options_.supply->ForgetUseless();
        return status;
      },
      &heavy_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::RollBack(grpc::CallbackServerContext* context,
                                                      const v1::RollBackRequest* request, v1::Incumbent* response) {
  return Later(
      context, "RollBack", *request,
      [this, request, response]() -> absl::Status {
        v1::RollBackRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(options_.results->RollBack(KeyOf(valid, *options_.host), valid.why(), valid.to()), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Unpin(grpc::CallbackServerContext* context,
                                                   const v1::UnpinRequest* request, v1::Incumbent* response) {
  return Later(
      context, "Unpin", *request,
      [this, request, response]() -> absl::Status {
        v1::UnpinRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(options_.results->Unpin(KeyOf(valid, *options_.host)), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::RecordBaseline(grpc::CallbackServerContext* context,
                                                            const v1::RecordBaselineRequest* request,
                                                            v1::Baseline* response) {
  return Later(
      context, "RecordBaseline", *request,
      [this, request, response]() -> absl::Status {
        v1::RecordBaselineRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        return Fill(options_.results->RecordBaseline(valid.baseline()), response);
      },
      &writing_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListBaselines(grpc::CallbackServerContext* context,
                                                           const v1::ListBaselinesRequest* request,
                                                           v1::ListBaselinesResponse* response) {
  return Later(context, "ListBaselines", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    v1::ListBaselinesRequest valid = *request;
    if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
    auto page = options_.store->ListBaselines(valid.problem(), valid.device_id(), *size, valid.page_token());
    if (!page.ok()) return page.status();
    for (v1::Baseline& baseline : page->items) *response->add_baselines() = std::move(baseline);
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListMisses(grpc::CallbackServerContext* context,
                                                        const v1::ListMissesRequest* request,
                                                        v1::ListMissesResponse* response) {
  return Later(context, "ListMisses", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    if (options_.misses == nullptr) return absl::OkStatus();
    const std::string& device = request->device_id();
    auto page = options_.misses->List(device.empty() ? "" : catalog::ClassNamed(device, *options_.host), *size,
                                      request->page_token());
    if (!page.ok()) return page.status();
    for (v1::Miss& miss : page->items) *response->add_misses() = std::move(miss);
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListKernelFamilies(grpc::CallbackServerContext* context,
                                                                const v1::ListKernelFamiliesRequest*,
                                                                v1::ListKernelFamiliesResponse* response) {
  return Now(context, "ListKernelFamilies", [this, response] {
    for (const auto& family : options_.host->families.Now()) *response->add_families() = Translate(*family);
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListDevices(grpc::CallbackServerContext* context,
                                                         const v1::ListDevicesRequest*,
                                                         v1::ListDevicesResponse* response) {
  return Now(context, "ListDevices", [this, response] {
    for (const v1::Device& device : options_.host->devices) *response->add_devices() = device;
    for (const v1::BackendStatus& backend : options_.host->backends) *response->add_backends() = backend;
    response->set_server_version(options_.version);
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Preflight(grpc::CallbackServerContext* context,
                                                       const v1::PreflightRequest* request,
                                                       v1::PreflightResponse* response) {
  return Later(
      context, "Preflight", *request,
      [this, context, request, response]() -> absl::Status {
        v1::PreflightRequest valid = *request;
        if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
        auto preflight = catalog::Preflight(valid, *options_.host, *options_.store, GoneWith(context));
        if (!preflight.ok()) return preflight.status();
        for (const std::string& warning : options_.warnings) preflight->add_warnings(warning);
        return Fill(std::move(preflight), response);
      },
      &heavy_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::CreateBackup(grpc::CallbackServerContext* context,
                                                          const v1::CreateBackupRequest* request,
                                                          v1::Backup* response) {
  return Later(
      context, "CreateBackup", *request,
      [this, request, response]() -> absl::Status {
        const absl::StatusOr<store::Backup> backup = options_.backups->Create(request->id());
        if (!backup.ok()) return backup.status();
        *response = Translate(*backup);
        return absl::OkStatus();
      },
      &copying_);
}

grpc::ServerUnaryReactor* AttuneServiceImpl::ListBackups(grpc::CallbackServerContext* context,
                                                         const v1::ListBackupsRequest* request,
                                                         v1::ListBackupsResponse* response) {
  return Later(context, "ListBackups", *request, [this, request, response]() -> absl::Status {
    const absl::StatusOr<int> size = PageSize(request->page_size());
    if (!size.ok()) return size.status();
    const auto page = options_.backups->List(*size, request->page_token());
    if (!page.ok()) return page.status();
    for (const store::Backup& backup : page->items) *response->add_backups() = Translate(backup);
    response->set_next_page_token(page->next_page_token);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::Ping(grpc::CallbackServerContext* context, const v1::PingRequest*,
                                                  v1::PingResponse*) {
  return Now(context, "Ping", [] {});
}

}  // namespace attune::service
