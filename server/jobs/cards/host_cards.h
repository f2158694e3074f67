// The cards of this host that jobs run on, by the names that requests call them: a card's id, a list of ids, a class.
#ifndef ATTUNE_SERVER_JOBS_CARDS_HOST_CARDS_H_
#define ATTUNE_SERVER_JOBS_CARDS_HOST_CARDS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "server/base/clock.h"
#include "server/catalog/host.h"
#include "server/supervisor/device_worker.h"
#include "server/trials/device_slot.h"

namespace attune::jobs {

// Thread-safe: which cards there are does not change.
class HostCards {
 public:
  using Slots = std::map<std::string, std::unique_ptr<trials::DeviceSlot>>;  // by the card's id

  // `host` and the workers (by their cards' ids) live longer. A worker that nobody asks for `idle_release` gives its
  // card back.
  HostCards(const catalog::Host& host, const std::map<std::string, supervisor::DeviceWorker*>& workers,
            absl::Duration idle_release, const Clock& clock);

  const Slots& slots() const { return slots_; }
  // `card` is one of them.
  trials::DeviceSlot& At(const std::string& card) const { return *slots_.at(card); }

  // Of the cards that `names` stands for (one, a list, a class), never none; those with the lower `load` first, equals
  // in the host's order. FailedPrecondition, with the names that there are, when it stands for none.
  absl::StatusOr<std::vector<trials::DeviceSlot*>> SlotsFor(
      const std::string& names, absl::FunctionRef<size_t(const std::string& card)> load) const;

  // Of the slots, in the host's order.
  std::vector<const v1::Device*> CardsOf(const std::vector<trials::DeviceSlot*>& slots) const;

  // Those of a class (its fingerprint), as a list of ids; empty without one. Those that other processes hold only where
  // they hold all.
  std::string ListOfClass(absl::string_view device_class) const;

  // What keeps this host from all cards of a class that it has; OK where one is to be had, or it has none.
  absl::Status CanHave(absl::string_view device_class) const;

  // The other cards of its class.
  std::vector<std::string> SistersOf(const std::string& card) const;

  // What requests call its class; empty when `card` is none of this host's.
  std::string ClassAliasOf(const std::string& card) const;

 private:
  const catalog::Host& host_;
  Slots slots_;
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_CARDS_HOST_CARDS_H_
