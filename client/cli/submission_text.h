// What a submission has come to, for people.
#ifndef ATTUNE_CLIENT_CLI_SUBMISSION_TEXT_H_
#define ATTUNE_CLIENT_CLI_SUBMISSION_TEXT_H_

#include <string>

#include "attune/v1/submission.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

std::string Word(v1::SubmitResult::Decision decision);  // "KEEP"
std::string Word(v1::Submission::State state);          // "private"
std::string Word(v1::GateFinding::Gate gate);           // "regression"

// A row's base: "incumbents/3", "-" where there is none.
std::string BaseText(const v1::SubmitResult::Row& row);
// "kernel.cl:12:5: ..."
std::string DiagnosticText(const v1::Diagnostic& diagnostic);

// Times and base of each problem, what the compiler and the gates say, and the decision.
void PrintSubmitResult(Session& session, const v1::SubmitResult& result);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_SUBMISSION_TEXT_H_
