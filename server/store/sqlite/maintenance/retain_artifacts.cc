#include "server/store/sqlite/maintenance/retain_artifacts.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "server/store/maintenance/retention_pass.h"
#include "server/store/sqlite/maintenance/backup.h"
#include "server/store/sqlite/maintenance/retention_pass.h"

namespace attune::store::sqlite {
namespace {

constexpr size_t kFilesABatch = 100;

// Rows first: a crash between the two leaves files that the next pass finds, not rows that name nothing.
absl::Status Remove(Writer& writer, ArtifactFiles& files, const std::vector<ArtifactFile>& batch, Retained& retained) {
  std::vector<std::string> names;
  for (const ArtifactFile& file : batch) names.push_back(file.sha256);
  if (absl::Status status = ForgetArtifacts(writer, names); !status.ok()) return status;
  for (const ArtifactFile& file : batch) {
    const absl::StatusOr<bool> removed = files.Remove(file);
    if (!removed.ok()) return removed.status();
    if (!*removed) continue;
    ++retained.removed_artifacts;
    retained.artifact_bytes -= file.bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RetainArtifacts(Readers& readers, Writer& writer, ArtifactFiles& files, const Retention& retention,
                             const std::function<bool()>& stopped, Retained& retained) {
  const absl::StatusOr<std::vector<ArtifactFile>> all = files.List();
  if (!all.ok()) return all.status();
  for (const ArtifactFile& file : *all) retained.artifact_bytes += file.bytes;
  const absl::StatusOr<std::vector<std::string>> served =
      readers.With([](Connection& connection) { return ArtifactsOfIncumbents(connection); });
  if (!served.ok()) return served.status();

  const std::vector<ArtifactFile> removed = ArtifactsToRemove(*all, *served, retention, stopped);
  for (size_t begin = 0; begin < removed.size() && !stopped(); begin += kFilesABatch) {
    const size_t end = std::min(removed.size(), begin + kFilesABatch);
    const std::vector<ArtifactFile> batch(removed.data() + begin, removed.data() + end);
    if (absl::Status status = Remove(writer, files, batch, retained); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace attune::store::sqlite
