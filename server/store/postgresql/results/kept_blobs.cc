#include "server/store/postgresql/results/kept_blobs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/base/sha256.h"
#include "server/store/blob_rules.h"
#include "server/store/postgresql/sql.h"
#include "server/store/read_page.h"
#include "server/store/rows/result_columns.h"

namespace attune::store::postgresql {
namespace {

constexpr int kBlobsAtATime = 100;

// Rows that have gone.
struct RemovedRows {
  int64_t blobs = 0;
  int64_t bytes = 0;
  int64_t space = 0;  // by BlobSpace
  std::set<std::string> contents;
};

// Behind another condition.
Sql ConditionsOf(const BlobFilter& filter) {
  Sql sql("");
  if (!filter.principal.empty()) sql.Add(" AND principal = ?", filter.principal);
  if (!filter.cache.empty()) sql.Add(" AND namespace = ?", filter.cache);
  if (!filter.key.empty()) sql.Add(" AND key = ?", filter.key);
  if (!filter.reader.empty()) sql.Add(" AND (shared OR principal = ?)", filter.reader);
  return sql;
}

Sql NameConditions(const v1::Blob& blob) {
  return Sql("principal = ? AND namespace = ? AND key = ? AND file = ?", blob.principal(), blob.namespace_(),
             blob.key(), blob.file());
}

std::string SelectBlobs() { return absl::StrCat("SELECT", kBlobColumns, "FROM blobs WHERE "); }

// One at a time, until the transaction ends.
absl::Status Lock(Connection& connection) { return connection.Execute("SELECT space FROM blob_space FOR UPDATE"); }

absl::StatusOr<int64_t> Space(Connection& connection) {
  const absl::StatusOr<std::optional<int64_t>> space = Sql("SELECT space FROM blob_space").FindInt(connection);
  if (!space.ok()) return space.status();
  return space->value_or(0);
}

// Those for which `where` is true.
absl::Status Remove(Connection& connection, const Sql& where, RemovedRows& removed) {
  absl::StatusOr<Rows> rows =
      Sql("DELETE FROM blobs WHERE ").Add(where).Add(" RETURNING bytes, sha256").Query(connection);
  if (!rows.ok()) return rows.status();
  while (*rows->Step()) {
    ++removed.blobs;
    removed.bytes += rows->Int(0);
    removed.space += BlobSpace(rows->Int(0));
    removed.contents.emplace(rows->Text(1));
  }
  return absl::OkStatus();
}

// Those used least recently, until at least so much space was freed.
absl::Status RemoveOldest(Connection& connection, int64_t space, RemovedRows& removed) {
  const int64_t enough = removed.space + space;
  while (removed.space < enough) {
    absl::StatusOr<Rows> rows =
        Sql("SELECT id, bytes FROM blobs ORDER BY used_ns, id LIMIT ?", kBlobsAtATime).Query(connection);
    if (!rows.ok()) return rows.status();
    if (rows->size() == 0) return absl::OkStatus();
    std::vector<int64_t> ids;
    for (int64_t freed = removed.space; freed < enough && *rows->Step(); freed += BlobSpace(rows->Int(1))) {
      ids.push_back(rows->Int(0));
    }
    absl::Status status = Remove(connection, Sql("id = ANY (?::text::bigint[])", ArrayOf(ids)), removed);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Contents that no row names any more.
absl::Status RemoveContents(Connection& connection, const RemovedRows& removed) {
  if (removed.contents.empty()) return absl::OkStatus();
  return Sql("DELETE FROM blob_contents WHERE sha256 = ANY (?::text::text[])"
             " AND NOT EXISTS (SELECT 1 FROM blobs WHERE blobs.sha256 = blob_contents.sha256)",
             ArrayOf(std::vector<std::string>(removed.contents.begin(), removed.contents.end())))
      .Execute(connection);
}

absl::Status AddSpace(Connection& connection, int64_t space) {
  return Sql("UPDATE blob_space SET space = space + ?", space).Execute(connection);
}

absl::Status Insert(Connection& connection, const v1::Blob& blob, absl::string_view data, int64_t used_ns) {
  absl::Status status = Sql("INSERT INTO blob_contents (sha256, data) VALUES (?, ?)"
                            " ON CONFLICT (sha256) DO UPDATE SET data = excluded.data",
                            blob.sha256(), Blob{data})
                            .Execute(connection);
  if (!status.ok()) return status;
  return Sql("INSERT INTO blobs (principal, namespace, key, file, shared, sha256, bytes, put_ns, used_ns)"
             " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
             blob.principal(), blob.namespace_(), blob.key(), blob.file(), blob.shared(), blob.sha256(), blob.bytes(),
             ToNanoseconds(blob.create_time()), used_ns)
      .Execute(connection);
}

// In the place of one of the same name, and of those used least recently.
absl::Status PutRows(Connection& connection, const v1::Blob& blob, absl::string_view data, int64_t used_ns,
                     int64_t limit) {
  RemovedRows removed;
  if (absl::Status status = Remove(connection, NameConditions(blob), removed); !status.ok()) return status;
  const absl::StatusOr<int64_t> before = Space(connection);
  if (!before.ok()) return before.status();
  const int64_t space = BlobSpace(blob.bytes());
  // Before it is there itself, so that it is never what has to go.
  absl::Status status = RemoveOldest(connection, *before - removed.space + space - limit, removed);
  if (!status.ok()) return status;
  if (status = Insert(connection, blob, data, used_ns); !status.ok()) return status;
  if (status = RemoveContents(connection, removed); !status.ok()) return status;
  return AddSpace(connection, space - removed.space);
}

}  // namespace

absl::StatusOr<v1::Blob> KeptBlobs::Put(const v1::Blob& blob) {
  if (absl::Status status = CheckBlob(blob, limit_); !status.ok()) return status;
  v1::Blob kept = blob;
  kept.clear_data();
  kept.set_bytes(static_cast<int64_t>(blob.data().size()));
  kept.set_sha256(Sha256(blob.data()));
  *kept.mutable_create_time() = Now();
  const int64_t used_ns = NextUse();
  const Uses uses = TakeUses();
  absl::Status put = pool_.Transact([&](Connection& connection) -> absl::Status {
    if (absl::Status status = Lock(connection); !status.ok()) return status;
    if (absl::Status status = KeepUses(connection, uses); !status.ok()) return status;
    return PutRows(connection, kept, blob.data(), used_ns, limit_);
  });
  if (!put.ok()) return put;
  *kept.mutable_use_time() = FromNanoseconds(used_ns);
  return kept;
}

absl::StatusOr<std::vector<v1::Blob>> KeptBlobs::Find(const BlobGroup& group) {
  return pool_.DoAndReturn<std::vector<v1::Blob>>([&](Connection& connection) -> absl::StatusOr<std::vector<v1::Blob>> {
    std::vector<v1::Blob> found;
    for (const std::string& file : group.files) {
      v1::Blob name;
      name.set_principal(group.principal);
      name.set_namespace_(group.cache);
      name.set_key(group.key);
      name.set_file(file);
      absl::StatusOr<Rows> rows = Sql(SelectBlobs()).Add(NameConditions(name)).Query(connection);
      if (!rows.ok()) return rows.status();
      if (!*rows->Step()) continue;
      absl::StatusOr<v1::Blob> blob = ReadBlobRow(*rows);
      if (!blob.ok()) return blob.status();
      found.push_back(*std::move(blob));
    }
    return found;
  });
}

absl::StatusOr<std::string> KeptBlobs::Read(const v1::Blob& blob) {
  int64_t id = 0;
  absl::StatusOr<std::string> data =
      pool_.DoAndReturn<std::string>([&](Connection& connection) -> absl::StatusOr<std::string> {
        absl::StatusOr<Rows> rows =
            Sql("SELECT id, data FROM blobs JOIN blob_contents USING (sha256) WHERE sha256 = ? AND ", blob.sha256())
                .Add(NameConditions(blob))
                .Query(connection);
        if (!rows.ok()) return rows.status();
        if (!*rows->Step()) return NoBlob(blob);
        id = rows->Int(0);
        return std::string(rows->Bytes(1));
      });
  if (!data.ok()) return data;
  if (Sha256(*data) != blob.sha256()) {
    LogWarning("a blob is damaged; it is one no more until it is put again", {{"sha256", blob.sha256()}});
    return NoBlob(blob);
  }
  const int64_t used_ns = NextUse();
  const std::lock_guard<std::mutex> lock(mutex_);
  uses_[id] = used_ns;
  return data;
}

absl::StatusOr<Page<v1::Blob>> KeptBlobs::List(const BlobFilter& filter, int page_size, absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  Sql sql(absl::StrCat(SelectBlobs(), "true"));
  if (after->has_value()) sql.Add(" AND id < ?", (*after)->id);
  sql.Add(ConditionsOf(filter)).Add(" ORDER BY id DESC LIMIT ?", size + 1);
  return pool_.DoAndReturn<Page<v1::Blob>>([&](Connection& connection) -> absl::StatusOr<Page<v1::Blob>> {
    absl::StatusOr<Rows> rows = sql.Query(connection);
    if (!rows.ok()) return rows.status();
    return ReadPage<v1::Blob>(*rows, "blobs", listing, size, ReadBlobRow<Rows>,
                              [](const Rows& row) { return PageKey{.id = row.Int(0)}; });
  });
}

absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> KeptBlobs::Totals(const BlobFilter& filter) {
  using Total = v1::ListBlobsResponse::Total;
  return pool_.DoAndReturn<std::vector<Total>>([&](Connection& connection) -> absl::StatusOr<std::vector<Total>> {
    absl::StatusOr<Rows> rows =
        Sql("SELECT principal, namespace, count(*), sum(bytes)::bigint FROM blobs WHERE true")
            .Add(ConditionsOf(filter))
            .Add(
                " GROUP BY principal, namespace"
                " ORDER BY sum(bytes) DESC, principal COLLATE \"C\", namespace COLLATE \"C\" LIMIT ?",
                kMostBlobTotals)
            .Query(connection);
    if (!rows.ok()) return rows.status();
    std::vector<Total> totals;
    while (*rows->Step()) {
      Total& total = totals.emplace_back();
      total.set_principal(std::string(rows->Text(0)));
      total.set_namespace_(std::string(rows->Text(1)));
      total.set_blobs(rows->Int(2));
      total.set_bytes(rows->Int(3));
    }
    return totals;
  });
}

absl::StatusOr<RemovedBlobs> KeptBlobs::Delete(const BlobFilter& filter) {
  return pool_.TransactAndReturn<RemovedBlobs>([&](Connection& connection) -> absl::StatusOr<RemovedBlobs> {
    RemovedRows removed;
    if (absl::Status status = Lock(connection); !status.ok()) return status;
    absl::Status status = Remove(connection, Sql("true").Add(ConditionsOf(filter)), removed);
    if (!status.ok()) return status;
    if (status = RemoveContents(connection, removed); !status.ok()) return status;
    if (status = AddSpace(connection, -removed.space); !status.ok()) return status;
    return RemovedBlobs{removed.blobs, removed.bytes};
  });
}

absl::Status KeptBlobs::WriteUses() {
  const Uses uses = TakeUses();
  if (uses.empty()) return absl::OkStatus();
  return pool_.Transact([&](Connection& connection) -> absl::Status {
    if (absl::Status status = Lock(connection); !status.ok()) return status;
    return KeepUses(connection, uses);
  });
}

absl::Status KeptBlobs::KeepUses(Connection& connection, const Uses& uses) {
  std::vector<int64_t> ids;
  std::vector<int64_t> times;
  for (const auto& [id, used_ns] : uses) {
    ids.push_back(id);
    times.push_back(used_ns);
  }
  if (ids.empty()) return absl::OkStatus();
  return Sql("UPDATE blobs SET used_ns = greatest(blobs.used_ns, used.used_ns)"
             " FROM unnest(?::text::bigint[], ?::text::bigint[]) AS used (id, used_ns) WHERE blobs.id = used.id",
             ArrayOf(ids), ArrayOf(times))
      .Execute(connection);
}

int64_t KeptBlobs::NextUse() {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_use_ = std::max(last_use_ + 1, absl::GetCurrentTimeNanos());
  return last_use_;
}

KeptBlobs::Uses KeptBlobs::TakeUses() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(uses_, Uses());
}

}  // namespace attune::store::postgresql
