// Why a list is empty: nothing matches, or what it was asked for does not exist.
#ifndef ATTUNE_CLIENT_CLI_EXISTENCE_H_
#define ATTUNE_CLIENT_CLI_EXISTENCE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/client.h"

namespace attune::cli {

// NotFound names the families there are. An empty name, for any family, is OK. Trials of families that were removed
// are still listed: so this is for lists that are empty.
absl::Status CheckFamily(Client& client, const std::string& name);

// The ids of the cards that `name`, a device's id or UUID or a class's alias, stands for; of cards of other hosts that
// share the store what they are called, and for a class its name besides. NotFound names the devices there are.
absl::StatusOr<std::vector<std::string>> CardsNamed(Client& client, const std::string& name);

// An empty name, for any device, is OK. As CheckFamily for lists that are empty: results of devices that are gone stay.
absl::Status CheckDevice(Client& client, const std::string& name);

// `operation` is "operations/7"; empty is OK.
absl::Status CheckOperation(Client& client, const std::string& operation);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_EXISTENCE_H_
