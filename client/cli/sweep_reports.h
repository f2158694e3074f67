// A sweep's report in the forms that build servers read.
#ifndef ATTUNE_CLIENT_CLI_SWEEP_REPORTS_H_
#define ATTUNE_CLIENT_CLI_SWEEP_REPORTS_H_

#include <string>
#include <vector>

#include "attune/v1/sweep.pb.h"

namespace attune::cli {

// "1.050x the time: 40.00 us before, 42.00 us now"; without a time before, or after, what there is.
std::string TimesText(const v1::SweepReport::Row& row);

// JUnit's XML, a test case each problem: SLOWER is a failure, FAILED an error, AMBIGUOUS and SKIPPED are skipped.
std::string JUnitText(const v1::SweepReport& report);

// GitHub's workflow commands, one line each: errors for SLOWER and FAILED, warnings for AMBIGUOUS, one notice for all
// that is SKIPPED.
std::vector<std::string> GitHubAnnotations(const v1::SweepReport& report);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_SWEEP_REPORTS_H_
