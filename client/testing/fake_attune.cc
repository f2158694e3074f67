#include "client/testing/fake_attune.h"

#include <algorithm>
#include <chrono>

#include "client/testing/fake_access.h"
#include "proto/attune/problem.h"

namespace attune::testing {
namespace {

bool IsTuned(const v1::Problem& problem) {
  const auto read = FromProto(problem);
  return read.ok() && ToText(*read) == FakeAttune::kProblem;
}

grpc::Status NotFound(const std::string& what) {
  return RichError(grpc::StatusCode::NOT_FOUND, what + " is not known", "NOT_FOUND");
}

v1::Backup BackupOf(const std::string& id) {
  v1::Backup backup;
  backup.set_name("backups/" + id);
  backup.set_path("/backups/" + id);
  backup.mutable_create_time()->set_seconds(1'790'000'000);
  backup.set_bytes(2048);
  backup.set_trials(14);
  backup.set_incumbents(1);
  backup.set_jobs(3);
  backup.set_artifacts(1);
  backup.set_missing_artifacts(2);
  return backup;
}

v1::Baseline TheBaseline() {
  v1::Baseline baseline;
  baseline.set_problem_text(FakeAttune::kProblem);
  baseline.set_device_id("cuda:0");
  baseline.set_policy(v1::POLICY_HOT);
  baseline.set_contender("torch-sdpa-flash");
  baseline.set_median_us(53.972);  // 1.31 times the incumbent's
  return baseline;
}

v1::Incumbent TheIncumbent() {
  v1::Incumbent incumbent = SucceededTuning().tune().incumbent();
  *incumbent.mutable_problem() = ToProto(*ParseProblem(FakeAttune::kProblem));
  incumbent.set_device_id("cuda:0");
  incumbent.set_policy(v1::POLICY_HOT);
  incumbent.set_why("there was no incumbent");
  incumbent.mutable_promote_time()->set_seconds(1790000000);
  return incumbent;
}

}  // namespace

grpc::Status FakeAttune::Enter(const std::string& method) {
  const std::lock_guard lock(mutex_);
  ++calls_[method];
  if (failures_ == 0) return grpc::Status::OK;
  --failures_;
  return failure_;
}

grpc::Status FakeAttune::Start(const std::string& title, v1::Operation* operation) {
  const std::lock_guard lock(mutex_);
  operation->set_name("operations/7");
  operation->set_title(title);
  operation->set_state(v1::Operation::STATE_RUNNING);
  v1::OperationProgress& progress = *operation->mutable_progress();
  progress.set_phase(v1::OperationProgress::PHASE_TRIALS);
  progress.set_trials_done(1);
  progress.set_trials_total(2);
  *progress.mutable_best() = CannedTrial(1);
  operation_ = *operation;
  return grpc::Status::OK;
}

grpc::Status FakeAttune::GetBest(grpc::ServerContext*, const v1::GetBestRequest* request,
                                 v1::GetBestResponse* response) {
  if (grpc::Status status = Enter("GetBest"); !status.ok()) return status;
  if (!IsTuned(request->problem())) return NotFound("an answer");
  const v1::Trial trial = CannedTrial(1);
  *response->mutable_problem() = trial.problem();
  response->set_device_id("cuda:0");
  *response->mutable_variant() = trial.variant();
  *response->mutable_timing() = trial.timing();
  {
    const std::lock_guard lock(mutex_);
    response->set_provenance(provenance_);
    response->set_provenance_detail(provenance_detail_);
    response->set_pinned(pinned_);
    if (alternative_ && request->objective() == v1::OBJECTIVE_ENERGY) {
      response->mutable_variant()->set_text(kLeastEnergy);
      response->set_objective(v1::OBJECTIVE_ENERGY);
    }
    last_get_best_ = *request;
    response->set_artifact_state(code_.front());
    if (code_.front() == v1::ARTIFACT_STATE_NONE) response->set_artifact_reason("it does not compile");
    if (code_.size() > 1) code_.pop_front();
    if (median_us_ > 0) response->mutable_timing()->set_median_us(median_us_);
  }
  if (response->provenance() == v1::PROVENANCE_NEAREST) {
    response->mutable_predicted()->set_us(60);
    response->mutable_predicted()->set_low_us(40);
    response->mutable_predicted()->set_high_us(90);
  }
  *response->mutable_geometry() = trial.geometry();
  *response->mutable_accuracy() = trial.accuracy();
  response->set_trial(trial.name());
  response->set_artifact_sha256("feed");
  if (request->include_artifact() && response->artifact_state() == v1::ARTIFACT_STATE_READY) {
    response->set_artifact("CUBIN");
  }
  *response->add_baselines() = TheBaseline();
  auto* launch = response->mutable_recipe()->add_launches();
  launch->set_entry("attention_forward");
  launch->mutable_grid()->set_x(8);
  launch->mutable_grid()->set_y(16);
  launch->mutable_grid()->set_z(4);
  launch->mutable_block()->set_x(128);
  launch->mutable_block()->set_y(1);
  launch->mutable_block()->set_z(1);
  launch->add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_Q);
  launch->add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_SCRATCH);
  launch->add_args()->set_i32(512);
  auto* scratch = response->mutable_recipe()->add_scratch();
  scratch->set_name("partial");
  scratch->set_bytes(4096);
  return grpc::Status::OK;
}

