#include "server/store/sqlite/maintenance/retain_artifacts.h"

#include <algorithm>
#include <string>
#include <vector>

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

  const int64_t limit = retention.artifact_bytes;
  const bool too_large = limit > 0 && retained.artifact_bytes > limit;
  const int64_t target = limit - limit / 10;
  int64_t left = retained.artifact_bytes;
  std::vector<ArtifactFile> batch;
  for (const ArtifactFile& file : *all) {
    const absl::Duration age = retention.now - file.used;
    if (age <= retention.grace || stopped()) break;  // the others are younger
    if (age <= retention.artifact_age && !(too_large && left > target)) break;
    if (std::binary_search(served->begin(), served->end(), file.sha256)) continue;
    left -= file.bytes;
    batch.push_back(file);
    if (batch.size() < kFilesABatch) continue;
    if (absl::Status status = Remove(writer, files, batch, retained); !status.ok()) return status;
    batch.clear();
  }
  return Remove(writer, files, batch, retained);
}

}  // namespace attune::store::sqlite
