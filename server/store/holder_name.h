// As whom a daemon leases jobs of a store that it shares with others.
#ifndef ATTUNE_SERVER_STORE_HOLDER_NAME_H_
#define ATTUNE_SERVER_STORE_HOLDER_NAME_H_

#include <string>

#include "absl/status/statusor.h"

namespace attune::store {

// The name of the daemon whose `data_dir` this is. Made when it is asked for first and kept there, so that the next
// start goes on with this one's jobs whatever the host is called by then, and no other daemon has the name.
absl::StatusOr<std::string> HolderOfDirectory(const std::string& data_dir);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_HOLDER_NAME_H_
