// A copy of what a shared store serves, as a file of the daemon's own: what it answers from when it starts while the
// store is away.
#ifndef ATTUNE_SERVER_CATALOG_COPY_SERVED_COPY_H_
#define ATTUNE_SERVER_CATALOG_COPY_SERVED_COPY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/served/v1/served.pb.h"
#include "server/store/store.h"

namespace attune::catalog {

// Reads the store, a page at a time: of what changes meanwhile the new or the old may be in it. `database` says which
// store that is.
absl::StatusOr<served::v1::Copy> TakeCopy(store::Store& store, const std::string& database, absl::Time now);

// The file: "attune served copy 1 SHA256", the hash of what follows that line, a serialised Copy.
// ResourceExhausted when it would be larger than a message can be, 2 GiB.
absl::StatusOr<std::string> CopyToFile(const served::v1::Copy& copy);

// The copy in a file's bytes. DataLoss when they are damaged; FailedPrecondition when they are of a later format, or a
// copy of another database than `database`.
absl::StatusOr<served::v1::Copy> CopyFromFile(absl::string_view bytes, absl::string_view database);

// "2026-11-27 14:58 UTC", when it was read.
std::string TimeText(const served::v1::Copy& copy);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_COPY_SERVED_COPY_H_
