// A trial's code under compute-sanitizer, one tool after the other: for those who asked for that, and as a gate that
// what is kept or served has to pass.
#ifndef ATTUNE_SERVER_PROFILE_SANITIZING_H_
#define ATTUNE_SERVER_PROFILE_SANITIZING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/profile.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/profile/tools.h"
#include "server/store/store.h"
#include "server/trials/device_slot.h"
#include "server/trials/job.h"

namespace attune::profile {

// All outlive what they are given to.
struct SanitizerMeans {
  store::Store& store;
  Tools* tools;                            // null: this host runs none
  absl::Duration most = absl::Minutes(2);  // of the tools, all together, without what others took in between
};

std::vector<v1::SanitizerTool> AllSanitizers();

// FailedPrecondition, in a line, when code of this device cannot be sanitized on this host.
absl::Status CheckSanitizers(const v1::Device& device, const Tools* tools);

// Runs `tools` in their order; each run is recorded with the trial as it ends. What is late came to no result. `report`
// is told before each how many are done. Interactive jobs may go in between.
absl::StatusOr<std::vector<v1::SanitizerRun>> Sanitize(const v1::Trial& trial, const Target& target,
                                                       absl::Span<const v1::SanitizerTool> tools,
                                                       const SanitizerMeans& means, const trials::Job& job,
                                                       trials::DeviceUse& use,
                                                       absl::FunctionRef<void(size_t, v1::SanitizerTool)> report);

// As Sanitize with all tools, of the trial of this name as it is stored. Where each has come to a result on it before,
// that is the answer: the code is the same.
absl::StatusOr<std::vector<v1::SanitizerRun>> SanitizeTrial(const std::string& trial, const v1::Device& device,
                                                            const SanitizerMeans& means, const trials::Job& job,
                                                            trials::DeviceUse& use);

// What was found, or why there is no result, a sentence; empty: all are clean.
std::string TroubleOf(absl::Span<const v1::SanitizerRun> runs);
// Of findings alone.
std::string FindingsOf(absl::Span<const v1::SanitizerRun> runs);

}  // namespace attune::profile

#endif  // ATTUNE_SERVER_PROFILE_SANITIZING_H_
