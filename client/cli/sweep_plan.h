// Reads a sweep's plan, with errors that say where in the file they are.
#ifndef ATTUNE_CLIENT_CLI_SWEEP_PLAN_H_
#define ATTUNE_CLIENT_CLI_SWEEP_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/sweep.pb.h"

namespace attune::cli {

// `text` is a SweepPlan in protobuf text format. InvalidArgument begins "<file>:<line>:<column>: " and is about the
// first thing that is wrong: the format, a problem's text, a dtype, a mask, a size, or no shapes at all.
absl::StatusOr<v1::SweepPlan> ParseSweepPlan(absl::string_view file, const std::string& text);

absl::StatusOr<v1::SweepPlan> ReadSweepPlan(const std::string& path);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_SWEEP_PLAN_H_
