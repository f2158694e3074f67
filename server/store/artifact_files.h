// Compiled code on disk, and other bytes, named by their own hash: <directory>/ab/abcd...
//
// Thread-safe. Files are immutable once they have their name; a crash leaves temporary files at most, which the next
// Open removes.
#ifndef ATTUNE_SERVER_STORE_ARTIFACT_FILES_H_
#define ATTUNE_SERVER_STORE_ARTIFACT_FILES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attune::store {

struct ArtifactFile {
  std::string sha256;
  int64_t bytes = 0;
  absl::Time used;
};

class ArtifactFiles {
 public:
  // The caller holds the store's lock: no other process writes here.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(std::string directory);

  // Returns once the bytes are on disk under their hash. An intact file stays; a damaged one is replaced.
  absl::Status Put(absl::string_view sha256, absl::string_view bytes);
  // NotFound; DataLoss when the bytes no longer have the hash. Marks the file as used.
  absl::StatusOr<std::string> Read(absl::string_view sha256) const;

  // The file was used then.
  absl::Status SetUsed(absl::string_view sha256, absl::Time used);

  // Every file, least recently used first. Uses within kUseResolution of each other count as one.
  static constexpr absl::Duration kUseResolution = absl::Minutes(1);
  absl::StatusOr<std::vector<ArtifactFile>> List() const;
  // False when it was used since `file` was listed, or is gone already.
  absl::StatusOr<bool> Remove(const ArtifactFile& file);
  // Whenever it was used; OK when it is gone already.
  absl::Status Remove(absl::string_view sha256);

 private:
  explicit ArtifactFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string directory_;
  mutable std::mutex using_;  // held while a file is marked as used, or removed because it was not
  std::atomic<uint64_t> next_temporary_{0};
};

// As ArtifactFiles::Read and List, of a directory that nobody writes to, and that stays as it is.
absl::StatusOr<std::string> ReadArtifactFile(absl::string_view directory, absl::string_view sha256);
absl::StatusOr<std::vector<ArtifactFile>> ListArtifactFiles(const std::string& directory);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ARTIFACT_FILES_H_
