// What programs read: every value that `--format=json` prints, with the keys that docs/cli.md promises. Keys are always
// present; a value that is not known is null. Every object has "type".
#ifndef ATTUNE_CLIENT_CLI_JSON_H_
#define ATTUNE_CLIENT_CLI_JSON_H_

#include <string>
#include <vector>

#include "attune/v1/access.pb.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/fleet.pb.h"
#include "attune/v1/service.pb.h"
#include "client/cli/session.h"
#include "client/cpp/snapshot.h"

namespace attune::cli {

Json TrialJson(const v1::Trial& trial);
Json VariantJson(const v1::Variant& variant);
Json RecipeJson(const v1::LaunchRecipe& recipe);

Json AnswerJson(const v1::GetBestResponse& answer, v1::Policy policy);
Json IncumbentJson(const v1::Incumbent& incumbent);
Json RetimingJson(const v1::Retiming& retiming);
Json TrendJson(const v1::Trend& trend);
Json ComparedTimesJson(const v1::CompareTimesResponse& response);
Json MissJson(const v1::Miss& miss);
Json BackupJson(const v1::Backup& backup);
Json BlobJson(const v1::Blob& blob);
Json BlobTotalJson(const v1::ListBlobsResponse::Total& total, int64_t limit_bytes);
Json DeletedBlobsJson(const v1::DeleteBlobsResponse& deleted);
// `secret`: empty where it is not shown.
Json CallerJson(const v1::Caller& caller);
Json TokenJson(const v1::Token& token, const std::string& secret);
Json BaselineJson(const v1::Baseline& baseline);
Json ExplanationJson(const v1::ExplainResponse& explanation);

Json DeviceJson(const v1::Device& device);
Json HostJson(const v1::Host& host);
Json BackendJson(const v1::BackendStatus& status);
Json FamilyJson(const v1::KernelFamily& family);
Json PreflightJson(const v1::PreflightResponse& preflight);

Json OperationJson(const v1::Operation& operation);
Json ProgressJson(const v1::Operation& operation);
Json TuningJson(const v1::Operation& operation);
Json EvaluationJson(const v1::Operation& operation);
Json SubmitResultJson(const v1::SubmitResult& result);
Json SubmissionJson(const v1::Submission& submission);
Json ProfileJson(const v1::Profile& profile);
Json SanitizingJson(const v1::Sanitizing& sanitizing);
Json ProfileResultJson(const v1::ProfileResult& result);
Json SanitizeResultJson(const v1::SanitizeResult& result);
Json SweepJson(const v1::SweepReport& report);
Json SweepPlanJson(const v1::PlanSweepResponse& plan);
Json RetryJson(const v1::RetryTrialsResponse& retry);

// Canonical text; empty when the server sent a problem that this program does not know.
std::string ProblemText(const v1::Problem& problem);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_JSON_H_
