// NVIDIA's tools, for tests.
#ifndef ATTUNE_SERVER_PROFILE_TESTING_FAKE_TOOLS_H_
#define ATTUNE_SERVER_PROFILE_TESTING_FAKE_TOOLS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/profile/tools.h"

namespace attune::profile {

// Says what it is told to; notes what it is asked for.
class FakeTools : public Tools {
 public:
  absl::Status CheckProfiler() const override { return here; }
  absl::Status CheckSanitizer() const override { return here; }
  absl::StatusOr<v1::Profile> Profile(const Target& target, absl::Duration, const std::stop_token& stop) override {
    targets.push_back(target);
    if (on_profile) return on_profile(stop);
    v1::Profile profile;
    v1::KernelProfile& kernel = *profile.add_kernels();
    kernel.set_entry("attention");
    kernel.add_counters()->set_name("dram_throughput");
    kernel.mutable_counters(0)->set_value(0.9);
    return profile;
  }
  absl::StatusOr<v1::SanitizerRun> Sanitize(const Target& target, v1::SanitizerTool tool, absl::Duration most,
                                            const std::stop_token&) override {
    tools.push_back(tool);
    targets.push_back(target);
    left.push_back(most);
    if (tool == late) return absl::DeadlineExceededError("it was ended after 2m");
    v1::SanitizerRun run;
    run.set_tool(tool);
    if (tool == finds && (finds_in.empty() || absl::StrContains(target.job.candidate().artifact(), finds_in))) {
      run.set_errors(2);
      run.add_findings("Invalid read");
    }
    return run;
  }

  absl::Status here;
  std::function<absl::StatusOr<v1::Profile>(const std::stop_token&)> on_profile;
  v1::SanitizerTool finds = v1::SANITIZER_TOOL_UNSPECIFIED, late = v1::SANITIZER_TOOL_UNSPECIFIED;
  std::string finds_in = {};  // what the code has in which `finds` finds; empty: any
  std::vector<Target> targets;
  std::vector<v1::SanitizerTool> tools;
  std::vector<absl::Duration> left;
};

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_TESTING_FAKE_TOOLS_H_
