// What the hosts on the same store have: the classes of their cards, and single cards of those that are live.
#ifndef ATTUNE_SERVER_CATALOG_FLEET_H_
#define ATTUNE_SERVER_CATALOG_FLEET_H_

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/fleet.pb.h"
#include "server/store/store.h"

namespace attune::catalog {

// A class that some live host has cards of. `device` stands for any of them: its id is the class's alias, it has no
// UUID. It lives as long as the Fleet, whatever hosts come and go.
struct FleetClass {
  const v1::Device* device = nullptr;
  std::vector<std::string> hosts;  // their names, "hosts/..."
};

// A card of a host.
struct FleetCard {
  std::string host;  // "hosts/..."
  v1::Device device;
};

// "hosts/gpu7-1a2b3c4d/devices/cuda:0", of a host and a device's id.
std::string CardName(absl::string_view host, absl::string_view device_id);

// Thread-safe.
class Fleet {
 public:
  // What there is from now on. Of hosts that are not LIVE the classes are known: answers for them are given.
  void Set(const std::vector<v1::Host>& hosts);
  // A device of each class that hosts have, or had.
  std::vector<const v1::Device*> Known() const;

  // Those of live hosts, by alias. Classes of one alias have the beginning of their fingerprints behind it.
  std::vector<FleetClass> Classes() const;
  // By its alias or fingerprint; null when no host has, or had, cards of it.
  const v1::Device* FindClass(absl::string_view name) const;
  // "hosts/gpu7-1a2b3c4d/devices/cuda:0", or a card's UUID.
  std::optional<FleetCard> FindCard(absl::string_view name) const;
  // The names of a class's cards of live hosts that may be this one: several where it has no UUID. Of use in each
  // answer: it takes as long however many hosts there are.
  std::vector<std::string> NamesOf(const store::Instance& card, absl::string_view fingerprint) const;
  // Those of a class, by its fingerprint, of live hosts that do not drain.
  std::vector<FleetCard> CardsOf(absl::string_view fingerprint) const;
  // That has the card of this name ("hosts/gpu7-1a2b3c4d/devices/cuda:0", or a UUID), where it is not live.
  std::optional<v1::Host> HostAway(absl::string_view card) const;
  // "l4 (hosts/a, hosts/b), h200 (hosts/c)"; empty when no live host has a card.
  std::string Names() const;

 private:
  // Those that are not known yet. With mutex_ held.
  void AddClasses(const std::vector<v1::Host>& hosts);

  mutable std::mutex mutex_;     // guards what follows
  std::vector<v1::Host> hosts_;  // those that are live
  std::vector<v1::Host> away_;
  std::deque<v1::Device> devices_;                                   // one of each class that there was
  std::map<std::string, const v1::Device*> classes_;                 // by fingerprint
  std::unordered_map<std::string, std::vector<std::string>> names_;  // what NamesOf gives
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_FLEET_H_
