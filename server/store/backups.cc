#include "server/store/backups.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"
#include "server/store/files.h"
#include "server/store/page_token.h"

namespace attune::store {
namespace {

namespace fs = std::filesystem;
using google::protobuf::util::TimeUtil;

constexpr size_t kMostIdBytes = 64;
constexpr char kUnfinished[] = ".unfinished";  // no id begins with a dot

absl::Status CheckId(absl::string_view id) {
  const auto allowed = [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; };
  if (!id.empty() && id.size() <= kMostIdBytes && absl::ascii_isalnum(id[0]) &&
      std::all_of(id.begin(), id.end(), allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("id is ", Quoted(id), "; it must be 1 to ", kMostIdBytes,
                                                 " letters, digits, '-', '_' and '.', the first a letter or a digit"));
}

absl::StatusOr<backup::v1::Manifest> ReadManifest(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(absl::StrCat(path, "/", kManifestFile));
  if (!text.ok()) return text.status();
  backup::v1::Manifest manifest;
  if (google::protobuf::TextFormat::ParseFromString(*text, &manifest)) return manifest;
  return absl::DataLossError(absl::StrCat(path, "/", kManifestFile, " is damaged"));
}

absl::Status WriteManifest(const std::string& directory, const backup::v1::Manifest& manifest) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(manifest, &text);
  if (absl::Status status = WriteNewFile(absl::StrCat(directory, "/", kManifestFile), text); !status.ok()) {
    return status;
  }
  return Sync(directory);
}

backup::v1::Manifest ManifestOf(const BackupContents& contents, absl::Time begin) {
  backup::v1::Manifest manifest;
  *manifest.mutable_create_time() = TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(begin));
  *manifest.mutable_elapsed() = TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(absl::Now() - begin));
  manifest.set_bytes(contents.bytes);
  manifest.set_trials(contents.trials);
  manifest.set_incumbents(contents.incumbents);
  manifest.set_jobs(contents.jobs);
  manifest.set_artifacts(contents.artifacts);
  manifest.set_missing_artifacts(contents.missing_artifacts);
  return manifest;
}

// All there are, newest first.
absl::StatusOr<std::vector<Backup>> ReadAll(const std::string& directory) {
  std::vector<Backup> backups;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    Backup backup{entry->path().filename().string(), entry->path().string(), {}};
    if (absl::StartsWith(backup.id, ".")) continue;
    absl::StatusOr<backup::v1::Manifest> manifest = ReadManifest(backup.path);
    if (!manifest.ok()) {
      LogWarning("not a backup", {{"path", backup.path}, {"reason", manifest.status().message()}});
      continue;
    }
    backup.manifest = *std::move(manifest);
    backups.push_back(std::move(backup));
  }
  if (error && error != std::errc::no_such_file_or_directory) return FileError(error.value(), "list", directory);
  std::sort(backups.begin(), backups.end(),
            [](const Backup& a, const Backup& b) { return a.manifest.create_time() > b.manifest.create_time(); });
  return backups;
}

int64_t KeyOf(const Backup& backup) { return TimeUtil::TimestampToNanoseconds(backup.manifest.create_time()); }

}  // namespace

absl::Status Backups::CheckEnabled() const {
  if (!directory_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError("the daemon was started without --backup_dir: there is no place for backups");
}

// The second one of a second has a number.
std::string Backups::NewId() const {
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", absl::Now(), absl::UTCTimeZone());
  std::string id = time;
  for (int again = 2; fs::exists(absl::StrCat(directory_, "/", id)); ++again) id = absl::StrCat(time, "-", again);
  return id;
}

absl::StatusOr<Backup> Backups::Create(absl::string_view id) {
  if (absl::Status status = CheckEnabled(); !status.ok()) return status;
  if (!id.empty()) {
    if (absl::Status status = CheckId(id); !status.ok()) return status;
  }
  const std::lock_guard<std::mutex> one(making_);
  if (absl::Status status = MakeDirectories(directory_); !status.ok()) return status;
  absl::StatusOr<std::vector<Backup>> others = ReadAll(directory_);
  if (!others.ok()) return others.status();
  if (others->size() >= kMostBackups) {
    return absl::ResourceExhaustedError(
        absl::StrCat(directory_, " holds ", others->size(), " backups; remove some of their directories"));
  }
  Backup backup;
  backup.id = id.empty() ? NewId() : std::string(id);
  backup.path = absl::StrCat(directory_, "/", backup.id);
  if (fs::exists(backup.path)) {
    return absl::AlreadyExistsError(absl::StrCat("there is a backup ", Quoted(backup.id), " already; name another"));
  }
  const std::string unfinished = absl::StrCat(directory_, "/", kUnfinished);
  std::error_code error;
  fs::remove_all(unfinished, error);  // what a crash left
  const absl::Time begin = absl::Now();
  const absl::StatusOr<BackupContents> contents = store_->Backup(unfinished);
  if (!contents.ok()) return contents.status();
  absl::Cleanup remove = [&unfinished] {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
  };
  backup.manifest = ManifestOf(*contents, begin);
  if (absl::Status status = WriteManifest(unfinished, backup.manifest); !status.ok()) return status;
  if (absl::Status status = Rename(unfinished, backup.path); !status.ok()) return status;
  std::move(remove).Cancel();
  LogInfo("backup made", {{"path", backup.path}, {"bytes", contents->bytes}});
  return backup;
}

absl::StatusOr<Page<Backup>> Backups::List(int page_size, absl::string_view page_token) const {
  if (absl::Status status = CheckEnabled(); !status.ok()) return status;
  constexpr absl::string_view kListing = "backups";
  absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(kListing, page_token);
  if (!after.ok()) return after.status();
  absl::StatusOr<std::vector<Backup>> all = ReadAll(directory_);
  if (!all.ok()) return all.status();
  const size_t size = static_cast<size_t>(PageSize(page_size));
  Page<Backup> page;
  for (Backup& backup : *all) {
    if (after->has_value() && KeyOf(backup) >= (*after)->id) continue;
    if (page.items.size() == size) {
      page.next_page_token = EncodePageToken(kListing, {.id = KeyOf(page.items.back())});
      break;
    }
    page.items.push_back(std::move(backup));
  }
  return page;
}

}  // namespace attune::store
