// What the daemon's log says of changes of what is served.
#ifndef ATTUNE_SERVER_CATALOG_RESULT_LOG_H_
#define ATTUNE_SERVER_CATALOG_RESULT_LOG_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"

namespace attune::catalog {

void LogPromotion(const std::optional<v1::Incumbent>& before, const v1::Incumbent& now);
// `now`: what is served again.
void LogRollBack(const v1::Incumbent& now, absl::string_view why);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_RESULT_LOG_H_
