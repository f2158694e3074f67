// The cards of all hosts that share the server's store, and what they are called.
#ifndef ATTUNE_CLIENT_CLI_FLEET_CARDS_H_
#define ATTUNE_CLIENT_CLI_FLEET_CARDS_H_

#include <map>
#include <string>
#include <vector>

#include "attune/v1/fleet.pb.h"
#include "client/cpp/client.h"

namespace attune::cli {

struct FleetCard {
  std::string name;  // "hosts/gpu7-1a2b3c4d/devices/cuda:0"
  v1::Device device;
  bool live = false;  // its host is
};

// Of all hosts, those that are not live too. Empty where the server has nobody beside it, or cannot say.
std::vector<FleetCard> FleetCards(Client& client);

// What each is called, by its UUID; those without one are not in it.
std::map<std::string, std::string> CardNamesByUuid(const std::vector<FleetCard>& cards);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_FLEET_CARDS_H_
