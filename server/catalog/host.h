// What this host has: devices, compilers, kernel families.
#ifndef ATTUNE_SERVER_CATALOG_HOST_H_
#define ATTUNE_SERVER_CATALOG_HOST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/catalog/family_list.h"
#include "server/catalog/fleet.h"
#include "server/store/store.h"

namespace attune::catalog {

struct Host {
  std::vector<v1::Device> devices;  // as the probe found them, their classes named (class_alias.h)
  std::vector<v1::BackendStatus> backends;
  FamilyList families;  // of every role
  // What hosts on the same store have, this one among them; null where no other has the store open.
  std::shared_ptr<Fleet> fleet = nullptr;
};

// What a request's name of a device stands for on this host, in the host's order: one device by its id or UUID, every
// card of a class by the class's alias. Empty when nothing here has that name.
std::vector<const v1::Device*> DevicesHere(const Host& host, absl::string_view name);

// The same, and of a class that other hosts alone have cards of, or had, the device that stands for any of them.
std::vector<const v1::Device*> DevicesNamed(const Host& host, absl::string_view name);

// The device that stands for the class which `name` is the alias of, here or, where nothing here has that name, on
// other hosts, on whichever of them its cards are. Null where it names a card, or nothing, and where no other has the
// store open.
const v1::Device* FleetClassNamed(const Host& host, absl::string_view name);

// The devices that a sweep's plan names, each once, in the host's order: those of several names with commas between, or
// all ("all"). A name that nothing here has adds none.
std::vector<const v1::Device*> DevicesListed(const Host& host, absl::string_view names);

// "cuda:0,cuda:1": a list that stands for these devices.
std::string ListOf(const std::vector<const v1::Device*>& devices);

// The first of DevicesNamed; null when there is none.
const v1::Device* FindDevice(const Host& host, absl::string_view name);

// The device that a trial's card is. Null when it is no longer here.
const v1::Device* FindCard(const Host& host, const store::Instance& card);

// The device that says what a trial found: its card, another card of its class, or else the device that has its card's
// UUID or id now, whose class is another. Null when none is here.
const v1::Device* DeviceFor(const v1::Trial& trial, const Host& host);

// The first device of a class, by its fingerprint, or that which stands for those of other hosts; null when none is
// known.
const v1::Device* DeviceOfClass(const Host& host, absl::string_view device_class);

// Whether `card`, as a trial names it, is this device. A trial without a UUID is of the device that has its device_id.
bool IsOf(const store::Instance& card, const v1::Device& device);

inline store::Instance InstanceOf(const v1::Device& device) { return {device.id(), device.uuid()}; }
inline store::Instance InstanceOf(const v1::Trial& trial) { return {trial.device_id(), trial.device_uuid()}; }

// Which incumbents are meant by a problem's text (empty: all) and a device's name: those of its class, of whichever
// card; of a device that is not here those that it timed itself. Empty: of any device.
store::IncumbentFilter IncumbentsNamed(absl::string_view problem_text, absl::string_view device, const Host& host);

// The device of a request that names none: this host's first, or what stands for the one class that other hosts have.
// Null when there is none, or more.
const v1::Device* DefaultDevice(const Host& host);

// "cuda:0 (l4), cuda:1 (l4), opencl:0 (pthread)": ids and their classes' aliases; empty without a device.
std::string DeviceNames(const Host& host);

// "nvrtc 13.0"; Unavailable with the reason when the backend has no compiler here.
absl::StatusOr<std::string> Toolchain(const Host& host, v1::Backend backend);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_HOST_H_
