#include "client/cli/existence.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/fleet_cards.h"
#include "proto/attune/quote.h"

namespace attune::cli {

absl::Status CheckFamily(Client& client, const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  const auto response = client.ListKernelFamilies();
  if (!response.ok()) return response.status();
  std::vector<std::string> names;
  for (const v1::KernelFamily& family : response->families()) names.push_back(family.name());
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no family '", name, "'; available: ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::vector<std::string>> CardsNamed(Client& client, const std::string& name) {
  const auto response = client.ListDevices();
  if (!response.ok()) return response.status();
  std::vector<std::string> cards;
  std::vector<std::string> all;
  for (const v1::Device& device : response->devices()) {
    all.push_back(absl::StrCat(device.id(), " (", device.class_alias(), ")"));
    if (name == device.id() || name == device.uuid() || name == device.class_alias()) cards.push_back(device.id());
  }
  if (!cards.empty()) return cards;
  for (const FleetCard& card : FleetCards(client)) {
    all.push_back(absl::StrCat(card.name, " (", card.device.class_alias(), ")"));
    if (name == card.name || name == card.device.uuid() || name == card.device.class_alias())
      cards.push_back(card.name);
  }
  if (!cards.empty()) {
    cards.push_back(name);
    return cards;
  }
  return absl::NotFoundError(absl::StrCat("--device is ", Quoted(name),
                                          "; available devices: ", all.empty() ? "none" : absl::StrJoin(all, ", ")));
}

absl::Status CheckDevice(Client& client, const std::string& name) {
  return name.empty() ? absl::OkStatus() : CardsNamed(client, name).status();
}

absl::Status CheckOperation(Client& client, const std::string& operation) {
  return operation.empty() ? absl::OkStatus() : client.GetOperation(operation).status();
}

}  // namespace attune::cli
