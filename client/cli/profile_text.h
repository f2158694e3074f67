// Counters and findings as people read them.
#ifndef ATTUNE_CLIENT_CLI_PROFILE_TEXT_H_
#define ATTUNE_CLIENT_CLI_PROFILE_TEXT_H_

#include <string>

#include "attune/v1/profile.pb.h"
#include "attune/v1/profiling.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

std::string Word(v1::SanitizerTool tool);  // "memcheck"
// InvalidArgument lists what is allowed.
absl::StatusOr<v1::SanitizerTool> ParseSanitizer(absl::string_view text);

// "SM 62%, memory 91%, tensor 12%, occupancy 45%", of the longest kernel; empty without counters.
std::string CountersText(const v1::Profile& profile);
// A table of all counters, and the largest stalls.
void PrintProfile(Session& session, const v1::Profile& profile);
// A line a tool, and below it what it has found.
void PrintSanitizing(Session& session, const v1::Sanitizing& sanitizing);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PROFILE_TEXT_H_
