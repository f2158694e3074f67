// The daemon's flags. They are read once, at the start; everything else knows Settings.
#ifndef ATTUNE_SERVER_DAEMON_FLAGS_H_
#define ATTUNE_SERVER_DAEMON_FLAGS_H_

#include <string>

#include "absl/flags/declare.h"
#include "server/daemon/settings.h"

// What is done in place of serving.
ABSL_DECLARE_FLAG(std::string, check);
ABSL_DECLARE_FLAG(std::string, restore);
ABSL_DECLARE_FLAG(std::string, copy_from);

namespace attune {

// What the flags say, before it is known to make sense. `kernels_dir` is empty where nothing was said.
Settings SettingsOfFlags();

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_FLAGS_H_
