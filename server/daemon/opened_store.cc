#include "server/daemon/opened_store.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/store/files.h"
#include "server/store/postgresql/store.h"

namespace attune {
namespace {

absl::StatusOr<OpenedStore> OpenShared(const Settings& settings, metrics::Store* metrics) {
  OpenedStore opened = {.lock = {}, .holder = "", .shared = true, .store = nullptr};
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
  auto store = store::postgresql::PostgresqlStore::Open(options);
  if (!store.ok()) return store.status();
  opened.store = *std::move(store);
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
