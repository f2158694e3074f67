// Keeps the files of compiled code to their limits.
#ifndef ATTUNE_SERVER_STORE_SQLITE_RETAIN_ARTIFACTS_H_
#define ATTUNE_SERVER_STORE_SQLITE_RETAIN_ARTIFACTS_H_

#include <functional>

#include "absl/status/status.h"
#include "server/store/artifact_files.h"
#include "server/store/retention.h"
#include "server/store/sqlite/readers.h"
#include "server/store/sqlite/writer.h"

namespace attune::store::sqlite {

// Store::Retain of artifacts that compiled, with their rows; adds to `retained`. A file without a row, as another
// compile of its key or a crash leaves it, is one of them. Ends early, with OK, when `stopped` says so.
absl::Status RetainArtifacts(Readers& readers, Writer& writer, ArtifactFiles& files, const Retention& retention,
                             const std::function<bool()>& stopped, Retained& retained);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_RETAIN_ARTIFACTS_H_
