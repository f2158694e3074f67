#include "server/store/sqlite/blobs/blob_rows.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/blob_rules.h"
#include "server/store/read_page.h"
#include "server/store/rows/result_columns.h"

namespace attune::store::sqlite {
namespace {

std::string SelectBlobs(absl::string_view where) {
  return absl::StrCat("SELECT", kBlobColumns, "FROM blobs WHERE ", where);
}

// Conditions of a filter, after another one.
std::string BlobConditions(const BlobFilter& filter) {
  return absl::StrCat(filter.principal.empty() ? "" : " AND principal = ?",
                      filter.cache.empty() ? "" : " AND namespace = ?", filter.key.empty() ? "" : " AND key = ?",
                      filter.reader.empty() ? "" : " AND (shared = 1 OR principal = ?)");
}

void BindFilter(const BlobFilter& filter, Statement& statement) {
  for (const std::string* text : {&filter.principal, &filter.cache, &filter.key, &filter.reader}) {
    if (!text->empty()) statement.Bind(*text);
  }
}

struct FoundRow {
  int64_t id = 0;
  int64_t bytes = 0;
  std::string sha256;
};

// `select` gives id, bytes and sha256.
absl::StatusOr<std::vector<FoundRow>> Rows(Statement& select) {
  std::vector<FoundRow> rows;
  for (;;) {
    const absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return rows;
    rows.push_back({select.Int(0), select.Int(1), std::string(select.Text(2))});
  }
}

absl::Status Remove(Connection& connection, const FoundRow& row, RemovedRows& removed) {
  absl::Status status = Statement(connection, "DELETE FROM blobs WHERE id = ?").Bind(row.id).Run();
  if (!status.ok()) return status;
  ++removed.blobs;
  removed.bytes += row.bytes;
  removed.space += BlobSpace(row.bytes);
  removed.files.insert(row.sha256);
  return absl::OkStatus();
}

absl::Status RemoveAll(Connection& connection, Statement& select, RemovedRows& removed) {
  const absl::StatusOr<std::vector<FoundRow>> rows = Rows(select);
  if (!rows.ok()) return rows.status();
  for (const FoundRow& row : *rows) {
    if (absl::Status status = Remove(connection, row, removed); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InsertBlob(Connection& connection, const v1::Blob& blob, int64_t used_ns) {
  return Statement(connection,
                   "INSERT INTO blobs (principal, namespace, key, file, shared, sha256, bytes, put_ns, used_ns)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .Bind(blob.principal(), blob.namespace_(), blob.key(), blob.file(), blob.shared() ? 1 : 0, blob.sha256(),
            blob.bytes(), ToNanoseconds(blob.create_time()), used_ns)
      .Run();
}

absl::StatusOr<std::vector<v1::Blob>> FindBlobs(Connection& connection, const BlobGroup& group) {
  std::vector<v1::Blob> found;
  for (const std::string& file : group.files) {
    Statement select(connection, SelectBlobs("principal = ? AND namespace = ? AND key = ? AND file = ?"));
    const absl::StatusOr<bool> row = select.Bind(group.principal, group.cache, group.key, file).Step();
    if (!row.ok()) return row.status();
    if (!*row) continue;
    absl::StatusOr<v1::Blob> blob = ReadBlobRow(select);
    if (!blob.ok()) return blob.status();
    found.push_back(*std::move(blob));
  }
  return found;
}

absl::StatusOr<int64_t> IdOfBlob(Connection& connection, const v1::Blob& blob) {
  const absl::StatusOr<std::optional<int64_t>> id =
      Statement(connection,
                "SELECT id FROM blobs WHERE principal = ?1 AND namespace = ?2 AND key = ?3 AND file = ?4 AND"
                " (?5 = '' OR sha256 = ?5)")
          .Bind(blob.principal(), blob.namespace_(), blob.key(), blob.file(), blob.sha256())
          .FindInt();
  if (!id.ok()) return id.status();
  return id->value_or(0);
}

absl::StatusOr<Page<v1::Blob>> ListBlobs(Connection& connection, const BlobFilter& filter, int page_size,
                                         absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  Statement select(connection,
                   absl::StrCat(SelectBlobs("id < ?"), BlobConditions(filter), " ORDER BY id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  BindFilter(filter, select);
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Blob>(select, "blobs", listing, size, ReadBlobRow<Statement>,
                            [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

absl::StatusOr<std::vector<v1::ListBlobsResponse::Total>> BlobTotals(Connection& connection, const BlobFilter& filter) {
  Statement select(connection, absl::StrCat("SELECT principal, namespace, count(*), sum(bytes) FROM blobs WHERE 1",
                                            BlobConditions(filter), " GROUP BY principal, namespace",
                                            " ORDER BY sum(bytes) DESC, principal, namespace LIMIT ?"));
  BindFilter(filter, select);
  select.Bind(kMostBlobTotals);
  std::vector<v1::ListBlobsResponse::Total> totals;
  for (;;) {
    const absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return totals;
    v1::ListBlobsResponse::Total& total = totals.emplace_back();
    total.set_principal(std::string(select.Text(0)));
    total.set_namespace_(std::string(select.Text(1)));
    total.set_blobs(select.Int(2));
    total.set_bytes(select.Int(3));
  }
}

absl::Status RemoveBlob(Connection& connection, int64_t id, RemovedRows& removed) {
  Statement select(connection, "SELECT id, bytes, sha256 FROM blobs WHERE id = ?");
  select.Bind(id);
  return RemoveAll(connection, select, removed);
}

absl::Status RemoveBlobs(Connection& connection, const BlobFilter& filter, RemovedRows& removed) {
  Statement select(connection, absl::StrCat("SELECT id, bytes, sha256 FROM blobs WHERE 1", BlobConditions(filter)));
  BindFilter(filter, select);
  return RemoveAll(connection, select, removed);
}

absl::Status RemoveOldestBlobs(Connection& connection, int64_t space, RemovedRows& removed) {
  constexpr int kBatch = 100;
  int64_t left = space;
  while (left > 0) {
    Statement select(connection, "SELECT id, bytes, sha256 FROM blobs ORDER BY used_ns LIMIT ?");
    select.Bind(kBatch);
    const absl::StatusOr<std::vector<FoundRow>> rows = Rows(select);
    if (!rows.ok()) return rows.status();
    if (rows->empty()) return absl::OkStatus();
    for (const FoundRow& row : *rows) {
      if (left <= 0) break;
      if (absl::Status status = Remove(connection, row, removed); !status.ok()) return status;
      left -= BlobSpace(row.bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status RemoveBlobsWithoutFile(Connection& connection, const std::set<std::string>& files, RemovedRows& removed) {
  Statement select(connection, "SELECT id, bytes, sha256 FROM blobs");
  const absl::StatusOr<std::vector<FoundRow>> rows = Rows(select);
  if (!rows.ok()) return rows.status();
  for (const FoundRow& row : *rows) {
    if (files.contains(row.sha256)) continue;
    if (absl::Status status = Remove(connection, row, removed); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WriteBlobUses(Connection& connection, const BlobUses& uses) {
  for (const auto& [id, used_ns] : uses) {
    absl::Status status = Statement(connection, "UPDATE blobs SET used_ns = ? WHERE id = ?").Bind(used_ns, id).Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IsFileOfBlob(Connection& connection, absl::string_view sha256) {
  const absl::StatusOr<std::optional<int64_t>> id =
      Statement(connection, "SELECT id FROM blobs WHERE sha256 = ? LIMIT 1").Bind(sha256).FindInt();
  if (!id.ok()) return id.status();
  return id->has_value();
}

absl::StatusOr<int64_t> SpaceOfBlobs(Connection& connection) {
  int64_t space = 0;
  Statement select(connection, "SELECT bytes FROM blobs");
  for (;;) {
    const absl::StatusOr<bool> row = select.Step();
    if (!row.ok()) return row.status();
    if (!*row) return space;
    space += BlobSpace(select.Int(0));
  }
}

absl::StatusOr<int64_t> LastUseOfBlobs(Connection& connection) {
  const absl::StatusOr<std::optional<int64_t>> last =
      Statement(connection, "SELECT used_ns FROM blobs ORDER BY used_ns DESC LIMIT 1").FindInt();
  if (!last.ok()) return last.status();
  return last->value_or(0);
}

}  // namespace attune::store::sqlite
