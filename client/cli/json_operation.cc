// JSON of operations: their progress and what they end with.
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

Json VerdictsJson(const v1::OperationProgress& progress) {
  Json json = Json::object();
  for (const v1::VerdictCount& count : progress.verdicts()) {
    json[std::string(attune::Word(count.verdict()))] = count.count();
  }
  return json;
}

// What has ended waits for none, whatever it waited for when it was cancelled.
Json WaitsForJson(const v1::Operation& operation) {
  return operation.done() ? Json() : TextOrNull(operation.progress().waits_for());
}
Json QueuePositionJson(const v1::Operation& operation) {
  return operation.done() ? Json() : PositiveOrNull(operation.progress().queue_position());
}

Json CostJson(const v1::OperationProgress& progress) {
  if (!progress.has_cost()) return Json();
  const v1::OperationCost& cost = progress.cost();
  return {{"prepare_ms", cost.prepare_ms()}, {"check_ms", cost.check_ms()},
          {"time_ms", cost.time_ms()},       {"play_off_ms", cost.play_off_ms()},
          {"wait_ms", cost.wait_ms()},       {"device_ms", PositiveOrNull(cost.device_ms())},
          {"compile_ms", cost.compile_ms()}};
}

// Null where a tuning has no more than one.
Json CardsJson(const v1::OperationProgress& progress) {
  if (progress.cards().empty()) return Json();
  Json cards = Json::array();
  for (const v1::CardShare& card : progress.cards()) {
    cards.push_back({{"device", card.device_id()},
                     {"trials", card.trials()},
                     {"at_work", card.at_work()},
                     {"lost", TextOrNull(card.lost())}});
  }
  return cards;
}

}  // namespace

Json OperationJson(const v1::Operation& operation) {
  return {{"type", "operation"},
          {"operation", operation.name()},
          {"title", TextOrNull(operation.title())},
          {"state", Word(operation.state())},
          {"done", operation.done()},
          {"phase", TextOrNull(Word(operation.progress().phase()))},
          {"trials_done", operation.progress().trials_done()},
          {"trials_total", operation.progress().trials_total()},
          {"request_id", TextOrNull(operation.request_id())},
          {"create_time", TextOrNull(Iso(operation.create_time()))},
          {"end_time", TextOrNull(Iso(operation.end_time()))},
          {"error", operation.has_error() ? Json(operation.error().message()) : Json()},
          {"problem", TextOrNull(operation.problem())},
          {"waits_for", WaitsForJson(operation)},
          {"queue_position", QueuePositionJson(operation)},
          {"parent", TextOrNull(operation.parent())},
          {"device", TextOrNull(operation.progress().device_id())},
          {"cost", CostJson(operation.progress())},
          {"principal", TextOrNull(operation.principal())},
          {"message", TextOrNull(operation.progress().message())}};
}

Json ProgressJson(const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  return {{"type", "progress"},
          {"operation", operation.name()},
          {"state", Word(operation.state())},
          {"phase", TextOrNull(Word(progress.phase()))},
          {"trials_done", progress.trials_done()},
          {"trials_total", progress.trials_total()},
          {"trials_reused", progress.trials_reused()},
          {"trials_per_s", PositiveOrNull(TrialsPerSecond(progress))},
          {"compiles_done", progress.compiles_done()},
          {"compiles_total", progress.compiles_total()},
          {"verdicts", VerdictsJson(progress)},
          {"best_variant", progress.has_best() ? Json(VariantText(progress.best().variant())) : Json()},
          {"best_latency_ms", progress.has_best() ? Json(progress.best().timing().median_us() / 1000) : Json()},
          {"device_busy", PositiveOrNull(progress.device_busy())},
          {"cost", CostJson(progress)},
          {"elapsed_s", SecondsOrNull(progress.has_elapsed(), progress.elapsed())},
          {"eta_s", SecondsOrNull(progress.has_eta(), progress.eta())},
          {"message", TextOrNull(progress.message())},
          {"waits_for", WaitsForJson(operation)},
          {"queue_position", QueuePositionJson(operation)},
          {"problems_done", progress.problems_total() > 0 ? Json(progress.problems_done()) : Json()},
          {"problems_total", PositiveOrNull(progress.problems_total())},
          {"cards", CardsJson(progress)}};
}

Json TuningJson(const v1::Operation& operation) {
  const v1::TuneResult& result = operation.tune();
  Json json = {{"type", "tuning"},
               {"operation", operation.name()},
               {"promoted", result.promoted()},
               {"decision", result.decision()},
               {"floor_ms", MillisOrNull(result.floor_us())},
               {"verdicts", VerdictsJson(operation.progress())},
               {"incumbent", result.has_incumbent() ? IncumbentJson(result.incumbent()) : Json()},
               {"winner", result.has_winner() ? TrialJson(result.winner()) : Json()},
               {"play_off", Json::array()},
               {"measure_time", TextOrNull(Iso(operation.end_time()))},
               {"claim", ClaimJson(result.has_claim(), result.claim())},
               {"anchor_moved", result.anchor_moved() > 0 ? Json(result.anchor_moved()) : Json()},
               {"cards", CardsJson(operation.progress())}};
  for (const v1::Trial& trial : result.play_off()) json["play_off"].push_back(TrialJson(trial));
  return json;
}

Json EvaluationJson(const v1::Operation& operation) {
  const v1::EvaluateResult& result = operation.evaluate();
  return {{"type", "evaluation"},
          {"operation", operation.name()},
          {"decision", Word(result.decision())},
          {"reason", TextOrNull(result.reason())},
          {"speedup", PositiveOrNull(result.speedup())},
          {"trial", TrialJson(result.trial())},
          {"incumbent", result.has_incumbent() ? TrialJson(result.incumbent()) : Json()},
          {"measure_time", TextOrNull(Iso(operation.end_time()))}};
}

Json SweepJson(const v1::SweepReport& report) {
  Json json = {{"type", "sweep"},
               {"title", TextOrNull(report.title())},
               {"device", report.device_id()},
               {"regression", report.regression()},
               {"trials", report.trials()},
               {"compiles", report.compiles()},
               {"rows", Json::array()}};
  for (const auto& row : report.rows()) {
    json["rows"].push_back({{"problem", row.problem()},
                            {"outcome", Word(row.outcome())},
                            {"before_ms", MillisOrNull(row.before_us())},
                            {"after_ms", MillisOrNull(row.after_us())},
                            {"variant", TextOrNull(row.variant())},
                            {"detail", TextOrNull(row.detail())},
                            {"trials", row.trials()},
                            {"compiles", row.compiles()},
                            {"device", TextOrNull(row.device_id())},
                            {"sanitizers", TextOrNull(row.sanitizers())}});
  }
  return json;
}

Json SweepPlanJson(const v1::PlanSweepResponse& plan) {
  Json json = {{"type", "sweep_plan"},         {"device", plan.device_id()},
               {"problems", plan.rows_size()}, {"variants", plan.variants()},
               {"known", plan.known()},        {"trials", plan.trials()},
               {"compiles", plan.compiles()},  {"estimate_s", SecondsOrNull(plan.has_estimate(), plan.estimate())},
               {"rows", Json::array()}};
  for (const auto& row : plan.rows()) {
    json["rows"].push_back({{"problem", row.problem()},
                            {"variants", row.variants()},
                            {"known", row.known()},
                            {"trials", row.trials()},
                            {"compiles", row.compiles()},
                            {"tuned", row.tuned()},
                            {"reason", TextOrNull(row.reason())},
                            {"device", TextOrNull(row.device_id())}});
  }
  return json;
}

}  // namespace attune::cli
