// The values that FakeAttune answers with.
#include "client/testing/fake_attune.h"
#include "proto/attune/problem.h"

namespace attune::testing {

v1::Trial CannedTrial(int number) {
  const bool ok = number == 1;
  v1::Trial trial;
  trial.set_name("trials/" + std::to_string(number));
  *trial.mutable_problem() = ToProto(*ParseProblem(FakeAttune::kProblem));
  trial.set_problem_text(FakeAttune::kProblem);
  trial.set_device_id("cuda:0");
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(ok ? v1::VERDICT_OK : v1::VERDICT_WRONG_RESULT);
  if (!ok) trial.set_detail("row 63 of 512 is off by 0.25");
  v1::Variant& variant = *trial.mutable_variant();
  variant.set_family(ok ? "attention_wmma" : "attention_simt");
  variant.set_text(ok ? FakeAttune::kVariant : "attention_simt:BLOCK_M=32");
  auto* parameter = variant.add_parameters();
  parameter->set_name("BLOCK_M");
  parameter->set_value(ok ? 64 : 32);
  if (ok) {
    v1::Timing& timing = *trial.mutable_timing();
    timing.set_median_us(41.2);
    timing.set_low_us(41);
    timing.set_high_us(41.5);
    timing.set_min_us(40.5);
    timing.set_samples(120);
    timing.set_settled(true);
    trial.mutable_accuracy()->set_max_abs_error(0.0005);
    trial.mutable_accuracy()->set_plain_max_abs_error(0.0004);
    trial.mutable_accuracy()->set_cases(6);
  }
  trial.mutable_resources()->set_registers(96);
  trial.mutable_resources()->set_shared_bytes(49152);
  v1::Geometry& geometry = *trial.mutable_geometry();
  geometry.set_ctas(512);
  geometry.set_threads_per_cta(128);
  geometry.set_sm_count(58);
  geometry.set_ctas_per_sm(2);
  geometry.set_waves(512. / 116);
  geometry.set_occupancy(0.25);
  trial.mutable_dependencies()->set_source_hash("abc");
  trial.mutable_dependencies()->set_toolchain("nvrtc 13.0");
  trial.mutable_dependencies()->set_driver("580.1");
  trial.set_job("operations/7");
  trial.mutable_finish_time()->set_seconds(1790000000);
  return trial;
}

v1::Operation SucceededTuning() {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_title("tune b2.h8.q512.d64.f16 on cuda:0");
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  operation.set_done(true);
  v1::OperationProgress& progress = *operation.mutable_progress();
  progress.set_phase(v1::OperationProgress::PHASE_DONE);
  progress.set_trials_done(2);
  progress.set_trials_total(2);
  *progress.mutable_best() = CannedTrial(1);
  v1::TuneResult& result = *operation.mutable_tune();
  *result.mutable_winner() = CannedTrial(1);
  result.set_promoted(true);
  result.set_decision("there was no incumbent");
  result.set_floor_us(2.1);
  *result.add_play_off() = CannedTrial(1);
  v1::Incumbent& incumbent = *result.mutable_incumbent();
  incumbent.set_name("incumbents/1");
  incumbent.set_problem_text(FakeAttune::kProblem);
  *incumbent.mutable_trial() = CannedTrial(1);
  return operation;
}

v1::Operation EndedSweep(bool regression) {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_title("sweep nightly");
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  operation.set_done(true);
  v1::SweepReport& report = *operation.mutable_sweep();
  report.set_title("nightly");
  report.set_device_id("cuda:0");
  report.set_regression(regression);
  report.set_markdown("# nightly\n");
  auto* row = report.add_rows();
  row->set_problem(FakeAttune::kProblem);
  row->set_outcome(regression ? v1::SweepReport::OUTCOME_SLOWER : v1::SweepReport::OUTCOME_SAME);
  row->set_before_us(41.2);
  row->set_after_us(regression ? 50 : 41.3);
  row->set_variant(FakeAttune::kVariant);
  return operation;
}

v1::Operation EndedEvaluation(v1::EvaluateResult::Decision decision) {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_title("evaluate");
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  operation.set_done(true);
  v1::EvaluateResult& result = *operation.mutable_evaluate();
  result.set_decision(decision);
  result.set_reason("measured interleaved with the incumbent");
  result.set_speedup(decision == v1::EvaluateResult::DECISION_KEEP ? 1.1 : 0.9);
  *result.mutable_trial() = CannedTrial(1);
  return operation;
}

}  // namespace attune::testing
