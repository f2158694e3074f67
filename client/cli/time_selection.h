// Which times of a problem are meant, as typed: "date=2026-11-01,device=l4".
#ifndef ATTUNE_CLIENT_CLI_TIME_SELECTION_H_
#define ATTUNE_CLIENT_CLI_TIME_SELECTION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/trend.pb.h"

namespace attune::cli {

inline constexpr char kSelectionHelp[] =
    "Which times: date=DATE (the last before the end of that day, as 2026-11-01, or before a moment, as "
    "2026-11-01T06:00), device=, toolchain=, driver= or family=, several with commas between; \"now\": the last";

// InvalidArgument names `argument`, what it holds and what is allowed. Dates are of the local time zone.
absl::StatusOr<v1::TimeSelection> ParseSelection(absl::string_view argument, absl::string_view text);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TIME_SELECTION_H_
