// Trials that did not end OK, made as if they had never been, so that the next job of their problems tries them again.
#ifndef ATTUNE_SERVER_CATALOG_RETRY_TRIALS_H_
#define ATTUNE_SERVER_CATALOG_RETRY_TRIALS_H_

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::catalog {

// The trials that `filter` names. Where one failed to compile, its code is compiled again too, for every problem that
// shares it; codes for devices that are not here stay as they are.
absl::StatusOr<v1::RetryTrialsResponse> RetryTrials(const v1::TrialFilter& filter, store::Store& store,
                                                    const Host& host);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_RETRY_TRIALS_H_
