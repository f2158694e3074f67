// How a job's parts get on, for the job itself: those that run here as they are now, what other holders have as the
// store had it at the last look.
#ifndef ATTUNE_SERVER_JOBS_PART_LOOKS_H_
#define ATTUNE_SERVER_JOBS_PART_LOOKS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/jobs/operations.h"

namespace attune::jobs {

// Not thread-safe.
class PartLooks {
 public:
  // `interval`: between two looks at what others have; zero: each of these is asked for at every call.
  PartLooks(Operations& operations, std::string parent, absl::Duration interval, Clock clock = SteadyNow)
      : operations_(operations), parent_(std::move(parent)), interval_(interval), clock_(std::move(clock)) {}

  // In the order of the names. One that ran here and has ended is read at once.
  absl::StatusOr<std::vector<v1::Operation>> At(const std::vector<std::string>& names);

 private:
  // All that have not ended, in one statement, if it is time.
  absl::Status Look();

  Operations& operations_;
  const std::string parent_;
  const absl::Duration interval_;
  const Clock clock_;
  absl::Duration next_ = -absl::InfiniteDuration();  // look, by the clock
  std::set<std::string> here_;                       // at the last call
  std::map<std::string, v1::Operation> elsewhere_;   // as of the last look
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_PART_LOOKS_H_
