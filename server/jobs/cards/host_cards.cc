#include "server/jobs/cards/host_cards.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/attune/quote.h"

namespace attune::jobs {

HostCards::HostCards(const catalog::Host& host, const std::map<std::string, supervisor::DeviceWorker*>& workers,
                     absl::Duration idle_release, const Clock& clock)
    : host_(host) {
  for (const auto& [id, worker] : workers) {
    slots_[id] = std::make_unique<trials::DeviceSlot>(worker, idle_release, clock);
  }
}

absl::StatusOr<std::vector<trials::DeviceSlot*>> HostCards::SlotsFor(
    const std::string& names, absl::FunctionRef<size_t(const std::string& card)> load) const {
  std::vector<std::pair<size_t, trials::DeviceSlot*>> by_load;
  for (const v1::Device* device : catalog::DevicesListed(host_, names)) {
    const auto it = slots_.find(device->id());
    if (it != slots_.end()) by_load.emplace_back(load(device->id()), it->second.get());
  }
  if (by_load.empty()) {
    const std::string here = catalog::DeviceNames(host_);
    return absl::FailedPreconditionError(
        absl::StrCat("device_id is ", Quoted(names), "; this host has ", here.empty() ? "no device" : here));
  }
  std::stable_sort(by_load.begin(), by_load.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<trials::DeviceSlot*> slots;
  slots.reserve(by_load.size());
  for (const auto& [_, slot] : by_load) slots.push_back(slot);
  return slots;
}

std::vector<const v1::Device*> HostCards::CardsOf(const std::vector<trials::DeviceSlot*>& slots) const {
  std::vector<const v1::Device*> cards;
  for (const v1::Device& device : host_.devices) {
    const bool there = std::any_of(slots.begin(), slots.end(),
                                   [&](const trials::DeviceSlot* slot) { return slot->device().id() == device.id(); });
    if (there) cards.push_back(&device);
  }
  return cards;
}

std::string HostCards::ListOfClass(absl::string_view device_class) const {
  std::vector<const v1::Device*> cards;
  std::vector<const v1::Device*> available;
  for (const v1::Device& device : host_.devices) {
    if (device.fingerprint() != device_class || !slots_.contains(device.id())) continue;
    cards.push_back(&device);
    if (At(device.id()).Available().ok()) available.push_back(&device);
  }
  return catalog::ListOf(available.empty() ? cards : available);
}

absl::Status HostCards::CanHave(absl::string_view device_class) const {
  absl::Status status;
  for (const auto& [id, slot] : slots_) {
    if (slot->device().fingerprint() != device_class) continue;
    status = slot->Available();
    if (status.ok()) return status;
  }
  return status;
}

std::vector<std::string> HostCards::SistersOf(const std::string& card) const {
  std::vector<std::string> sisters;
  const std::string& fingerprint = At(card).device().fingerprint();
  for (const v1::Device& one : host_.devices) {
    if (one.fingerprint() == fingerprint && one.id() != card && slots_.contains(one.id())) sisters.push_back(one.id());
  }
  return sisters;
}

std::string HostCards::ClassAliasOf(const std::string& card) const {
  const v1::Device* const found = catalog::FindDevice(host_, card);
  return found == nullptr ? "" : found->class_alias();
}

}  // namespace attune::jobs
