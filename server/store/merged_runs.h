// The rule by which a trial's findings are kept: of each of compute-sanitizer's tools the last run.
#ifndef ATTUNE_SERVER_STORE_MERGED_RUNS_H_
#define ATTUNE_SERVER_STORE_MERGED_RUNS_H_

#include <algorithm>

#include "attune/v1/profile.pb.h"

namespace attune::store {

// `later` with the runs of tools that it has none of, in the tools' order.
inline v1::Sanitizing MergedRuns(const v1::Sanitizing& earlier, v1::Sanitizing later) {
  for (const v1::SanitizerRun& run : earlier.runs()) {
    const bool again = std::any_of(later.runs().begin(), later.runs().end(),
                                   [&](const v1::SanitizerRun& other) { return other.tool() == run.tool(); });
    if (!again) *later.add_runs() = run;
  }
  std::sort(later.mutable_runs()->begin(), later.mutable_runs()->end(),
            [](const v1::SanitizerRun& a, const v1::SanitizerRun& b) { return a.tool() < b.tool(); });
  return later;
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_MERGED_RUNS_H_