grpc::Status FakeAttune::Tune(grpc::ServerContext*, const v1::TuneRequest* request, v1::Operation* operation) {
  if (grpc::Status status = Enter("Tune"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_tune_ = *request;
  }
  return Start("tune b2.h8.q512.d64.f16 on cuda:0", operation);
}
grpc::Status FakeAttune::Sweep(grpc::ServerContext*, const v1::SweepRequest* request, v1::Operation* operation) {
  if (grpc::Status status = Enter("Sweep"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_sweep_ = *request;
  }
  return Start("sweep nightly", operation);
}
grpc::Status FakeAttune::PlanSweep(grpc::ServerContext*, const v1::SweepRequest* request,
                                   v1::PlanSweepResponse* response) {
  if (grpc::Status status = Enter("PlanSweep"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_sweep_ = *request;
  }
  response->set_device_id("cuda:0");
  auto* row = response->add_rows();
  row->set_problem(kProblem);
  row->set_variants(78);
  row->set_known(22);
  row->set_trials(56);
  row->set_compiles(14);
  row->set_tuned(true);
  response->set_variants(78);
  response->set_known(22);
  response->set_trials(56);
  response->set_compiles(14);
  response->mutable_estimate()->set_seconds(71);
  return grpc::Status::OK;
}
grpc::Status FakeAttune::EvaluateVariant(grpc::ServerContext*, const v1::EvaluateVariantRequest* request,
                                         v1::Operation* operation) {
  if (grpc::Status status = Enter("EvaluateVariant"); !status.ok()) return status;
  if (request->variant().text() != kVariant) return NotFound("variant " + request->variant().text());
  {
    const std::lock_guard lock(mutex_);
    last_evaluate_ = *request;
  }
  return Start("evaluate", operation);
}

grpc::Status FakeAttune::GetOperation(grpc::ServerContext*, const v1::GetOperationRequest* request,
                                      v1::Operation* operation) {
  if (grpc::Status status = Enter("GetOperation"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (operation_.name() != request->name()) return NotFound(request->name());
  *operation = operation_;
  return grpc::Status::OK;
}

grpc::Status FakeAttune::WatchOperation(grpc::ServerContext* context, const v1::WatchOperationRequest* request,
                                        grpc::ServerWriter<v1::Operation>* writer) {
  if (grpc::Status status = Enter("WatchOperation"); !status.ok()) return status;
  v1::Operation running;
  v1::Operation done;
  bool broken = false;
  std::function<void()> on_watch;
  {
    const std::lock_guard lock(mutex_);
    authorization_ = AuthorizationOf(*context);
    if (operation_.name() != request->name()) return NotFound(request->name());
    running = operation_;
    done = ends_with_;
    broken = broken_watches_ > 0;
    if (broken) --broken_watches_;
    on_watch = on_watch_;
  }
  writer->Write(running);
  if (broken) return {grpc::StatusCode::UNAVAILABLE, "connection reset"};
  if (running.done()) return grpc::Status::OK;
  if (on_watch) {
    on_watch();
    std::unique_lock lock(mutex_);
    // Nobody tells when a client goes away.
    while (!operation_.done() && !context->IsCancelled()) changed_.wait_for(lock, std::chrono::milliseconds(20));
    done = operation_;
  }
  writer->Write(done);
  return grpc::Status::OK;
}

grpc::Status FakeAttune::ListOperations(grpc::ServerContext*, const v1::ListOperationsRequest* request,
                                        v1::ListOperationsResponse* response) {
  if (grpc::Status status = Enter("ListOperations"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  last_list_operations_ = *request;
  const auto add = [&](const v1::Operation& operation) {
    if (operation.parent() == request->parent()) *response->add_operations() = operation;
  };
  if (!operation_.name().empty() && !operation_.done()) add(operation_);
  if (!request->active_only()) add(SucceededTuning());
  return grpc::Status::OK;
}

grpc::Status FakeAttune::CancelOperation(grpc::ServerContext*, const v1::CancelOperationRequest* request,
                                         v1::Operation* operation) {
  if (grpc::Status status = Enter("CancelOperation"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  if (operation_.name() != request->name()) return NotFound(request->name());
  *operation = operation_;
  if (cancels_later_) return grpc::Status::OK;
  operation_.set_state(v1::Operation::STATE_CANCELLED);
  operation_.set_done(true);
  changed_.notify_all();
  *operation = operation_;
  return grpc::Status::OK;
}

grpc::Status FakeAttune::GetTrial(grpc::ServerContext*, const v1::GetTrialRequest* request, v1::Trial* trial) {
  if (grpc::Status status = Enter("GetTrial"); !status.ok()) return status;
  if (request->name() != "trials/1" && request->name() != "trials/2") return NotFound(request->name());
  *trial = CannedTrial(request->name() == "trials/1" ? 1 : 2);
  const std::lock_guard lock(mutex_);
  if (has_profiles_) *trial->mutable_profile() = CannedProfile();
  return grpc::Status::OK;
}

// Two trials; the page token is the number of the next one.
grpc::Status FakeAttune::ListTrials(grpc::ServerContext*, const v1::ListTrialsRequest* request,
                                    v1::ListTrialsResponse* response) {
  if (grpc::Status status = Enter("ListTrials"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  last_list_trials_ = *request;
  const v1::TrialFilter& filter = request->filter();
  if (!filter.family().empty() && filter.family() != "attention_wmma" && filter.family() != "attention_simt") {
    return grpc::Status::OK;
  }
  if (!filter.job().empty() && filter.job() != "operations/7") return grpc::Status::OK;
  if (!filter.device_id().empty() && filter.device_id() != "cuda:0") return grpc::Status::OK;
  if (trials_.has_value()) {
    for (const v1::Trial& trial : *trials_) {
      const bool wanted = filter.verdicts().empty() || std::find(filter.verdicts().begin(), filter.verdicts().end(),
                                                                 trial.verdict()) != filter.verdicts().end();
      if (wanted && trial.problem_text() == filter.problem()) *response->add_trials() = trial;
    }
    return grpc::Status::OK;
  }
  *response->add_trials() = CannedTrial(request->page_token().empty() ? 1 : 2);
  if (request->page_token().empty()) response->set_next_page_token("2");
  return grpc::Status::OK;
}

grpc::Status FakeAttune::RetryTrials(grpc::ServerContext*, const v1::RetryTrialsRequest* request,
                                     v1::RetryTrialsResponse* response) {
  if (grpc::Status status = Enter("RetryTrials"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  last_retry_ = *request;
  if (request->filter().verdicts(0) != v1::VERDICT_CRASHED) return grpc::Status::OK;
  response->set_trials(14);
  response->set_codes(3);
  response->add_problems(kProblem);
  return grpc::Status::OK;
}

grpc::Status FakeAttune::ListIncumbents(grpc::ServerContext*, const v1::ListIncumbentsRequest* request,
                                        v1::ListIncumbentsResponse* response) {
  if (grpc::Status status = Enter("ListIncumbents"); !status.ok()) return status;
  v1::Incumbent incumbent = TheIncumbent();
  {
    const std::lock_guard lock(mutex_);
    incumbent.mutable_trial()->set_device_uuid(timed_by_);
    if (alternative_) {
      v1::Alternative& least = *incumbent.add_alternatives();
      least.set_objective(v1::OBJECTIVE_ENERGY);
      least.mutable_trial()->mutable_variant()->set_text(kLeastEnergy);
      incumbent.add_alternatives()->set_objective(v1::OBJECTIVE_EDP);
    }
  }
  if (!request->device_id().empty() && request->device_id() != incumbent.device_id()) return grpc::Status::OK;
  *response->add_incumbents() = incumbent;
  return grpc::Status::OK;
}

grpc::Status FakeAttune::Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                                 v1::ExplainResponse* response) {
  if (grpc::Status status = Enter("Explain"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_explain_ = *request;
  }
  *response->mutable_trial() = CannedTrial(1);
  auto* finding = response->add_findings();
  finding->set_bound(v1::ExplainResponse::BOUND_GRID);
  finding->set_text("2 CTAs on 58 SMs leave 96.6 % of the device idle");
  finding->set_advice("raise KV_SPLITS from 1 to 32");
  response->set_flops(1e9);
  response->set_bytes(4e6);
  return grpc::Status::OK;
}

v1::ExplainRequest FakeAttune::last_explain() const {
  const std::lock_guard lock(mutex_);
  return last_explain_;
}

grpc::Status FakeAttune::RollBack(grpc::ServerContext*, const v1::RollBackRequest* request, v1::Incumbent* incumbent) {
  if (grpc::Status status = Enter("RollBack"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  last_roll_back_ = *request;
  *incumbent = TheIncumbent();
  return grpc::Status::OK;
}
grpc::Status FakeAttune::Unpin(grpc::ServerContext*, const v1::UnpinRequest*, v1::Incumbent* incumbent) {
  if (grpc::Status status = Enter("Unpin"); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  pinned_ = false;
  *incumbent = TheIncumbent();
  return grpc::Status::OK;
}
grpc::Status FakeAttune::RecordBaseline(grpc::ServerContext*, const v1::RecordBaselineRequest* request,
                                        v1::Baseline* baseline) {
  if (grpc::Status status = Enter("RecordBaseline"); !status.ok()) return status;
  *baseline = request->baseline();
  baseline->set_device_id("cuda:0");
  return grpc::Status::OK;
}
grpc::Status FakeAttune::CreateBackup(grpc::ServerContext*, const v1::CreateBackupRequest* request,
                                      v1::Backup* backup) {
  if (grpc::Status status = Enter("CreateBackup"); !status.ok()) return status;
  *backup = BackupOf(request->id().empty() ? "20261122T073015Z" : request->id());
  return grpc::Status::OK;
}
grpc::Status FakeAttune::ListBackups(grpc::ServerContext*, const v1::ListBackupsRequest* request,
                                     v1::ListBackupsResponse* response) {
  if (grpc::Status status = Enter("ListBackups"); !status.ok()) return status;
  *response->add_backups() = BackupOf(request->page_token().empty() ? "20261122T073015Z" : "first");
  if (request->page_token().empty()) response->set_next_page_token("2");
  return grpc::Status::OK;
}
grpc::Status FakeAttune::ListBaselines(grpc::ServerContext*, const v1::ListBaselinesRequest*,
                                       v1::ListBaselinesResponse* response) {
  if (grpc::Status status = Enter("ListBaselines"); !status.ok()) return status;
  *response->add_baselines() = TheBaseline();
  return grpc::Status::OK;
}
grpc::Status FakeAttune::ListRetimings(grpc::ServerContext*, const v1::ListRetimingsRequest* request,
                                       v1::ListRetimingsResponse* response) {
  if (grpc::Status status = Enter("ListRetimings"); !status.ok()) return status;
  for (int night = 2; night > 0; --night) {
    v1::Retiming& retiming = *response->add_retimings();
    retiming.set_name(absl::StrCat("retimings/", night));
    retiming.set_problem_text(request->problem());
    retiming.set_device_id("cuda:0");
    retiming.set_policy(v1::POLICY_HOT);
    retiming.set_variant(kVariant);
    *retiming.mutable_timing() = CannedTrial(1).timing();
    retiming.mutable_dependencies()->set_driver(night == 1 ? "580.1" : "580.2");
    retiming.mutable_finish_time()->set_seconds(1'795'000'000 + night * 86'400);
    retiming.set_count(1);
  }
  return grpc::Status::OK;
}
grpc::Status FakeAttune::ListTrends(grpc::ServerContext*, const v1::ListTrendsRequest*,
                                    v1::ListTrendsResponse* response) {
  if (grpc::Status status = Enter("ListTrends"); !status.ok()) return status;
  for (const char* problem : {"b1.h1.q128.d64.f16", "b2.h8.q512.d64.f16"}) {
    const bool slower = response->trends_size() == 1;
    v1::Trend& trend = *response->add_trends();
    trend.set_problem_text(problem);
    trend.set_class_alias("l4");
    trend.set_device_id("cuda:0");
    trend.set_policy(v1::POLICY_HOT);
    trend.set_state(slower ? v1::Trend::STATE_SLOWER : v1::Trend::STATE_SAME);
    trend.set_variant("attention_simt:BLOCK_M=64");
    trend.mutable_reference()->set_median_us(40);
    trend.mutable_latest()->set_median_us(slower ? 42 : 40);
    trend.mutable_latest_time()->set_seconds(1'800'000'000);
    trend.mutable_since()->set_seconds(1'799'900'000);
    trend.set_nights(2);
    trend.set_change(slower ? 0.05 : 0);
    if (!slower) continue;
    v1::DependencyChange& change = *trend.add_changes();
    change.set_what("driver");
    change.set_from("580.1");
    change.set_to("590.2");
  }
  return grpc::Status::OK;
}
grpc::Status FakeAttune::CompareTimes(grpc::ServerContext*, const v1::CompareTimesRequest*,
                                      v1::CompareTimesResponse* response) {
  if (grpc::Status status = Enter("CompareTimes"); !status.ok()) return status;
  v1::CompareTimesResponse::Row& row = *response->add_rows();
  row.set_problem("b2.h8.q512.d64.f16");
  row.set_comparison(v1::CompareTimesResponse::COMPARISON_SLOWER);
  row.mutable_from()->mutable_timing()->set_median_us(40);
  row.mutable_to()->mutable_timing()->set_median_us(50);
  row.set_speedup(0.8);
  response->set_geometric_mean(0.8);
  return grpc::Status::OK;
}
grpc::Status FakeAttune::ListMisses(grpc::ServerContext*, const v1::ListMissesRequest* request,
                                    v1::ListMissesResponse* response) {
  if (grpc::Status status = Enter("ListMisses"); !status.ok()) return status;
  const bool first = request->page_token().empty();
  v1::Miss& miss = *response->add_misses();
  miss.set_problem_text(first ? "b4.h32.kvh8.q1000.d128.bf16.causal.bshd" : kProblem);
  miss.set_device_id("cuda:0");
  miss.set_policy(v1::POLICY_HOT);
  miss.set_count(first ? 1234 : 1);
  miss.mutable_last_time()->set_seconds(1'795'000'000);
  if (first) {
    miss.set_provenance(v1::PROVENANCE_NEAREST);
    miss.set_provenance_detail("from b4.h32.kvh8.q1024.d128.bf16.causal.bshd; for this shape KV_SPLITS 8 to 4");
    miss.set_artifact_state(v1::ARTIFACT_STATE_COMPILING);
    response->set_next_page_token("2");
  }
  return grpc::Status::OK;
}

grpc::Status FakeAttune::ListKernelFamilies(grpc::ServerContext*, const v1::ListKernelFamiliesRequest*,
                                            v1::ListKernelFamiliesResponse* response) {
  if (grpc::Status status = Enter("ListKernelFamilies"); !status.ok()) return status;
  auto* family = response->add_families();
  family->set_name("attention_wmma");
  family->set_backend(v1::BACKEND_CUDA);
  family->set_description("Online softmax on tensor cores");
  auto* parameter = family->add_parameters();
  parameter->set_name("BLOCK_M");
  parameter->add_values(32);
  parameter->add_values(64);
  auto* constraint = family->add_constraints();
  constraint->set_expression("BLOCK_M <= seq_q");
  constraint->set_reason("rows would be computed for nobody");
  return grpc::Status::OK;
}

grpc::Status FakeAttune::ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                                     v1::ListDevicesResponse* response) {
  if (grpc::Status status = Enter("ListDevices"); !status.ok()) return status;
  if (has_device_) {
    auto* device = response->add_devices();
    device->set_id("cuda:0");
    device->set_class_alias("l4");
    device->set_backend(v1::BACKEND_CUDA);
    device->set_model("NVIDIA L4");
    device->set_compute_units(58);
  }
  auto* missing = response->add_backends();
  missing->set_backend(v1::BACKEND_OPENCL);
  missing->set_reason("libOpenCL.so.1 is not installed");
  response->set_server_version("0.1.0");
  return grpc::Status::OK;
}

grpc::Status FakeAttune::Preflight(grpc::ServerContext*, const v1::PreflightRequest* request,
                                   v1::PreflightResponse* response) {
  if (grpc::Status status = Enter("Preflight"); !status.ok()) return status;
  *response->mutable_problem() = request->problem();
  response->mutable_device()->set_id("cuda:0");
  auto* family = response->add_families();
  family->set_name("attention_wmma");
  family->set_feasible(IsTuned(request->problem()));
  if (!family->feasible()) {
    family->set_reason("head_dim is not a multiple of 16");
    return grpc::Status::OK;
  }
  family->set_product(8);
  family->set_variants(2);
  family->set_compiles(1);
  auto* removed = family->add_removed();
  removed->set_family("attention_wmma");
  removed->set_constraint("BLOCK_M <= seq_q");
  removed->set_reason("rows would be computed for nobody");
  removed->set_removed(6);
  if (request->list_variants()) *response->add_variants() = CannedTrial(1).variant();
  return grpc::Status::OK;
}

grpc::Status FakeAttune::Ping(grpc::ServerContext*, const v1::PingRequest*, v1::PingResponse*) { return Enter("Ping"); }

}  // namespace attune::testing
