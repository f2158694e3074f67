#include "client/cli/fleet_cards.h"

#include "absl/strings/str_cat.h"

namespace attune::cli {

std::vector<FleetCard> FleetCards(Client& client) {
  const auto response = client.ListHosts();
  std::vector<FleetCard> cards;
  if (!response.ok() || response->hosts_size() < 2) return cards;
  for (const v1::Host& host : response->hosts()) {
    for (const v1::Device& device : host.devices()) {
      cards.push_back(
          {absl::StrCat(host.name(), "/devices/", device.id()), device, host.state() == v1::Host::STATE_LIVE});
    }
  }
  return cards;
}

std::map<std::string, std::string> CardNamesByUuid(const std::vector<FleetCard>& cards) {
  std::map<std::string, std::string> names;
  for (const FleetCard& card : cards) {
    if (!card.device.uuid().empty()) names[card.device.uuid()] = card.name;
  }
  return names;
}

}  // namespace attune::cli
