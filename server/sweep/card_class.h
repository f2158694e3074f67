// The cards of a sweep by their classes: each problem is tuned once a class.
#ifndef ATTUNE_SERVER_SWEEP_CARD_CLASS_H_
#define ATTUNE_SERVER_SWEEP_CARD_CLASS_H_

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attune/v1/device.pb.h"
#include "server/catalog/host.h"
#include "server/catalog/results.h"

namespace attune::sweep {

using CardClass = std::vector<const v1::Device*>;  // never empty

// In the order of their first cards.
inline std::vector<CardClass> ClassesOf(const std::vector<const v1::Device*>& cards) {
  std::vector<CardClass> classes;
  for (const v1::Device* card : cards) {
    const auto same = std::find_if(classes.begin(), classes.end(), [card](const CardClass& of) {
      return of.front()->fingerprint() == card->fingerprint();
    });
    if (same == classes.end()) {
      classes.push_back({card});
    } else {
      same->push_back(card);
    }
  }
  return classes;
}

// The card of the class that timed what is served: a time is compared with the same card's. Null when none of them did.
inline const v1::Device* TimedBy(const std::optional<v1::Incumbent>& served, const CardClass& cards) {
  if (!served.has_value()) return nullptr;
  const auto card = std::find_if(cards.begin(), cards.end(), [&served](const v1::Device* device) {
    return catalog::IsOf(catalog::InstanceOf(served->trial()), *device);
  });
  return card == cards.end() ? nullptr : *card;
}

}  // namespace attune::sweep

#endif  // ATTUNE_SERVER_SWEEP_CARD_CLASS_H_
