// What a store may keep, and what it has removed to keep to that.
#ifndef ATTUNE_SERVER_STORE_RETENTION_H_
#define ATTUNE_SERVER_STORE_RETENTION_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "attune/v1/trial.pb.h"

namespace attune::store {

// The limits of trials, finished jobs, retimings and artifacts. What was used least recently goes first. A trial is
// used when it is made and when a job asks for what is known of its problem under its dependencies; a job when it ends;
// a retiming when it is made; an artifact when it is written and read.
//
// Whatever the limits, these stay:
// - incumbents, past ones too, with their trials, artifacts and jobs, and the artifacts of their alternatives;
// - where a device class has an incumbent for a problem and policy, the kServedTrials fastest trials of that on each
// card
//   of the class: the incumbent's ties are among them;
// - bad verdicts and failed compiles under one of `current`: without them a bad variant would be tried again;
// - what belongs to an unfinished job's problem, unfinished jobs, and what was used within `grace`;
// - a trial of which an older one stays, of the same variant under the same dependencies on any card of the class, so
//   that no older verdict takes its place.
struct Retention {
  absl::Duration trial_age = absl::InfiniteDuration();
  absl::Duration job_age = absl::InfiniteDuration();
  absl::Duration artifact_age = absl::InfiniteDuration();  // failed compiles too
  absl::Duration retiming_age = absl::InfiniteDuration();
  int64_t database_bytes = 0;             // 0: no limit
  int64_t artifact_bytes = 0;             // 0: no limit
  std::vector<v1::Dependencies> current;  // of every family on every device, as they are today
  absl::Duration grace = absl::Minutes(10);
  absl::Time now = absl::InfinitePast();  // to be set

  bool limits_anything() const {
    const absl::Duration none = absl::InfiniteDuration();
    return trial_age < none || job_age < none || artifact_age < none || retiming_age < none || database_bytes > 0 ||
           artifact_bytes > 0;
  }
};

inline constexpr int kServedTrials = 64;

struct Retained {
  int64_t removed_trials = 0;
  int64_t removed_jobs = 0;
  int64_t removed_retimings = 0;
  int64_t removed_compiles = 0;   // rows of failed ones
  int64_t removed_artifacts = 0;  // files
  int64_t database_bytes = 0;     // afterwards; pages that are free are not counted
  int64_t artifact_bytes = 0;     // afterwards
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_RETENTION_H_
