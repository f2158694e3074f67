// An answer's artifact: the bytes that it was measured with, or those of the same code compiled again since.
#ifndef ATTUNE_SERVER_CATALOG_ANSWER_ARTIFACT_H_
#define ATTUNE_SERVER_CATALOG_ANSWER_ARTIFACT_H_

#include "absl/status/status.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/answers/answer.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::catalog {

// Adds hash and bytes, and that the artifact is READY; neither where the answer was never compiled, or what its compile
// gave is useless. DataLoss when the bytes are lost.
absl::Status AddArtifact(const Answer& answer, store::Store& store, const Host& host, v1::GetBestResponse& response);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_ANSWER_ARTIFACT_H_
