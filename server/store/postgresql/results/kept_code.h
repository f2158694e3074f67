// Compiled artifacts: rows that say what a compile key gave, and the code by its own hash. Code that was put or read
// here is a file, too, from which it is read again: a cache, which may be removed at any time.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KEPT_CODE_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KEPT_CODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/artifact_files.h"
#include "server/store/postgresql/pool.h"
#include "server/store/store.h"

namespace attune::store::postgresql {

// Thread-safe. What each function promises is said in store.h.
class KeptCode {
 public:
  // Files are in `directory`, which no other process uses.
  static absl::StatusOr<std::unique_ptr<KeptCode>> Open(const std::string& directory, Pool* pool);

  absl::Status Put(const CompiledArtifact& artifact, absl::string_view bytes);
  absl::StatusOr<CompiledArtifact> Find(absl::string_view compile_key, absl::string_view toolchain);
  absl::StatusOr<int64_t> ForgetFailed(const std::vector<std::string>& compile_keys, absl::string_view toolchain);
  absl::StatusOr<std::string> Read(absl::string_view sha256);

  // Removes code over the limits from the database, and files that it no longer has from the cache, which is held to
  // the same limit of size. Adds to `retained`.
  absl::Status Retain(const Retention& retention, const std::function<bool()>& stopped, Retained& retained);

 private:
  KeptCode(std::unique_ptr<ArtifactFiles> files, Pool* pool) : files_(std::move(files)), pool_(*pool) {}

  void NoteUse(absl::string_view sha256);
  absl::Status WriteUses();
  void Cache(absl::string_view sha256, absl::string_view bytes);
  absl::Status TrimCache(const std::set<std::string>& kept, const Retention& retention);

  const std::unique_ptr<ArtifactFiles> files_;
  Pool& pool_;
  std::mutex mutex_;
  std::set<std::string> used_;  // noted, not written
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_KEPT_CODE_H_
