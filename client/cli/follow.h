// Follows an operation to its end, with progress, and lets Ctrl-C detach from it or cancel it.
#ifndef ATTUNE_CLIENT_CLI_FOLLOW_H_
#define ATTUNE_CLIENT_CLI_FOLLOW_H_

#include <functional>

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

// Watches until the operation is done, then prints its result and returns the exit code that goes with it.
// Ctrl-C on a terminal asks: detach (the operation goes on), cancel it, or watch on; a second Ctrl-C detaches. Away
// from a terminal Ctrl-C detaches. Detaching returns kInterrupted. `on_done` sees the operation before its result is
// printed; its error becomes Follow's once that is done.
using OnDone = std::function<absl::Status(const v1::Operation&)>;
absl::StatusOr<ExitCode> Follow(Session& session, const v1::Operation& operation, const OnDone& on_done = {});

// As Follow, unless `detach`: then prints the operation's name and returns at once.
absl::StatusOr<ExitCode> FollowUnless(bool detach, Session& session, const absl::StatusOr<v1::Operation>& started,
                                      const OnDone& on_done = {});

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_FOLLOW_H_
