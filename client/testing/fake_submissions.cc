// The fake server's submissions: two iterations of one loop.
#include "absl/strings/str_cat.h"
#include "client/testing/fake_attune.h"

namespace attune::testing {

v1::Submission CannedSubmission(int number) {
  const bool kept = number != 2;
  v1::Submission submission;
  submission.set_name(absl::StrCat("submissions/", number));
  submission.set_content_hash(absl::StrCat("4f0c", number));
  submission.set_family(absl::StrCat("submitted_4f0c", number));
  submission.set_principal("token:ada");
  submission.set_loop("tiles");
  submission.set_iteration(number);
  submission.set_hypothesis(number == 1 ? "larger tiles" : "fewer | barriers");
  submission.set_base("incumbent");
  submission.add_problems("b2.h8.q512.d64.f16");
  submission.set_device_id("cuda:0");
  submission.set_policy(v1::POLICY_HOT);
  submission.set_state(v1::Submission::STATE_PRIVATE);
  submission.mutable_create_time()->set_seconds(1'800'000'000 + number);
  submission.set_operation(absl::StrCat("operations/", number));
  *submission.mutable_result() =
      EndedSubmission(kept ? v1::SubmitResult::DECISION_KEEP : v1::SubmitResult::DECISION_REVERT).submit();
  return submission;
}

v1::Operation EndedSubmission(v1::SubmitResult::Decision decision) {
  const bool keep = decision == v1::SubmitResult::DECISION_KEEP;
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  operation.set_done(true);
  v1::SubmitResult& result = *operation.mutable_submit();
  result.set_decision(decision);
  result.set_submission("submissions/7");
  v1::SubmitResult::Row& row = *result.add_rows();
  row.set_problem("b2.h8.q512.d64.f16");
  row.set_decision(decision);
  *row.mutable_trial() = CannedTrial(1);
  row.set_variants(1);
  row.set_variants_tried(1);
  if (keep) {
    row.set_base("incumbents/3");
    *row.mutable_base_trial() = CannedTrial(2);
    row.set_speedup(1.25);
    row.set_reason("1.250 times as fast");
    v1::GateFinding& gate = *row.add_gates();
    gate.set_gate(v1::GateFinding::GATE_CTAS);
    gate.set_text("2 CTAs on 58 SMs; split the keys");
  } else {
    row.mutable_trial()->set_verdict(v1::VERDICT_COMPILE_ERROR);
    row.mutable_trial()->clear_timing();
    row.set_reason("COMPILE_ERROR: identifier \"x\" is undefined");
    v1::Diagnostic& diagnostic = *row.add_diagnostics();
    diagnostic.set_path("mine.cu");
    diagnostic.set_line(12);
    diagnostic.set_text("identifier \"x\" is undefined");
  }
  result.set_reason(row.reason());
  return operation;
}

grpc::Status FakeAttune::Submit(grpc::ServerContext*, const v1::SubmitRequest* request, v1::Operation* operation) {
  if (grpc::Status status = Enter("Submit"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_submit_ = *request;
  }
  return Start("submit", operation);
}

v1::SubmitRequest FakeAttune::last_submit() const {
  const std::lock_guard lock(mutex_);
  return last_submit_;
}

grpc::Status FakeAttune::GetSubmission(grpc::ServerContext*, const v1::GetSubmissionRequest* request,
                                       v1::Submission* submission) {
  if (grpc::Status status = Enter("GetSubmission"); !status.ok()) return status;
  for (int number : {1, 2}) {
    if (request->name() != absl::StrCat("submissions/", number)) continue;
    *submission = CannedSubmission(number);
    v1::SourceFile& file = *submission->add_files();
    file.set_path("mine.cu");
    file.set_text(absl::StrCat("// tile ", 64 * number, "\nint same;\n"));
    return grpc::Status::OK;
  }
  return {grpc::StatusCode::NOT_FOUND, absl::StrCat("submission '", request->name(), "' does not exist")};
}

grpc::Status FakeAttune::ListSubmissions(grpc::ServerContext*, const v1::ListSubmissionsRequest* request,
                                         v1::ListSubmissionsResponse* response) {
  if (grpc::Status status = Enter("ListSubmissions"); !status.ok()) return status;
  if (!request->loop().empty() && request->loop() != "tiles") return grpc::Status::OK;
  *response->add_submissions() = CannedSubmission(request->page_token().empty() ? 2 : 1);
  if (request->page_token().empty()) response->set_next_page_token("2");
  return grpc::Status::OK;
}

grpc::Status FakeAttune::AdoptSubmission(grpc::ServerContext*, const v1::AdoptSubmissionRequest* request,
                                         v1::Submission* submission) {
  if (grpc::Status status = Enter("AdoptSubmission"); !status.ok()) return status;
  *submission = CannedSubmission(1);
  submission->set_name(request->name());
  submission->set_state(v1::Submission::STATE_ADOPTED);
  return grpc::Status::OK;
}

grpc::Status FakeAttune::WithdrawSubmission(grpc::ServerContext*, const v1::WithdrawSubmissionRequest* request,
                                            v1::Submission* submission) {
  if (grpc::Status status = Enter("WithdrawSubmission"); !status.ok()) return status;
  *submission = CannedSubmission(1);
  submission->set_name(request->name());
  submission->set_state(v1::Submission::STATE_WITHDRAWN);
  return grpc::Status::OK;
}

}  // namespace attune::testing
