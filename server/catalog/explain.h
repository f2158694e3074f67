// What bounds a trial, in words with figures.
#ifndef ATTUNE_SERVER_CATALOG_EXPLAIN_H_
#define ATTUNE_SERVER_CATALOG_EXPLAIN_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/host.h"
#include "server/catalog/moves.h"
#include "server/store/store.h"

namespace attune::catalog {

// What weighs most comes first. `floor_us` 0: not known. Advice names a parameter only where `moves`, the trial's own,
// do not speak against it.
v1::ExplainResponse Explain(const v1::Trial& trial, const v1::Device& device, double floor_us, const Moves& moves);

// Of a stored trial, "trials/123", with the floor that its own job measured and what is known of its neighbours under
// the same dependencies; NotFound.
absl::StatusOr<v1::ExplainResponse> ExplainStored(absl::string_view trial, store::Store& store, const Host& host);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_EXPLAIN_H_
