#include "server/daemon/edge/until_done.h"

#include <algorithm>

#include "absl/random/random.h"
#include "server/base/log.h"
#include "server/store/postgresql/errors.h"

namespace attune {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(500);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

bool IsOutage(const absl::Status& status) {
  return absl::IsUnavailable(status) && !store::postgresql::IsRefused(status) && !store::postgresql::IsDoubtful(status);
}

}  // namespace

bool TryUntilDone(absl::FunctionRef<absl::Status()> attempt, absl::FunctionRef<bool(absl::Duration)> pause) {
  absl::BitGen random;
  absl::Status last;
  for (absl::Duration longest = kFirstPause;; longest = std::min(2 * longest, kLongestPause)) {
    const absl::Status done = attempt();
    if (done.ok()) return true;
    const bool outage = IsOutage(done);
    // An outage has a reason of its own each time: a socket that is gone, a server that starts.
    if (!outage && done.message() != last.message()) {
      LogError("the database cannot be used; this daemon is no member of its fleet until it can",
               {{"error", done.message()}});
    } else if (outage && !last.ok() && !IsOutage(last)) {
      LogWarning("the database does not answer again", {{"error", done.message()}});
    }
    last = done;
    // All daemons of a fleet may wait for the same database.
    if (!pause(longest * absl::Uniform(random, 0.5, 1.0))) return false;
  }
}

}  // namespace attune
