// What a daemon that started without its database tries until it is a member of the fleet.
#ifndef ATTUNE_SERVER_DAEMON_EDGE_UNTIL_DONE_H_
#define ATTUNE_SERVER_DAEMON_EDGE_UNTIL_DONE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attune {

// Makes the attempt until it succeeds, with growing pauses of at most 5 s in between. False when `pause`, which waits
// for so long, says that the daemon is to end. Of each new reason why an attempt failed the log has a line: an error
// when somebody has to do something, which an outage is not.
bool TryUntilDone(absl::FunctionRef<absl::Status()> attempt, absl::FunctionRef<bool(absl::Duration)> pause);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_EDGE_UNTIL_DONE_H_
