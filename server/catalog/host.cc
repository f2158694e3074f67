#include "server/catalog/host.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace attune::catalog {

std::vector<const v1::Device*> DevicesHere(const Host& host, absl::string_view name) {
  std::vector<const v1::Device*> named;
  if (name.empty()) return named;
  for (const v1::Device& device : host.devices) {
    if (device.id() == name || device.uuid() == name) return {&device};
    if (device.class_alias() == name) named.push_back(&device);
  }
  return named;
}

std::vector<const v1::Device*> DevicesNamed(const Host& host, absl::string_view name) {
  std::vector<const v1::Device*> named = DevicesHere(host, name);
  if (!named.empty() || name.empty() || host.fleet == nullptr) return named;
  if (const v1::Device* elsewhere = host.fleet->FindClass(name); elsewhere != nullptr) named.push_back(elsewhere);
  return named;
}

const v1::Device* FleetClassNamed(const Host& host, absl::string_view name) {
  if (host.fleet == nullptr) return nullptr;
  const std::vector<const v1::Device*> here = DevicesHere(host, name);
  if (here.empty()) return host.fleet->FindClass(name);
  // Other hosts may have another alias for it.
  return here.front()->class_alias() == name ? host.fleet->FindClass(here.front()->fingerprint()) : nullptr;
}

std::vector<const v1::Device*> DevicesListed(const Host& host, absl::string_view names) {
  std::set<const v1::Device*> named;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const std::vector<const v1::Device*> devices = DevicesHere(host, absl::StripAsciiWhitespace(name));
    named.insert(devices.begin(), devices.end());
  }
  std::vector<const v1::Device*> listed;
  for (const v1::Device& device : host.devices) {
    if (names == "all" || named.contains(&device)) listed.push_back(&device);
  }
  return listed;
}

std::string ListOf(const std::vector<const v1::Device*>& devices) {
  return absl::StrJoin(devices, ",",
                       [](std::string* out, const v1::Device* device) { absl::StrAppend(out, device->id()); });
}

const v1::Device* FindDevice(const Host& host, absl::string_view name) {
  const std::vector<const v1::Device*> named = DevicesNamed(host, name);
  return named.empty() ? nullptr : named.front();
}

bool IsOf(const store::Instance& card, const v1::Device& device) {
  return card.uuid.empty() ? card.id == device.id() : card.uuid == device.uuid();
}

const v1::Device* FindCard(const Host& host, const store::Instance& card) {
  for (const v1::Device& device : host.devices) {
    if (IsOf(card, device)) return &device;
  }
  return nullptr;
}

const v1::Device* DeviceOfClass(const Host& host, absl::string_view device_class) {
  for (const v1::Device& device : host.devices) {
    if (device.fingerprint() == device_class) return &device;
  }
  return host.fleet == nullptr ? nullptr : host.fleet->FindClass(device_class);
}

const v1::Device* DeviceFor(const v1::Trial& trial, const Host& host) {
  const v1::Device* const card = FindCard(host, InstanceOf(trial));
  const std::string& device_class = trial.dependencies().device_fingerprint();
  if (card != nullptr && card->fingerprint() == device_class) return card;
  if (const v1::Device* const sister = DeviceOfClass(host, device_class); sister != nullptr) return sister;
  if (card != nullptr) return card;
  for (const v1::Device& device : host.devices) {
    if (device.id() == trial.device_id()) return &device;
  }
  return nullptr;
}

store::IncumbentFilter IncumbentsNamed(absl::string_view problem_text, absl::string_view device, const Host& host) {
  store::IncumbentFilter filter{.problem_text = std::string(problem_text)};
  if (const v1::Device* here = FindDevice(host, device); here != nullptr) {
    filter.device_class = here->fingerprint();
  } else {
    filter.device_id = std::string(device);
  }
  return filter;
}

const v1::Device* DefaultDevice(const Host& host) {
  if (!host.devices.empty()) return &host.devices.front();
  if (host.fleet == nullptr) return nullptr;
  const std::vector<FleetClass> classes = host.fleet->Classes();
  if (classes.size() == 1) return classes.front().device;
  const std::vector<const v1::Device*> known = host.fleet->Known();
  return classes.empty() && known.size() == 1 ? known.front() : nullptr;
}

std::string DeviceNames(const Host& host) {
  return absl::StrJoin(host.devices, ", ", [](std::string* out, const v1::Device& device) {
    absl::StrAppend(out, device.id());
    if (!device.class_alias().empty()) absl::StrAppend(out, " (", device.class_alias(), ")");
  });
}

absl::StatusOr<std::string> Toolchain(const Host& host, v1::Backend backend) {
  std::string reason = "this build has no such backend";
  for (const v1::BackendStatus& status : host.backends) {
    if (status.backend() != backend) continue;
    if (!status.compiler().empty()) return status.compiler();
    reason = status.reason();
  }
  return absl::UnavailableError(absl::StrCat(v1::Backend_Name(backend), " has no compiler here: ", reason));
}

}  // namespace attune::catalog
