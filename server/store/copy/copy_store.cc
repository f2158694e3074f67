#include "server/store/copy/copy_store.h"

#include <cstddef>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/store/artifact_files.h"
#include "server/store/copy/compare.h"
#include "server/store/copy/postgresql_side.h"
#include "server/store/copy/side.h"
#include "server/store/copy/sqlite_side.h"
#include "server/store/copy/tables.h"
#include "server/store/postgresql/connection.h"

namespace attune::store {
namespace copy {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(5);

// Rows but those of blobs whose bytes are gone.
class KeptRows : public RowReader {
 public:
  KeptRows(RowReader* rows, const std::vector<Column>& columns, const std::set<std::string>& gone)
      : rows_(*rows), gone_(gone) {
    while (column_ < columns.size() && columns[column_].name != "sha256") ++column_;
  }

  absl::StatusOr<bool> Next(Row& row) override {
    for (;;) {
      absl::StatusOr<bool> found = rows_.Next(row);
      if (!found.ok() || !*found || gone_.empty()) return found;
      if (!gone_.contains(std::get<std::string>(row[column_]))) return true;
    }
  }

 private:
  RowReader& rows_;
  const std::set<std::string>& gone_;
  size_t column_ = 0;
};

class Copy {
 public:
  Copy(Side& from, EmptySide& to, std::vector<Table> tables, const CopyOptions& options)
      : from_(from), to_(to), tables_(std::move(tables)), options_(options) {}

  absl::StatusOr<CopyReport> Run() {
    report_.from = from_.where();
    report_.to = to_.where();
    for (const Contents contents : {Contents::kCode, Contents::kBlobs}) {
      if (absl::Status status = CopyContents(contents); !status.ok()) return status;
    }
    for (const Table& table : tables_) {
      if (absl::Status status = CopyRows(table); !status.ok()) return status;
    }
    for (const Table& table : tables_) {
      if (absl::Status status = CompareTable(table); !status.ok()) return status;
    }
    for (const Contents contents : {Contents::kCode, Contents::kBlobs}) {
      if (absl::Status status = CompareContents(contents); !status.ok()) return status;
    }
    if (absl::Status status = to_.Commit(); !status.ok()) return status;
    return std::move(report_);
  }

 private:
  static absl::string_view WordOf(Contents contents) {
    return contents == Contents::kCode ? "compiled code" : "contents of blobs";
  }
  std::set<std::string>& GoneOf(Contents contents) { return contents == Contents::kCode ? gone_code_ : gone_blobs_; }

  absl::Status CopyContents(Contents contents) {
    const absl::StatusOr<std::vector<Content>> list = from_.List(contents);
    if (!list.ok()) return list.status();
    int64_t copied = 0;
    for (const Content& content : *list) {
      const absl::StatusOr<std::string> bytes = from_.ReadContent(contents, content.sha256);
      if (absl::IsNotFound(bytes.status()) || absl::IsDataLoss(bytes.status())) {
        report_.left_out.emplace_back(bytes.status().message());
        GoneOf(contents).insert(content.sha256);
        continue;
      }
      if (!bytes.ok()) return bytes.status();
      if (absl::Status status = to_.WriteContent(contents, content, *bytes); !status.ok()) return status;
      ++copied;
      report_.bytes += static_cast<int64_t>(bytes->size());
      SayIfLongSilent(WordOf(contents), "copied", copied, static_cast<int64_t>(list->size()));
    }
    (contents == Contents::kCode ? report_.artifacts : report_.blobs) = copied;
    Say(WordOf(contents), "copied", copied);
    return absl::OkStatus();
  }

  absl::Status CopyRows(const Table& table) {
    const absl::StatusOr<int64_t> all = from_.Count(table, to_.database());
    if (!all.ok()) return all.status();
    const absl::StatusOr<std::unique_ptr<RowReader>> source = from_.Read(table, to_.database());
    if (!source.ok()) return source.status();
    KeptRows kept(source->get(), ColumnsOf(table, to_.database()), GoneIn(table));
    std::vector<Row> rows;
    int64_t copied = 0;
    for (bool more = true; more;) {
      rows.clear();
      while (more && rows.size() < static_cast<size_t>(table.rows_at_a_time)) {
        Row row;
        const absl::StatusOr<bool> found = kept.Next(row);
        if (!found.ok()) return found.status();
        more = *found;
        if (more) rows.push_back(std::move(row));
      }
      if (absl::Status status = to_.Write(table, rows); !status.ok()) return status;
      copied += static_cast<int64_t>(rows.size());
      SayIfLongSilent(table.name, "copied", copied, *all);
    }
    Say(table.name, "copied", copied);
    return absl::OkStatus();
  }

  absl::Status CompareTable(const Table& table) {
    const absl::StatusOr<std::unique_ptr<RowReader>> source = from_.Read(table, to_.database());
    if (!source.ok()) return source.status();
    const absl::StatusOr<std::unique_ptr<RowReader>> target = to_.Read(table, to_.database());
    if (!target.ok()) return target.status();
    const std::vector<Column> columns = ColumnsOf(table, to_.database());
    KeptRows kept(source->get(), columns, GoneIn(table));
    const absl::StatusOr<int64_t> same = CompareRows(table, columns, {from_.where(), kept}, {to_.where(), **target});
    if (!same.ok()) return same.status();
    report_.rows.emplace_back(table.name, *same);
    Say(table.name, "compared", *same);
    return absl::OkStatus();
  }

