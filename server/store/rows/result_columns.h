// Retimings, submissions, compiled artifacts and blobs as columns and messages, and back. `Row` as in trial_columns.h.
#ifndef ATTUNE_SERVER_STORE_ROWS_RESULT_COLUMNS_H_
#define ATTUNE_SERVER_STORE_ROWS_RESULT_COLUMNS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attune/v1/blob.pb.h"
#include "attune/v1/retiming.pb.h"
#include "attune/v1/submission.pb.h"
#include "attune/worker/v1/worker.pb.h"
#include "server/store/damaged_rows.h"
#include "server/store/rows/names.h"
#include "server/store/store.h"

namespace attune::store {

// The message of what has no column of its own.
std::string BodyOf(const v1::Retiming& retiming);
std::string BodyOf(const v1::Submission& submission);
std::string FilesOf(const v1::Submission& submission);
std::string EntriesOf(const CompiledArtifact& artifact);

// Of tables of these names joined.
inline constexpr absl::string_view kRetimingColumns =
    " retimings.id, problems.text, devices.name, uuids.name, device_classes.fingerprint, policy, finish_ns, message ";

template <typename Row>
absl::StatusOr<v1::Retiming> ReadRetiming(const Row& row) {
  v1::Retiming retiming;
  if (absl::Status status = Parse(row.Bytes(7), "retiming", retiming); !status.ok()) return status;
  retiming.set_name(absl::StrCat(kRetimings, row.Int(0)));
  retiming.set_problem_text(std::string(row.Text(1)));
  retiming.set_device_id(std::string(row.Text(2)));
  if (!row.IsNull(3)) retiming.set_device_uuid(std::string(row.Text(3)));
  retiming.mutable_dependencies()->set_device_fingerprint(std::string(row.Text(4)));
  retiming.set_policy(static_cast<v1::Policy>(row.Int(5)));
  *retiming.mutable_finish_time() = FromNanoseconds(row.Int(6));
  retiming.set_count(1);
  return retiming;
}

inline constexpr absl::string_view kSubmissionColumns = " id, state, iteration, content_hash, message ";

// Without files.
template <typename Row>
absl::StatusOr<v1::Submission> ReadSubmission(const Row& row) {
  v1::Submission submission;
  if (absl::Status status = Parse(row.Bytes(4), "submission", submission); !status.ok()) return status;
  submission.set_name(absl::StrCat(kSubmissions, row.Int(0)));
  submission.set_state(static_cast<v1::Submission::State>(row.Int(1)));
  submission.set_iteration(static_cast<int32_t>(row.Int(2)));
  submission.set_content_hash(std::string(row.Text(3)));
  return submission;
}
// `message` is FilesOf.
absl::Status AddFiles(absl::string_view message, v1::Submission& submission);

inline constexpr absl::string_view kArtifactColumns = " verdict, log, sha256, entries, compile_ms ";

template <typename Row>
absl::StatusOr<CompiledArtifact> ReadArtifactRow(const Row& row, absl::string_view compile_key,
                                                 absl::string_view toolchain) {
  worker::v1::CompileResponse entries;
  if (absl::Status status = Parse(row.Bytes(3), "list of entries", entries); !status.ok()) return status;
  CompiledArtifact artifact;
  artifact.compile_key = std::string(compile_key);
  artifact.toolchain = std::string(toolchain);
  artifact.verdict = static_cast<v1::Verdict>(row.Int(0));
  artifact.log = std::string(row.Text(1));
  artifact.sha256 = std::string(row.Text(2));
  artifact.entries.assign(entries.entries().begin(), entries.entries().end());
  artifact.compile_ms = row.Real(4);
  return artifact;
}
absl::Status NothingCompiled(absl::string_view compile_key, absl::string_view toolchain);

inline constexpr absl::string_view kBlobColumns =
    " id, principal, namespace, key, file, shared, sha256, bytes, put_ns, used_ns ";

template <typename Row>
absl::StatusOr<v1::Blob> ReadBlobRow(const Row& row) {
  v1::Blob blob;
  blob.set_principal(std::string(row.Text(1)));
  blob.set_namespace_(std::string(row.Text(2)));
  blob.set_key(std::string(row.Text(3)));
  blob.set_file(std::string(row.Text(4)));
  blob.set_shared(row.Int(5) != 0);
  blob.set_sha256(std::string(row.Text(6)));
  blob.set_bytes(row.Int(7));
  *blob.mutable_create_time() = FromNanoseconds(row.Int(8));
  *blob.mutable_use_time() = FromNanoseconds(row.Int(9));
  return blob;
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ROWS_RESULT_COLUMNS_H_
