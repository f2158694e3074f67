#include "server/store/sqlite/artifacts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/rows/result_columns.h"

namespace attune::store::sqlite {

absl::Status PutArtifact(Connection& connection, const CompiledArtifact& artifact) {
  const std::string message = EntriesOf(artifact);
  return Statement(connection,
                   "INSERT OR REPLACE INTO artifacts (compile_key, toolchain, verdict, log, sha256, entries,"
                   " compile_ms, put_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
      .Bind(artifact.compile_key, artifact.toolchain, artifact.verdict, artifact.log, artifact.sha256, Blob{message},
            artifact.compile_ms, ToNanoseconds(Now()))
      .Run();
}

absl::StatusOr<CompiledArtifact> FindArtifact(Connection& connection, absl::string_view compile_key,
                                              absl::string_view toolchain) {
  Statement select(connection,
                   absl::StrCat("SELECT", kArtifactColumns, "FROM artifacts WHERE compile_key = ? AND toolchain = ?"));
  absl::StatusOr<bool> row = select.Bind(compile_key, toolchain).Step();
  if (!row.ok()) return row.status();
  if (!*row) return NothingCompiled(compile_key, toolchain);
  return ReadArtifactRow(select, compile_key, toolchain);
}

absl::StatusOr<int64_t> ForgetFailedCompiles(Connection& connection, const std::vector<std::string>& compile_keys,
                                             absl::string_view toolchain) {
  int64_t forgotten = 0;
  for (const std::string& key : compile_keys) {
    absl::Status status =
        Statement(connection, "DELETE FROM artifacts WHERE compile_key = ? AND toolchain = ? AND verdict <> ?")
            .Bind(key, toolchain, v1::VERDICT_OK)
            .Run();
    if (!status.ok()) return status;
    forgotten += connection.Changes();
  }
  return forgotten;
}

}  // namespace attune::store::sqlite
