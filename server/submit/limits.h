// What a submission may be at most. Each limit names itself where it is hit.
#ifndef ATTUNE_SERVER_SUBMIT_LIMITS_H_
#define ATTUNE_SERVER_SUBMIT_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace attune::submit {

inline constexpr int kMostFiles = 32;
inline constexpr size_t kMostFileBytes = 128 << 10;
inline constexpr size_t kMostBytes = 256 << 10;  // of all files
inline constexpr size_t kMostPath = 128;
inline constexpr size_t kMostManifestBytes = 32 << 10;
inline constexpr int kMostParameters = 32;
inline constexpr int kMostValues = 64;                          // of a parameter
inline constexpr int kMostLaunches = 8;                         // of a run
inline constexpr int kMostArguments = 64;                       // of a launch
inline constexpr int64_t kMostScratchBytes = int64_t{1} << 30;  // of one buffer
inline constexpr int kMostProblems = 8;                         // of a submission
inline constexpr int64_t kMostTried = 16;                       // variants of a problem
inline constexpr int kSanitizeEvery = 5;                        // iterations of a loop, where a request does not say
inline constexpr int kMostSanitizeEvery = 1000;

// How long things may take; the daemon's own limits hold, too.
struct TimeLimits {
  absl::Duration compile = absl::Seconds(30);  // of one variant
  absl::Duration trial = absl::Seconds(6);     // of one variant
  absl::Duration all = absl::Minutes(5);       // of a submission, from when it begins
};

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_LIMITS_H_
