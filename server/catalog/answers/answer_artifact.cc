#include "server/catalog/answers/answer_artifact.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/catalog/answers/answer_code.h"

namespace attune::catalog {
namespace {

bool Lost(const absl::Status& status) { return absl::IsNotFound(status) || absl::IsDataLoss(status); }

// The hash of what the answer's sources were compiled to last; empty when they have not been, or are others by now, or
// nothing is launched of it.
absl::StatusOr<std::string> CompiledNow(const Answer& answer, store::Store& store, const Host& host) {
  if (answer.compile_key.empty() || answer.toolchain.empty()) return "";
  const absl::StatusOr<store::CompiledArtifact> found = store.FindArtifact(answer.compile_key, answer.toolchain);
  if (absl::IsNotFound(found.status())) return "";
  if (!found.ok()) return found.status();
  return WhyUseless(*found, answer, host).empty() ? found->sha256 : "";
}

}  // namespace

absl::Status AddArtifact(const Answer& answer, store::Store& store, const Host& host, v1::GetBestResponse& response) {
  if (response.artifact_sha256().empty()) {
    absl::StatusOr<std::string> compiled = CompiledNow(answer, store, host);
    if (!compiled.ok()) return compiled.status();
    response.set_artifact_sha256(*std::move(compiled));
  }
  if (response.artifact_sha256().empty()) return absl::OkStatus();
  absl::StatusOr<std::string> artifact = store.ReadArtifact(response.artifact_sha256());
  if (Lost(artifact.status())) {
    // Compiled again since: the bytes of another compile may differ, the code is the same.
    const absl::StatusOr<std::string> again = CompiledNow(answer, store, host);
    if (!again.ok()) return again.status();
    if (!again->empty() && *again != response.artifact_sha256()) {
      response.set_artifact_sha256(*again);
      artifact = store.ReadArtifact(*again);
    }
  }
  if (Lost(artifact.status())) {
    return absl::DataLossError(
        absl::StrCat(artifact.status().message(), "; tune ", ToText(answer.problem), " again: that compiles it again"));
  }
  if (!artifact.ok()) return artifact.status();
  response.set_artifact(*std::move(artifact));
  response.set_artifact_state(v1::ARTIFACT_STATE_READY);
  return absl::OkStatus();
}

}  // namespace attune::catalog
