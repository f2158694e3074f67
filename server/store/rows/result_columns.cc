#include "server/store/rows/result_columns.h"

#include <utility>

namespace attune::store {

std::string BodyOf(const v1::Retiming& retiming) {
  v1::Retiming rest = retiming;
  rest.clear_name();
  rest.clear_problem_text();
  rest.clear_device_id();
  rest.clear_device_uuid();
  rest.clear_policy();
  rest.clear_finish_time();
  rest.clear_count();
  rest.mutable_dependencies()->clear_device_fingerprint();
  return rest.SerializeAsString();
}

std::string BodyOf(const v1::Submission& submission) {
  v1::Submission rest = submission;
  rest.clear_name();
  rest.clear_content_hash();
  rest.clear_iteration();
  rest.clear_state();
  rest.clear_files();
  return rest.SerializeAsString();
}

std::string FilesOf(const v1::Submission& submission) {
  v1::Submission files;
  *files.mutable_files() = submission.files();
  return files.SerializeAsString();
}

absl::Status AddFiles(absl::string_view message, v1::Submission& submission) {
  v1::Submission files;
  if (absl::Status status = Parse(message, "submission's files", files); !status.ok()) return status;
  *submission.mutable_files() = std::move(*files.mutable_files());
  return absl::OkStatus();
}

std::string EntriesOf(const CompiledArtifact& artifact) {
  worker::v1::CompileResponse entries;
  entries.mutable_entries()->Add(artifact.entries.begin(), artifact.entries.end());
  return entries.SerializeAsString();
}

absl::Status NothingCompiled(absl::string_view compile_key, absl::string_view toolchain) {
  return absl::NotFoundError(absl::StrCat("nothing was compiled for key ", compile_key, " by ", toolchain));
}

}  // namespace attune::store
