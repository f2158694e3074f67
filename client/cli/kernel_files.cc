#include "client/cli/kernel_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/files.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 32;
constexpr uintmax_t kMostBytes = 256 << 10;

bool IsHidden(const fs::path& path) { return absl::StartsWith(path.filename().string(), "."); }

absl::StatusOr<std::vector<fs::path>> PathsBelow(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  uintmax_t bytes = 0;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (IsHidden(it->path())) {
      if (it->is_directory(error)) it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file(error)) continue;
    bytes += it->file_size(error);
    paths.push_back(it->path());
    if (paths.size() > kMostFiles || bytes > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(directory.string()), " has more than ", kMostFiles,
                                                     " files or ", kMostBytes >> 10, " KiB, which no server takes"));
    }
  }
  if (error)
    return absl::NotFoundError(absl::StrCat("cannot read ", Quoted(directory.string()), ": ", error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<google::protobuf::RepeatedPtrField<v1::SourceFile>> ReadKernelFiles(const std::string& path) {
  std::error_code error;
  const fs::path given(path);
  const bool folder = fs::is_directory(given, error);
  std::vector<fs::path> paths = {given};
  if (folder) {
    absl::StatusOr<std::vector<fs::path>> below = PathsBelow(given);
    if (!below.ok()) return below.status();
    paths = *std::move(below);
  }
  if (paths.empty()) return absl::NotFoundError(absl::StrCat(Quoted(path), " has no files"));
  google::protobuf::RepeatedPtrField<v1::SourceFile> files;
  for (const fs::path& one : paths) {
    absl::StatusOr<std::string> text = ReadFile(one.string());
    if (!text.ok()) return text.status();
    v1::SourceFile& file = *files.Add();
    file.set_path(folder ? one.lexically_relative(given).generic_string() : one.filename().string());
    file.set_text(*std::move(text));
  }
  return files;
}

absl::Status WriteKernelFiles(const google::protobuf::RepeatedPtrField<v1::SourceFile>& files,
                              const std::string& directory) {
  for (const v1::SourceFile& file : files) {
    const fs::path relative = fs::path(file.path()).lexically_normal();
    if (relative.empty() || relative.is_absolute() || *relative.begin() == "..") {
      return absl::InvalidArgumentError(absl::StrCat("the server sent a file called ", Quoted(file.path())));
    }
    const fs::path path = fs::path(directory) / relative;
    std::error_code error;
    if (fs::exists(path, error)) {
      return absl::FailedPreconditionError(absl::StrCat(Quoted(path.string()), " is there already; name a new folder"));
    }
    fs::create_directories(path.parent_path(), error);
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot make ", Quoted(path.parent_path().string()), ": ", error.message()));
    }
    if (absl::Status written = ReplaceFile(path.string(), file.text()); !written.ok()) return written;
  }
  return absl::OkStatus();
}

}  // namespace attune::cli
