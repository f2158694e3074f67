// Trials as people read them.
#ifndef ATTUNE_CLIENT_CLI_TRIAL_TEXT_H_
#define ATTUNE_CLIENT_CLI_TRIAL_TEXT_H_

#include <string>

#include "attune/v1/service.pb.h"
#include "client/cli/table.h"

namespace attune::cli {

// One trial a row; of one problem, or of several, which it then names.
enum class TrialsOf { kOneProblem, kProblems };
Table TrialTable(TrialsOf whose);
void AddTrial(const v1::Trial& trial, TrialsOf whose, Table* table);

// One trial, a line for each of its figures. `measured` is when its time was taken: in a play-off after the trial.
// `of` is before the names of what was measured: "play-off ", or "".
Table TrialFields(const v1::Trial& trial, const google::protobuf::Timestamp& measured, const std::string& of = "");

// Whether the compiler reported on the kernel (OpenCL's reports shared memory alone): every kernel has registers.
bool RegistersKnown(const v1::Resources& resources);

// Whether an answer's timing, accuracy and trial are those of another, the nearest, problem.
bool IsOfNearest(const v1::GetBestResponse& answer);
// That problem's text; empty when the server did not say.
std::string NearestProblem(const v1::GetBestResponse& answer);

// Of the play-off that promoted the incumbent; of its trial in those of earlier servers.
const v1::Timing& ServedTiming(const v1::Incumbent& incumbent);

// Two columns without headers: what, and its value.
Table FieldTable();
void AddTiming(const v1::Timing& timing, const google::protobuf::Timestamp& measured, Table* fields,
               const std::string& of = "");
// In the words of the device's backend: CTAs on SMs, or work-groups on compute units.
void AddGeometry(const v1::Geometry& geometry, absl::string_view device_id, Table* fields);
void AddAccuracy(const v1::Accuracy& accuracy, Table* fields, const std::string& of = "");

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TRIAL_TEXT_H_
