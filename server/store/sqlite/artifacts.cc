#include "server/store/sqlite/artifacts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite/names.h"

namespace attune::store::sqlite {

absl::Status PutArtifact(Connection& connection, const CompiledArtifact& artifact) {
  worker::v1::CompileResponse entries;
  entries.mutable_entries()->Add(artifact.entries.begin(), artifact.entries.end());
  const std::string message = entries.SerializeAsString();
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
                   "SELECT verdict, log, sha256, entries, compile_ms FROM artifacts"
                   " WHERE compile_key = ? AND toolchain = ?");
  absl::StatusOr<bool> row = select.Bind(compile_key, toolchain).Step();
  if (!row.ok()) return row.status();
  if (!*row) {
    return absl::NotFoundError(absl::StrCat("nothing was compiled for key ", compile_key, " by ", toolchain));
  }
  worker::v1::CompileResponse entries;
  if (absl::Status status = Parse(select.Bytes(3), "list of entries", entries); !status.ok()) return status;
  CompiledArtifact artifact;
  artifact.compile_key = std::string(compile_key);
  artifact.toolchain = std::string(toolchain);
  artifact.verdict = static_cast<v1::Verdict>(select.Int(0));
  artifact.log = std::string(select.Text(1));
  artifact.sha256 = std::string(select.Text(2));
  artifact.entries.assign(entries.entries().begin(), entries.entries().end());
  artifact.compile_ms = select.Real(4);
  return artifact;
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
