#include "server/store/artifact_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/sha256.h"
#include "server/store/files.h"

namespace attune::store {
namespace {

constexpr absl::string_view kTemporary = ".tmp-";

bool IsSha256(absl::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

absl::Status RemoveTemporaries(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::recursive_directory_iterator file(directory, error), end; !error && file != end; file.increment(error)) {
    if (absl::StartsWith(file->path().filename().string(), kTemporary)) {
      fs::remove(file->path(), error);
      if (error) return FileError(error.value(), "remove", file->path().string());
    }
  }
  if (error) return FileError(error.value(), "list", directory);
  return absl::OkStatus();
}

std::optional<struct stat> StatOf(const std::string& path) {
  struct stat file = {};
  if (stat(path.c_str(), &file) != 0) return std::nullopt;
  return file;
}

// A file's bytes never change, so that its time of modification is free to say when it was used.
absl::Time UsedAt(const struct stat& file) { return absl::TimeFromTimespec(file.st_mtim); }

std::string PathOf(absl::string_view directory, absl::string_view sha256) {
  return absl::StrCat(directory, "/", sha256.substr(0, 2), "/", sha256);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArtifactFiles>> ArtifactFiles::Open(std::string directory) {
  if (absl::Status status = MakeDirectories(directory); !status.ok()) return status;
  if (absl::Status status = RemoveTemporaries(directory); !status.ok()) return status;
  return std::unique_ptr<ArtifactFiles>(new ArtifactFiles(std::move(directory)));  // the constructor is private
}

absl::Status ArtifactFiles::Put(absl::string_view sha256, absl::string_view bytes) {
  if (Read(sha256).ok()) return absl::OkStatus();
  const std::string path = PathOf(directory_, sha256);
  const std::string parent = path.substr(0, path.rfind('/'));
  if (absl::Status status = MakeDirectories(parent); !status.ok()) return status;
  const std::string temporary =
      absl::StrCat(parent, "/", kTemporary, getpid(), "-", next_temporary_.fetch_add(1, std::memory_order_relaxed));
  if (absl::Status status = WriteNewFile(temporary, bytes); !status.ok()) return status;
  // Another writer of the same bytes may have been first: keep its file. Its rename may not be on disk yet.
  if (Read(sha256).ok()) {
    unlink(temporary.c_str());
    return Sync(parent);
  }
  absl::Status status = Rename(temporary, path);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::StatusOr<std::string> ArtifactFiles::Read(absl::string_view sha256) const {
  absl::StatusOr<std::string> bytes = ReadArtifactFile(directory_, sha256);
  if (!bytes.ok()) return bytes;
  const std::string path = PathOf(directory_, sha256);
  const std::lock_guard<std::mutex> lock(using_);
  const std::optional<struct stat> file = StatOf(path);
  if (file.has_value() && absl::Now() - UsedAt(*file) > kUseResolution) utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return bytes;
}

absl::StatusOr<std::vector<ArtifactFile>> ArtifactFiles::List() const { return ListArtifactFiles(directory_); }

absl::Status ArtifactFiles::SetUsed(absl::string_view sha256, absl::Time used) {
  const std::string path = PathOf(directory_, sha256);
  const timespec time = absl::ToTimespec(used);
  const timespec times[] = {time, time};
  if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return FileError(errno, "set the time of", path);
  return absl::OkStatus();
}

absl::StatusOr<bool> ArtifactFiles::Remove(const ArtifactFile& file) {
  const std::string path = PathOf(directory_, file.sha256);
  const std::lock_guard<std::mutex> lock(using_);
  const std::optional<struct stat> now = StatOf(path);
  if (!now.has_value() || UsedAt(*now) != file.used) return false;
  if (unlink(path.c_str()) != 0) return FileError(errno, "remove", path);
  return true;
}

absl::Status ArtifactFiles::Remove(absl::string_view sha256) {
  const std::string path = PathOf(directory_, sha256);
  const std::lock_guard<std::mutex> lock(using_);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError(errno, "remove", path);
}

absl::StatusOr<std::string> ReadArtifactFile(absl::string_view directory, absl::string_view sha256) {
  if (!IsSha256(sha256)) {
    return absl::NotFoundError(
        absl::StrCat("artifact '", sha256, "' does not exist; names are 64 lower-case hexadecimal digits"));
  }
  const std::string path = PathOf(directory, sha256);
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (absl::IsNotFound(bytes.status())) return absl::NotFoundError(absl::StrCat("artifact ", path, " is gone"));
  if (bytes.ok() && Sha256(*bytes) != sha256) {
    return absl::DataLossError(absl::StrCat("artifact ", path, " is damaged: its bytes no longer have its hash"));
  }
  return bytes;
}

absl::StatusOr<std::vector<ArtifactFile>> ListArtifactFiles(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<ArtifactFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (!IsSha256(name)) continue;
    const std::optional<struct stat> file = StatOf(entry->path().string());
    if (file.has_value()) files.push_back({std::move(name), file->st_size, UsedAt(*file)});
  }
  if (error) return FileError(error.value(), "list", directory);
  std::sort(files.begin(), files.end(), [](const ArtifactFile& a, const ArtifactFile& b) { return a.used < b.used; });
  return files;
}

}  // namespace attune::store
