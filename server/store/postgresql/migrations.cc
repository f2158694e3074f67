#include "server/store/postgresql/migrations.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace attune::store::postgresql {
namespace {

// One lock for each schema of a database. The number is this lock's alone.
constexpr char kLock[] = "SELECT pg_advisory_xact_lock(1635087470, hashtext(current_schema()))";

// Asks the catalog's table, not to_regclass: that may answer from a cache which knows nothing of what was committed
// while this transaction waited for the lock.
absl::StatusOr<int64_t> ReadVersion(Connection& connection) {
  absl::StatusOr<Rows> exists = connection.Query(
      "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = "
      "'attune_schema')");
  if (!exists.ok()) return exists.status();
  if (!*exists->Step() || !exists->Bool(0)) return 0;
  absl::StatusOr<Rows> version = connection.Query("SELECT version FROM attune_schema");
  if (!version.ok()) return version.status();
  return *version->Step() ? version->Int(0) : 0;
}

absl::Status Apply(Connection& connection, absl::Span<const std::string> migrations) {
  const int64_t known = static_cast<int64_t>(migrations.size());
  if (absl::Status status = connection.Execute(kLock); !status.ok()) return status;
  const absl::StatusOr<int64_t> version = VersionOf(connection, known);
  if (!version.ok()) return version.status();
  for (int64_t step = *version; step < known; ++step) {
    const absl::Status status = connection.ExecuteScript(migrations[static_cast<size_t>(step)]);
    if (status.ok()) continue;
    absl::Status failed(status.code(), absl::StrCat("migrating to schema version ", step + 1, ": ", status.message()));
    status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { failed.SetPayload(url, payload); });
    return failed;
  }
  return connection.Execute("UPDATE attune_schema SET version = $1", known);
}

}  // namespace

absl::StatusOr<int64_t> VersionOf(Connection& connection, int64_t known) {
  absl::StatusOr<int64_t> version = ReadVersion(connection);
  if (!version.ok() || *version <= known) return version;
  return absl::FailedPreconditionError(absl::StrCat(connection.where(), " is of schema version ", *version,
                                                    "; this program knows versions up to ", known,
                                                    ": start the newer one"));
}

absl::Status Migrate(Pool& pool, absl::Span<const std::string> migrations) {
  // Most starts find nothing to do, as a role that may not create tables can, too.
  bool done = false;
  const absl::Status looked = pool.Do([&](Connection& connection) -> absl::Status {
    const absl::StatusOr<int64_t> version = VersionOf(connection, static_cast<int64_t>(migrations.size()));
    done = version.ok() && *version == static_cast<int64_t>(migrations.size());
    return version.status();
  });
  if (!looked.ok() || done) return looked;
  return pool.Transact([&](Connection& connection) { return Apply(connection, migrations); });
}

}  // namespace attune::store::postgresql