  // Bytes with the same hash are the same: the target's are read and hashed. When they were used is the same when it is
  // to ArtifactFiles' resolution, which either store has.
  absl::Status CompareContents(Contents contents) {
    const absl::StatusOr<std::vector<Content>> source = from_.List(contents);
    if (!source.ok()) return source.status();
    const absl::StatusOr<std::vector<Content>> target = to_.List(contents);
    if (!target.ok()) return target.status();
    std::map<std::string, int64_t> used;
    for (const Content& content : *target) used[content.sha256] = content.used_ns;
    int64_t same = 0;
    for (const Content& content : *source) {
      if (GoneOf(contents).contains(content.sha256)) continue;
      const absl::Status read = to_.ReadContent(contents, content.sha256).status();
      if (!read.ok()) {
        return absl::Status(absl::IsNotFound(read) ? absl::StatusCode::kDataLoss : read.code(),
                            absl::StrCat("the copy is not the same: ", WordOf(contents), ": ", read.message()));
      }
      const absl::Time from = absl::FromUnixNanos(content.used_ns);
      const absl::Time to = absl::FromUnixNanos(used[content.sha256]);
      if (absl::AbsDuration(from - to) > ArtifactFiles::kUseResolution) {
        return absl::DataLossError(absl::StrCat("the copy is not the same: ", WordOf(contents), ": ", content.sha256,
                                                " was last used ", absl::FormatTime(from, absl::UTCTimeZone()), " in ",
                                                from_.where(), " and ", absl::FormatTime(to, absl::UTCTimeZone()),
                                                " in ", to_.where()));
      }
      ++same;
    }
    Say(WordOf(contents), "compared", same);
    return absl::OkStatus();
  }

  const std::set<std::string>& GoneIn(const Table& table) const {
    return table.name == "blobs" ? gone_blobs_ : no_blobs_;
  }

  void Say(absl::string_view what, absl::string_view done, int64_t number) {
    options_.progress(absl::StrCat(done, " ", what, ": ", number));
    said_ = absl::Now();
  }
  void SayIfLongSilent(absl::string_view what, absl::string_view done, int64_t number, int64_t all) {
    if (absl::Now() - said_ < kBetweenLines) return;
    options_.progress(absl::StrCat(done, " ", what, ": ", number, " of ", all));
    said_ = absl::Now();
  }

  Side& from_;
  EmptySide& to_;
  const std::vector<Table> tables_;
  const CopyOptions& options_;
  CopyReport report_;
  std::set<std::string> gone_code_;
  std::set<std::string> gone_blobs_;
  const std::set<std::string> no_blobs_;
  absl::Time said_ = absl::Now();
};

absl::StatusOr<CopyReport> ToPostgresql(const CopyOptions& options) {
  const absl::StatusOr<std::unique_ptr<Side>> from = OpenSqlite(options.from.directory);
  if (!from.ok()) return from.status();
  const absl::StatusOr<std::unique_ptr<EmptySide>> to = MakePostgresql(options.to.database);
  if (!to.ok()) return to.status();
  const absl::StatusOr<std::string> home = options.home();
  if (!home.ok()) return home.status();
  absl::StatusOr<CopyReport> report = Copy(**from, **to, Tables(*home), options).Run();
  if (report.ok()) report->home = *home;
  return report;
}

absl::StatusOr<CopyReport> ToSqlite(const CopyOptions& options) {
  const absl::StatusOr<OpenedPostgresql> from = OpenPostgresql(options.from.database);
  if (!from.ok()) return from.status();
  const absl::StatusOr<std::unique_ptr<EmptySide>> to = MakeSqlite(options.to.directory);
  if (!to.ok()) return to.status();
  absl::StatusOr<CopyReport> report = Copy(*from->side, **to, Tables(""), options).Run();
  if (report.ok()) report->live_hosts = from->live_hosts;
  return report;
}

}  // namespace
}  // namespace copy

StoreAddress ParseStoreAddress(absl::string_view text) {
  if (postgresql::IsUrl(text)) return {.database = std::string(text)};
  return {.directory = std::string(text)};
}

absl::Status CheckAddresses(const StoreAddress& from, const StoreAddress& to) {
  if (from.database.empty() && to.database.empty()) {
    return absl::InvalidArgumentError(
        "both stores are SQLite's; one must be on PostgreSQL, postgresql://... (attune backup and attuned --restore "
        "copy SQLite's)");
  }
  if (!from.database.empty() && !to.database.empty()) {
    return absl::InvalidArgumentError(
        "both stores are on PostgreSQL; one must be SQLite's (pg_dump and pg_restore copy PostgreSQL's)");
  }
  return postgresql::CheckTarget(from.database.empty() ? to.database : from.database);
}

absl::StatusOr<CopyReport> CopyStore(const CopyOptions& options) {
  if (absl::Status status = CheckAddresses(options.from, options.to); !status.ok()) return status;
  return options.from.database.empty() ? copy::ToPostgresql(options) : copy::ToSqlite(options);
}

}  // namespace attune::store
