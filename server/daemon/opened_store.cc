#include "server/daemon/opened_store.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/log.h"
#include "server/base/proto_time.h"
#include "server/base/reason.h"
#include "server/catalog/copy/served_copy.h"
#include "server/daemon/edge/copy_keeper.h"
#include "server/store/files.h"
#include "server/store/postgresql/connection.h"
#include "server/store/postgresql/errors.h"
#include "server/store/postgresql/store.h"

namespace attune {
namespace {

// Nothing but the copy is there until the database answers.
void SetAside(const absl::Status& why, store::postgresql::PostgresqlStore& store, OpenedStore& opened) {
  opened.away = absl::UnavailableError(absl::StrCat("since this daemon started, ", why.message()));
  SetRetryDelay(store::postgresql::kRetryDelay, opened.away);
  opened.prepare = [&store] { return store.Prepare(absl::ZeroDuration()); };
  const absl::Duration age = absl::Trunc(absl::Now() - TimeOf(opened.copy->time()), absl::Seconds(1));
  const std::vector<LogField> fields = {{"database", opened.database},
                                        {"copy_of", catalog::TimeText(*opened.copy)},
                                        {"copy_age", absl::FormatDuration(age)},
                                        {"incumbents", opened.copy->incumbents_size()},
                                        {"reason", why.message()}};
  Log(store::postgresql::IsDoubtful(why) ? LogLevel::kError : LogLevel::kWarning,
      "the database does not answer; look-ups are answered from a copy", fields);
}

absl::StatusOr<OpenedStore> OpenShared(const Settings& settings, metrics::Store* metrics) {
  OpenedStore opened;
  opened.shared = true;
  if (absl::Status status = store::MakeDirectories(settings.data_dir); !status.ok()) return status;
  absl::StatusOr<store::LockFile> lock = store::LockFile::Acquire(absl::StrCat(settings.data_dir, "/attune.lock"));
  if (!lock.ok()) return lock.status();
  opened.lock = *std::move(lock);
  absl::StatusOr<std::string> name = NameOfDaemon(settings.data_dir);
  if (!name.ok()) return name.status();
  opened.holder = *std::move(name);
  store::postgresql::StoreOptions options;
  options.database.connection.target = settings.store;
  options.home = opened.holder;
  options.cache_directory = absl::StrCat(settings.data_dir, "/artifact_cache");
  options.metrics = metrics;
  options.blob_limit = settings.blob_limit;
  auto unprepared = store::postgresql::PostgresqlStore::OpenUnprepared(options);
  if (!unprepared.ok()) return unprepared.status();
  std::unique_ptr<store::postgresql::PostgresqlStore> store = *std::move(unprepared);
  opened.database = store::postgresql::PlaceOf(settings.store);
  absl::Status ready = store->Prepare(absl::ZeroDuration());
  if (store::postgresql::IsUnreachable(ready)) {
    opened.copy = ReadKeptCopy(settings.data_dir, opened.database);
    if (opened.copy != nullptr) SetAside(ready, *store, opened);
  }
  // Others may migrate it at this moment, or it starts beside this daemon.
  if (!ready.ok() && opened.copy == nullptr) ready = store->Prepare(options.database.patience);
  if (!ready.ok() && opened.copy == nullptr) return ready;
  opened.store = std::move(store);
  return opened;
}

}  // namespace

absl::StatusOr<std::string> NameOfDaemon(const std::string& data_dir) {
  const std::string file = absl::StrCat(data_dir, "/name");
  absl::StatusOr<std::string> kept = store::ReadFile(file);
  if (kept.ok() && !kept->empty()) return kept;
  if (!kept.ok() && !absl::IsNotFound(kept.status())) return kept;
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {"host"};
  absl::BitGen random;
  const std::string name = absl::StrFormat("%s-%08x", host.data(), absl::Uniform<uint32_t>(random));
  if (absl::Status status = store::ReplaceFile(file, name); !status.ok()) return status;
  return name;
}

absl::StatusOr<OpenedStore> OpenStore(const Settings& settings, metrics::Store* metrics) {
  if (!settings.store.empty()) return OpenShared(settings, metrics);
  auto store =
      store::OpenSqliteStore({.directory = settings.data_dir, .metrics = metrics, .blob_limit = settings.blob_limit});
  if (!store.ok()) return store.status();
  OpenedStore opened;
  opened.store = *std::move(store);
  return opened;
}

}  // namespace attune
