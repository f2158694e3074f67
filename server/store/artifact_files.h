// Compiled code on disk, named by its own hash: <directory>/ab/abcd...
//
// Thread-safe. Files are immutable once they have their name; a crash leaves temporary files at most, which the next
// Open removes.
#ifndef ATTUNE_SERVER_STORE_ARTIFACT_FILES_H_
#define ATTUNE_SERVER_STORE_ARTIFACT_FILES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attune::store {

class ArtifactFiles {
 public:
  // The caller holds the store's lock: no other process writes here.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(std::string directory);

  // Returns once the bytes are on disk under their hash. An intact file stays; a damaged one is replaced.
  absl::Status Put(absl::string_view sha256, absl::string_view bytes);
  // NotFound; DataLoss when the bytes no longer have the hash.
  absl::StatusOr<std::string> Read(absl::string_view sha256) const;

 private:
  explicit ArtifactFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_;
  std::atomic<uint64_t> next_temporary_{0};
};

// As ArtifactFiles::Read, of a directory that nobody writes to.
absl::StatusOr<std::string> ReadArtifactFile(absl::string_view directory, absl::string_view sha256);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ARTIFACT_FILES_H_
