#include "server/catalog/fleet.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/catalog/class_alias.h"
#include "server/catalog/host.h"

namespace attune::catalog {
namespace {

// Of cards of one class: by UUID, or by id where that is all that is known.
std::string KeyOf(absl::string_view fingerprint, const store::Instance& card) {
  return card.uuid.empty() ? absl::StrCat(fingerprint, "/id/", card.id)
                           : absl::StrCat(fingerprint, "/uuid/", card.uuid);
}

bool IsNamed(const v1::Host& host, const v1::Device& device, absl::string_view name) {
  return !name.empty() && (device.uuid() == name || CardName(host.name(), device.id()) == name);
}

}  // namespace

std::string CardName(absl::string_view host, absl::string_view device_id) {
  return absl::StrCat(host, "/devices/", device_id);
}

void Fleet::Set(const std::vector<v1::Host>& hosts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hosts_.clear();
  away_.clear();
  names_.clear();
  for (const v1::Host& host : hosts) (host.state() == v1::Host::STATE_LIVE ? hosts_ : away_).push_back(host);
  // First those of live hosts: of classes that share an alias, the one that was there has it as it is.
  AddClasses(hosts_);
  AddClasses(away_);
  for (const v1::Host& host : hosts_) {
    for (const v1::Device& device : host.devices()) {
      const std::string name = CardName(host.name(), device.id());
      names_[KeyOf(device.fingerprint(), {device.id(), ""})].push_back(name);
      if (!device.uuid().empty()) names_[KeyOf(device.fingerprint(), InstanceOf(device))].push_back(name);
    }
  }
}

void Fleet::AddClasses(const std::vector<v1::Host>& hosts) {
  std::vector<v1::Device> fresh;
  for (const v1::Host& host : hosts) {
    for (const v1::Device& device : host.devices()) {
      const bool known = classes_.contains(device.fingerprint()) ||
                         std::any_of(fresh.begin(), fresh.end(), [&device](const v1::Device& other) {
                           return other.fingerprint() == device.fingerprint();
                         });
      if (!known) fresh.push_back(device);
    }
  }
  if (fresh.empty()) return;
  // Those that are known keep their aliases.
  std::vector<v1::Device> all(devices_.begin(), devices_.end());
  all.insert(all.end(), fresh.begin(), fresh.end());
  NameClasses(all);
  for (size_t i = devices_.size(); i < all.size(); ++i) {
    v1::Device& device = devices_.emplace_back(std::move(all[i]));
    device.set_id(device.class_alias());
    device.clear_uuid();
    classes_[device.fingerprint()] = &device;
  }
}

std::vector<const v1::Device*> Fleet::Known() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<const v1::Device*> known;
  for (const v1::Device& device : devices_) known.push_back(&device);
  return known;
}

std::vector<FleetClass> Fleet::Classes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::string, FleetClass> classes;  // by alias
  for (const v1::Host& host : hosts_) {
    for (const v1::Device& device : host.devices()) {
      const v1::Device* const known = classes_.at(device.fingerprint());
      FleetClass& one = classes[known->id()];
      one.device = known;
      if (one.hosts.empty() || one.hosts.back() != host.name()) one.hosts.push_back(host.name());
    }
  }
  std::vector<FleetClass> listed;
  for (auto& [alias, one] : classes) listed.push_back(std::move(one));
  return listed;
}

const v1::Device* Fleet::FindClass(absl::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [fingerprint, device] : classes_) {
    if (fingerprint == name || device->id() == name) return device;
  }
  return nullptr;
}

std::optional<FleetCard> Fleet::FindCard(absl::string_view name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const v1::Host& host : hosts_) {
    for (const v1::Device& device : host.devices()) {
      if (IsNamed(host, device, name)) return FleetCard{host.name(), device};
    }
  }
  return std::nullopt;
}

std::vector<std::string> Fleet::NamesOf(const store::Instance& card, absl::string_view fingerprint) const {
  const std::string key = KeyOf(fingerprint, card);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = names_.find(key);
  return it == names_.end() ? std::vector<std::string>() : it->second;
}

std::optional<v1::Host> Fleet::HostAway(absl::string_view card) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const v1::Host& host : away_) {
    for (const v1::Device& device : host.devices()) {
      if (IsNamed(host, device, card)) return host;
    }
  }
  return std::nullopt;
}

std::vector<FleetCard> Fleet::CardsOf(absl::string_view fingerprint) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<FleetCard> cards;
  for (const v1::Host& host : hosts_) {
    if (host.draining()) continue;
    for (const v1::Device& device : host.devices()) {
      if (device.fingerprint() == fingerprint) cards.push_back({host.name(), device});
    }
  }
  return cards;
}

std::string Fleet::Names() const {
  return absl::StrJoin(Classes(), ", ", [](std::string* out, const FleetClass& one) {
    absl::StrAppend(out, one.device->id(), " (", absl::StrJoin(one.hosts, ", "), ")");
  });
}

}  // namespace attune::catalog
