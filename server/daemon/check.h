// `attuned --check`: what would keep a daemon from starting, or from serving what it should, without starting one.
#ifndef ATTUNE_SERVER_DAEMON_CHECK_H_
#define ATTUNE_SERVER_DAEMON_CHECK_H_

#include <functional>
#include <ostream>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/daemon/settings.h"
#include "server/supervisor/probe.h"

namespace attune {

struct Checks {
  bool flags = false;
  bool manifests = false;
  bool store = false;
  bool tokens = false;
  bool host = false;         // toolchains, devices, and what workers are caged by
  bool flags_parsed = true;  // false: abseil could not, and has named those flags on standard error
};

// "all", or some of "flags", "manifests", "store", "tokens" and "host", comma-separated.
absl::StatusOr<Checks> ParseChecks(absl::string_view text);

// Writes a report, each finding on a line of its own: all of them, not the first. Whether nothing is wrong. Changes
// nothing. `settings` as the daemon would run with, defaults included. `probe` says what this host has; it is asked
// once, for "host", and for "flags" when --devices names something.
using ProbeForCheck = std::function<absl::StatusOr<supervisor::HostDescription>()>;
bool Check(const Settings& settings, const Checks& checks, const ProbeForCheck& probe, std::ostream& report);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_CHECK_H_
