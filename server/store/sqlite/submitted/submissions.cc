#include "server/store/sqlite/submitted/submissions.h"

#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/read_page.h"
#include "server/store/rows/result_columns.h"
#include "server/store/sqlite/job_writes.h"
#include "server/store/submission_rules.h"

namespace attune::store::sqlite {
namespace {

std::string SelectSubmissions(absl::string_view where) {
  return absl::StrCat("SELECT", kSubmissionColumns, "FROM submissions WHERE ", where);
}

absl::StatusOr<v1::Submission> Find(Connection& connection, absl::string_view name) {
  const absl::Status missing = NoSubmission(name);
  const std::optional<int64_t> id = IdOf(kSubmissions, name);
  if (!id.has_value()) return missing;
  Statement select(connection, SelectSubmissions("id = ?"));
  absl::StatusOr<bool> row = select.Bind(*id).Step();
  if (!row.ok()) return row.status();
  if (!*row) return missing;
  return ReadSubmission(select);
}

// Contents are kept once, however often they are submitted.
absl::Status KeepFiles(Connection& connection, const v1::Submission& submission) {
  const std::string message = FilesOf(submission);
  return Statement(connection, "INSERT OR IGNORE INTO submission_files (content_hash, message) VALUES (?, ?)")
      .Bind(submission.content_hash(), Blob{message})
      .Run();
}

absl::StatusOr<int64_t> NextIteration(Connection& connection, const v1::Submission& submission) {
  if (submission.loop().empty()) return 0;
  const absl::StatusOr<std::optional<int64_t>> last =
      Statement(connection, "SELECT max(iteration) FROM submissions WHERE principal = ? AND loop = ?")
          .Bind(submission.principal(), submission.loop())
          .FindInt();
  if (!last.ok()) return last.status();
  return last->value_or(0) + 1;
}

// Of a principal's own so many stay, and what is adopted.
absl::Status ForgetOldest(Connection& connection, const std::string& principal) {
  absl::Status status =
      Statement(connection,
                "DELETE FROM submissions WHERE principal = ?1 AND state <> ?2 AND id <= (SELECT id FROM submissions"
                " WHERE principal = ?1 AND state <> ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)")
          .Bind(principal, static_cast<int>(v1::Submission::STATE_ADOPTED), kMostSubmissions)
          .Run();
  if (!status.ok()) return status;
  return Statement(connection,
                   "DELETE FROM submission_files WHERE content_hash NOT IN (SELECT content_hash FROM submissions)")
      .Run();
}

absl::StatusOr<int64_t> Insert(Connection& connection, const v1::Submission& submission) {
  // The operation may have been interrupted after this, and goes on under another lease.
  const absl::StatusOr<std::optional<int64_t>> former =
      Statement(connection, "SELECT id FROM submissions WHERE operation = ?").Bind(submission.operation()).FindInt();
  if (!former.ok()) return former.status();
  if (former->has_value()) return **former;
  if (absl::Status status = KeepFiles(connection, submission); !status.ok()) return status;
  const absl::StatusOr<int64_t> iteration = NextIteration(connection, submission);
  if (!iteration.ok()) return iteration;
  const std::string message = BodyOf(submission);
  absl::Status status =
      Statement(connection,
                "INSERT INTO submissions (content_hash, principal, loop, iteration, state, operation, message)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)")
          .Bind(submission.content_hash(), submission.principal(), submission.loop(), *iteration,
                static_cast<int>(submission.state()), submission.operation(), Blob{message})
          .Run();
  if (!status.ok()) return status;
  const int64_t id = connection.LastInsertId();
  if (status = ForgetOldest(connection, submission.principal()); !status.ok()) return status;
  return id;
}

}  // namespace

absl::StatusOr<v1::Submission> RecordSubmission(Connection& connection, const v1::Submission& submission,
                                                const JobWrite& write) {
  if (absl::Status status = CheckSubmission(submission); !status.ok()) return status;
  const absl::StatusOr<int64_t> id = Once(connection, write, [&] { return Insert(connection, submission); });
  if (!id.ok()) return id.status();
  return Find(connection, absl::StrCat(kSubmissions, *id));
}

absl::StatusOr<v1::Submission> GetSubmission(Connection& connection, absl::string_view name) {
  absl::StatusOr<v1::Submission> submission = Find(connection, name);
  if (!submission.ok()) return submission;
  Statement select(connection, "SELECT message FROM submission_files WHERE content_hash = ?");
  const absl::StatusOr<bool> row = select.Bind(submission->content_hash()).Step();
  if (!row.ok()) return row.status();
  if (!*row) return absl::DataLossError(absl::StrCat("the files of ", submission->name(), " are missing"));
  if (absl::Status status = AddFiles(select.Bytes(0), *submission); !status.ok()) return status;
  return submission;
}

absl::StatusOr<Page<v1::Submission>> ListSubmissions(Connection& connection, const SubmissionFilter& filter,
                                                     int page_size, absl::string_view page_token) {
  const std::string listing = NameOf(filter);
  const absl::StatusOr<std::optional<PageKey>> after = DecodePageToken(listing, page_token);
  if (!after.ok()) return after.status();
  Statement select(connection,
                   absl::StrCat(SelectSubmissions("id < ?"), filter.principal.empty() ? "" : " AND principal = ?",
                                filter.loop.empty() ? "" : " AND loop = ?",
                                filter.content_hash.empty() ? "" : " AND content_hash = ?",
                                filter.state.has_value() ? " AND state = ?" : "", " ORDER BY id DESC LIMIT ?"));
  select.Bind(after->has_value() ? (*after)->id : std::numeric_limits<int64_t>::max());
  if (!filter.principal.empty()) select.Bind(filter.principal);
  if (!filter.loop.empty()) select.Bind(filter.loop);
  if (!filter.content_hash.empty()) select.Bind(filter.content_hash);
  if (filter.state.has_value()) select.Bind(static_cast<int>(*filter.state));
  const int size = PageSize(page_size);
  select.Bind(size + 1);
  return ReadPage<v1::Submission>(select, "submissions", listing, size, ReadSubmission<Statement>,
                                  [](const Statement& row) { return PageKey{.id = row.Int(0)}; });
}

absl::StatusOr<v1::Submission> MoveSubmission(Connection& connection, absl::string_view name,
                                              const SubmissionMove& move) {
  absl::StatusOr<v1::Submission> submission = Find(connection, name);
  if (!submission.ok()) return submission;
  if (absl::Status status = CheckMove(*submission, move); !status.ok()) return status;
  if (submission->state() == move.to) return submission;
  submission->set_state_principal(move.principal);
  *submission->mutable_state_time() = Now();
  const std::string message = BodyOf(*submission);
  absl::Status status = Statement(connection, "UPDATE submissions SET state = ?, message = ? WHERE id = ?")
                            .Bind(static_cast<int>(move.to), Blob{message}, *IdOf(kSubmissions, name))
                            .Run();
  if (!status.ok()) return status;
  submission->set_state(move.to);
  return submission;
}

}  // namespace attune::store::sqlite
