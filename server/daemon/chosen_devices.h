// The devices that --devices names.
#ifndef ATTUNE_SERVER_DAEMON_CHOSEN_DEVICES_H_
#define ATTUNE_SERVER_DAEMON_CHOSEN_DEVICES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/supervisor/probe.h"

namespace attune {

// As a name: of no device.
inline constexpr absl::string_view kNoDevice = "none";

struct ChosenDevices {
  supervisor::HostDescription host;  // with the chosen devices alone, their classes named
  std::vector<std::string> unknown;  // names of nothing that the host has
  std::string here;                  // "cuda:0 (l4), cuda:1 (l4)": what it has
};

// A name is a device's id or UUID, or the alias of its class: all cards of it. No names: every device. Classes are
// named by all that the host has, so that their aliases do not depend on the choice.
ChosenDevices ChooseDevices(const std::vector<std::string>& names, supervisor::HostDescription host);

}  // namespace attune

#endif  // ATTUNE_SERVER_DAEMON_CHOSEN_DEVICES_H_
