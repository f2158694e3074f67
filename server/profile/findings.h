// compute-sanitizer: how it is asked, and what it says.
#ifndef ATTUNE_SERVER_PROFILE_FINDINGS_H_
#define ATTUNE_SERVER_PROFILE_FINDINGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/profile.pb.h"

namespace attune::profile {

// "memcheck".
std::string Word(v1::SanitizerTool tool);

// Of the command line, behind the executable.
std::vector<std::string> SanitizerOptions(v1::SanitizerTool tool);

// What a run of the tool that ended with `exit_code` has found.
v1::SanitizerRun RunOf(v1::SanitizerTool tool, absl::string_view output, int exit_code);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_FINDINGS_H_
