// `attuned --copy_from`: fills the store that the flags name with another one.
#ifndef ATTUNE_SERVER_DAEMON_COPY_FROM_H_
#define ATTUNE_SERVER_DAEMON_COPY_FROM_H_

#include <ostream>
#include <string>

#include "server/daemon/settings.h"

namespace attune {

// `from` is a directory or a connection string. Progress goes to `progress`, a line at a time, and what was copied to
// `report`. The exit code: 2 when the flags make no sense, 1 when it cannot be.
int CopyFrom(const std::string& from, const Settings& settings, std::ostream& report, std::ostream& progress);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_COPY_FROM_H_
