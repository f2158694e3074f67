// What compile keys gave. The compiled bytes themselves are files: artifact_files.h.
#ifndef ATTUNE_SERVER_STORE_SQLITE_ARTIFACTS_H_
#define ATTUNE_SERVER_STORE_SQLITE_ARTIFACTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace attune::store::sqlite {

// Replaces what was known of the key. The file of an OK artifact is on disk before.
absl::Status PutArtifact(Connection& connection, const CompiledArtifact& artifact);
absl::StatusOr<CompiledArtifact> FindArtifact(Connection& connection, absl::string_view compile_key,
                                              absl::string_view toolchain);
absl::StatusOr<int64_t> ForgetFailedCompiles(Connection& connection, const std::vector<std::string>& compile_keys,
                                             absl::string_view toolchain);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_ARTIFACTS_H_
