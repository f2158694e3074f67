// How many lines of one event a log takes, so that what repeats without end neither fills a disk nor hides the rest.
#ifndef ATTUNE_SERVER_BASE_LOG_BUDGET_H_
#define ATTUNE_SERVER_BASE_LOG_BUDGET_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attune {

// A token bucket for each event: kBurst lines at once, then one each kInterval. Not thread-safe.
class LogBudget {
 public:
  static constexpr int kBurst = 100;
  static constexpr absl::Duration kInterval = absl::Milliseconds(200);

  enum class Answer {
    kWrite,
    kAnnounce,  // the first that is left out, which is worth a line of its own
    kLeaveOut,
  };
  // `left_out`: with kWrite, how many lines of `event` were left out since the last that was written. `now` never goes
  // backwards.
  Answer Ask(absl::string_view event, absl::Time now, int64_t& left_out);

 private:
  struct Bucket {
    double lines = kBurst;
    absl::Time at = absl::InfinitePast();
    int64_t left_out = 0;
  };
  std::map<std::string, Bucket, std::less<>> buckets_;  // of the events there are in the code: few
};

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_LOG_BUDGET_H_
