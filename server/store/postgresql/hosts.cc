#include "server/store/postgresql/hosts.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/base/proto_time.h"
#include "server/store/damaged_rows.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::string_view kHostColumns =
    " described, stopped, draining, (extract(epoch FROM started) * 1000000)::bigint,"
    " (extract(epoch FROM seen) * 1000000)::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint ";

// Of the row stepped to.
absl::StatusOr<v1::Host> ReadHost(const Rows& row) {
  v1::Host host;
  if (absl::Status status = Parse(row.Bytes(0), "host", host); !status.ok()) return status;
  const absl::Time seen = absl::FromUnixMicros(row.Int(4));
  const absl::Duration age = absl::FromUnixMicros(row.Int(5)) - seen;
  host.set_state(StateOf(row.Bool(1), age));
  host.set_draining(row.Bool(2));
  SetTimestamp(absl::FromUnixMicros(row.Int(3)), host.mutable_start_time());
  SetTimestamp(seen, host.mutable_heartbeat_time());
  SetDuration(age, host.mutable_heartbeat_age());
  return host;
}

absl::StatusOr<v1::Host> TheHost(absl::string_view name, absl::StatusOr<Rows> rows) {
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return NoHost(name);
  return ReadHost(*rows);
}

}  // namespace

absl::Status PostgresqlHosts::Register(const v1::Host& host, int64_t incarnation) {
  if (absl::Status status = CheckNewHost(host); !status.ok()) return status;
  const std::string described = host.SerializeAsString();
  return pool_->Do([&](Connection& connection) {
    return connection.Execute(
        "INSERT INTO hosts (name, incarnation, described, started, seen)"
        " VALUES ($1, $2, $3, statement_timestamp(), statement_timestamp())"
        " ON CONFLICT (name) DO UPDATE SET incarnation = $2, described = $3, started = statement_timestamp(),"
        " seen = statement_timestamp(), stopped = false",
        host.name(), incarnation, Blob{described});
  });
}

absl::StatusOr<bool> PostgresqlHosts::Beat(absl::string_view name, int64_t incarnation) {
  return pool_->DoAndReturn<bool>([&](Connection& connection) -> absl::StatusOr<bool> {
    absl::StatusOr<Rows> beaten = connection.Query(
        "UPDATE hosts SET seen = statement_timestamp(), stopped = false WHERE name = $1 AND incarnation = $2"
        " RETURNING draining",
        name, incarnation);
    if (!beaten.ok()) return beaten.status();
    if (*beaten->Step()) return beaten->Bool(0);
    absl::StatusOr<Rows> other = connection.Query("SELECT 1 FROM hosts WHERE name = $1", name);
    if (!other.ok()) return other.status();
    return *other->Step() ? OtherStart(name) : NoHost(name);
  });
}

absl::Status PostgresqlHosts::Leave(absl::string_view name, int64_t incarnation) {
  return pool_->Do([&](Connection& connection) {
    return connection.Execute("UPDATE hosts SET stopped = true WHERE name = $1 AND incarnation = $2", name,
                              incarnation);
  });
}

absl::StatusOr<std::vector<v1::Host>> PostgresqlHosts::List() {
  return pool_->DoAndReturn<std::vector<v1::Host>>(
      [&](Connection& connection) -> absl::StatusOr<std::vector<v1::Host>> {
        absl::StatusOr<Rows> rows =
            connection.Query(absl::StrCat("SELECT", kHostColumns, "FROM hosts ORDER BY name LIMIT 10000"));
        if (!rows.ok()) return rows.status();
        std::vector<v1::Host> hosts;
        while (*rows->Step()) {
          absl::StatusOr<v1::Host> host = ReadHost(*rows);
          if (!host.ok()) return host.status();
          hosts.push_back(*std::move(host));
        }
        return hosts;
      });
}

absl::StatusOr<v1::Host> PostgresqlHosts::SetDraining(absl::string_view name, bool draining) {
  return pool_->DoAndReturn<v1::Host>([&](Connection& connection) {
    return TheHost(
        name, connection.Query(absl::StrCat("UPDATE hosts SET draining = $2 WHERE name = $1 RETURNING", kHostColumns),
                               name, draining));
  });
}

absl::StatusOr<v1::Host> PostgresqlHosts::Forget(absl::string_view name) {
  return pool_->TransactAndReturn<v1::Host>([&](Connection& connection) -> absl::StatusOr<v1::Host> {
    absl::StatusOr<v1::Host> host = TheHost(
        name, connection.Query(absl::StrCat("SELECT", kHostColumns, "FROM hosts WHERE name = $1 FOR UPDATE"), name));
    if (!host.ok()) return host;
    if (absl::Status status = CheckForgettable(*host); !status.ok()) return status;
    if (absl::Status gone = connection.Execute("DELETE FROM hosts WHERE name = $1", name); !gone.ok()) return gone;
    return host;
  });
}

}  // namespace attune::store::postgresql
