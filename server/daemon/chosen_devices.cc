#include "server/daemon/chosen_devices.h"

#include <set>
#include <utility>

#include "server/catalog/class_alias.h"
#include "server/catalog/host.h"

namespace attune {

ChosenDevices ChooseDevices(const std::vector<std::string>& names, supervisor::HostDescription host) {
  catalog::NameClasses(host.devices);
  const catalog::Host all{host.devices, {}, {}};
  ChosenDevices chosen;
  chosen.here = catalog::DeviceNames(all);
  std::set<std::string> ids;
  for (const std::string& name : names) {
    if (name == kNoDevice) continue;
    const std::vector<const v1::Device*> named = catalog::DevicesNamed(all, name);
    for (const v1::Device* device : named) ids.insert(device->id());
    if (named.empty()) chosen.unknown.push_back(name);
  }
  if (!names.empty()) {
    std::erase_if(host.devices, [&ids](const v1::Device& device) { return !ids.contains(device.id()); });
  }
  chosen.host = std::move(host);
  return chosen;
}

}  // namespace attune
