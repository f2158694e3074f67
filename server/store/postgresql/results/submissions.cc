#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/postgresql/results/recorded.h"
#include "server/store/postgresql/sql.h"
#include "server/store/read_page.h"
#include "server/store/rows/result_columns.h"
#include "server/store/submission_rules.h"

namespace attune::store::postgresql {
namespace {

std::string SelectSubmissions(absl::string_view where) {
  return absl::StrCat("SELECT", kSubmissionColumns, "FROM submissions WHERE ", where);
}

// `lock`: what stands behind the condition.
absl::StatusOr<v1::Submission> Find(Connection& connection, absl::string_view name, absl::string_view lock) {
  absl::StatusOr<Rows> rows =
      Sql(SelectSubmissions(absl::StrCat("id = ?", lock)), IdOf(kSubmissions, name)).Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return NoSubmission(name);
  return ReadSubmission(*rows);
}

// Submissions go one after the other: iterations are counted, and contents that nobody has any more are removed.
absl::Status LockSubmissions(Connection& connection) {
  return connection.Execute("SELECT pg_advisory_xact_lock(1635087472, hashtext(current_schema()))");
}

// Of a principal's own so many stay, and what is adopted.
absl::Status ForgetOldest(Connection& connection, const std::string& principal) {
  const int adopted = v1::Submission::STATE_ADOPTED;
  const absl::StatusOr<int64_t> removed =
      Sql("DELETE FROM submissions WHERE principal = ? AND state <> ? AND id <= (SELECT id FROM submissions"
          " WHERE principal = ? AND state <> ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
          principal, adopted, principal, adopted, kMostSubmissions)
          .Change(connection);
  if (!removed.ok() || *removed == 0) return removed.status();
  return connection.Execute(
      "DELETE FROM submission_files WHERE NOT EXISTS"
      " (SELECT 1 FROM submissions WHERE submissions.content_hash = submission_files.content_hash)");
}

absl::StatusOr<int64_t> Insert(Connection& connection, const v1::Submission& submission) {
  if (absl::Status status = LockSubmissions(connection); !status.ok()) return status;
  // The operation may have been interrupted after this, and goes on under another lease.
  const absl::StatusOr<std::optional<int64_t>> former =
      Sql("SELECT id FROM submissions WHERE operation = ?", submission.operation()).FindInt(connection);
  if (!former.ok()) return former.status();
  if (former->has_value()) return **former;
  const std::string files = FilesOf(submission);
  absl::Status status = Sql("INSERT INTO submission_files (content_hash, message) VALUES (?, ?) ON CONFLICT DO NOTHING",
                            submission.content_hash(), Blob{files})
                            .Execute(connection);
  if (!status.ok()) return status;
  const std::string body = BodyOf(submission);
  const absl::StatusOr<std::optional<int64_t>> id =
      Sql("INSERT INTO submissions (content_hash, principal, loop, iteration, state, operation, message)"
          " VALUES (?, ?, ?, CASE WHEN ? = '' THEN 0 ELSE"
          " 1 + (SELECT coalesce(max(iteration), 0) FROM submissions WHERE principal = ? AND loop = ?) END, ?, ?, ?)"
          " RETURNING id",
          submission.content_hash(), submission.principal(), submission.loop(), submission.loop(),
          submission.principal(), submission.loop(), static_cast<int>(submission.state()), submission.operation(),
          Blob{body})
          .FindInt(connection);
  if (!id.ok()) return id.status();
  if (!id->has_value()) return absl::InternalError("a new submission has no row");
  if (status = ForgetOldest(connection, submission.principal()); !status.ok()) return status;
  return **id;
}

}  // namespace

absl::StatusOr<v1::Submission> RecordSubmission(Connection& connection, const v1::Submission& submission,
                                                const JobWrite& write, MadeRow& made) {
  if (absl::Status status = CheckSubmission(submission); !status.ok()) return status;
  const absl::StatusOr<int64_t> id = Once(connection, write, made, [&] { return Insert(connection, submission); });
  if (!id.ok()) return id.status();
  return Find(connection, absl::StrCat(kSubmissions, *id), "");
}

absl::StatusOr<v1::Submission> GetSubmission(Connection& connection, absl::string_view name) {
  absl::StatusOr<v1::Submission> submission = Find(connection, name, "");
  if (!submission.ok()) return submission;
  absl::StatusOr<Rows> rows =
      Sql("SELECT message FROM submission_files WHERE content_hash = ?", submission->content_hash()).Query(connection);
  if (!rows.ok()) return rows.status();
  if (!*rows->Step()) return NoSubmission(name);  // forgotten since
  if (absl::Status status = AddFiles(rows->Bytes(0), *submission); !status.ok()) return status;
  return submission;
}

absl::StatusOr<Page<v1::Submission>> ListSubmissions(Connection& connection, const SubmissionFilter& filter,
                                                     int page_size, absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  const int size = PageSize(page_size);
  Sql sql(SelectSubmissions("true"));
  if (after->has_value()) sql.Add(" AND id < ?", (*after)->id);
  if (!filter.principal.empty()) sql.Add(" AND principal = ?", filter.principal);
  if (!filter.loop.empty()) sql.Add(" AND loop = ?", filter.loop);
  if (!filter.content_hash.empty()) sql.Add(" AND content_hash = ?", filter.content_hash);
  if (filter.state.has_value()) sql.Add(" AND state = ?", static_cast<int>(*filter.state));
  sql.Add(" ORDER BY id DESC LIMIT ?", size + 1);
  absl::StatusOr<Rows> rows = sql.Query(connection);
  if (!rows.ok()) return rows.status();
  return ReadPage<v1::Submission>(*rows, "submissions", listing, size, ReadSubmission<Rows>,
                                  [](const Rows& row) { return PageKey{.id = row.Int(0)}; });
}

absl::StatusOr<v1::Submission> MoveSubmission(Connection& connection, absl::string_view name,
                                              const SubmissionMove& move) {
  absl::StatusOr<v1::Submission> submission = Find(connection, name, " FOR UPDATE");
  if (!submission.ok()) return submission;
  if (absl::Status status = CheckMove(*submission, move); !status.ok()) return status;
  if (submission->state() == move.to) return submission;
  submission->set_state_principal(move.principal);
  *submission->mutable_state_time() = Now();
  const std::string body = BodyOf(*submission);
  absl::Status status = Sql("UPDATE submissions SET state = ?, message = ? WHERE id = ?", static_cast<int>(move.to),
                            Blob{body}, IdOf(kSubmissions, name))
                            .Execute(connection);
  if (!status.ok()) return status;
  submission->set_state(move.to);
  return submission;
}

}  // namespace attune::store::postgresql
