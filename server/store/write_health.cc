#include "server/store/write_health.h"

#include "server/base/log.h"

namespace attune::store {

bool WriteHealth::IsTrouble(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsPermissionDenied(status) || absl::IsUnavailable(status) ||
         absl::IsDataLoss(status) || absl::IsInternal(status);
}

void WriteHealth::Note(const absl::Status& status) {
  if (status.ok() && broken_.exchange(false)) LogInfo("the store writes again");
  if (IsTrouble(status) && !broken_.exchange(true)) {
    LogError(absl::IsResourceExhausted(status) ? "disk full, the store cannot write" : "the store cannot write",
             {{"error", status.message()}});
  }
}

}  // namespace attune::store
