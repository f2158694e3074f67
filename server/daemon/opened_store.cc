#include "server/daemon/opened_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/files.h"
#include "server/store/holder_name.h"
#include "server/store/postgresql/store.h"

namespace attune {
namespace {

absl::StatusOr<OpenedStore> OpenShared(const Settings& settings, metrics::Store* metrics) {
  OpenedStore opened = {.lock = {}, .holder = "", .shared = true, .store = nullptr};
  if (absl::Status status = store::MakeDirectories(settings.data_dir); !status.ok()) return status;
  absl::StatusOr<store::LockFile> lock = store::LockFile::Acquire(absl::StrCat(settings.data_dir, "/attune.lock"));
  if (!lock.ok()) return lock.status();
  opened.lock = *std::move(lock);
  absl::StatusOr<std::string> name = store::HolderOfDirectory(settings.data_dir);
  if (!name.ok()) return name.status();
  opened.holder = *std::move(name);
  store::postgresql::StoreOptions options;
  options.database.connection.target = settings.store;
  options.home = opened.holder;
  options.cache_directory = absl::StrCat(settings.data_dir, "/artifact_cache");
  options.metrics = metrics;
  options.blob_limit = settings.blob_limit;
  auto store = store::postgresql::PostgresqlStore::Open(options);
  if (!store.ok()) return store.status();
  opened.store = *std::move(store);
  return opened;
}

}  // namespace

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
