// JSON of submissions.
#include "client/cli/json.h"
#include "client/cli/submission_text.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

Json GateJson(const v1::GateFinding& gate) {
  return {{"gate", Word(gate.gate())}, {"failed", gate.failed()}, {"text", gate.text()}};
}

Json DiagnosticJson(const v1::Diagnostic& diagnostic) {
  return {{"path", TextOrNull(diagnostic.path())},
          {"line", PositiveOrNull(diagnostic.line())},
          {"column", PositiveOrNull(diagnostic.column())},
          {"text", diagnostic.text()}};
}

Json RowJson(const v1::SubmitResult::Row& row) {
  Json json = {{"problem", row.problem()},
               {"decision", Word(row.decision())},
               {"reason", row.reason()},
               {"speedup", PositiveOrNull(row.speedup())},
               {"base", TextOrNull(row.base())},
               {"trial", TrialJson(row.trial())},
               {"base_trial", row.has_base_trial() ? TrialJson(row.base_trial()) : Json()},
               {"variants", row.variants()},
               {"variants_tried", row.variants_tried()},
               {"gates", Json::array()},
               {"diagnostics", Json::array()}};
  for (const v1::GateFinding& gate : row.gates()) json["gates"].push_back(GateJson(gate));
  for (const v1::Diagnostic& one : row.diagnostics()) json["diagnostics"].push_back(DiagnosticJson(one));
  return json;
}

}  // namespace

Json SubmitResultJson(const v1::SubmitResult& result) {
  Json json = {{"type", "submit_result"},
               {"submission", TextOrNull(result.submission())},
               {"decision", Word(result.decision())},
               {"reason", result.reason()},
               {"rows", Json::array()}};
  for (const v1::SubmitResult::Row& row : result.rows()) json["rows"].push_back(RowJson(row));
  return json;
}

Json SubmissionJson(const v1::Submission& submission) {
  Json json = {{"type", "submission"},
               {"submission", submission.name()},
               {"content_hash", submission.content_hash()},
               {"family", submission.family()},
               {"principal", submission.principal()},
               {"loop", TextOrNull(submission.loop())},
               {"iteration", PositiveOrNull(submission.iteration())},
               {"hypothesis", TextOrNull(submission.hypothesis())},
               {"base", TextOrNull(submission.base())},
               {"problems", Json::array()},
               {"device", submission.device_id()},
               {"policy", attune::Word(submission.policy())},
               {"state", Word(submission.state())},
               {"create_time", TextOrNull(Iso(submission.create_time()))},
               {"operation", submission.operation()},
               {"result", SubmitResultJson(submission.result())},
               {"state_principal", TextOrNull(submission.state_principal())},
               {"state_time", TextOrNull(Iso(submission.state_time()))}};
  for (const std::string& problem : submission.problems()) json["problems"].push_back(problem);
  return json;
}

}  // namespace attune::cli
