// What programs are told of an error beside its code: the service passes it on (service/errors.h).
#ifndef ATTUNE_SERVER_BASE_REASON_H_
#define ATTUNE_SERVER_BASE_REASON_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attune {

inline constexpr char kReasonUrl[] = "attune.dev/reason";
// Every other payload whose url begins so is metadata of the ErrorInfo, under the rest of the url.
inline constexpr char kMetadataUrl[] = "attune.dev/";
// Which other problems it is true of, too: "kv 1024..2047, batch 4..7".
inline constexpr char kHoldsForUrl[] = "attune.dev/holds_for";

// Whom the call is from.
inline constexpr char kPrincipalUrl[] = "attune.dev/principal";
// Which quota an error with the reason QUOTA_EXCEEDED is about, and what it is.
inline constexpr char kQuotaUrl[] = "attune.dev/quota";
inline constexpr char kQuotaLimitUrl[] = "attune.dev/limit";
// When it is worth trying again, as absl::FormatDuration has it; the service makes a google.rpc.RetryInfo of it.
inline constexpr char kRetryDelayUrl[] = "attune.dev/retry_delay";

inline void SetRetryDelay(absl::Duration delay, absl::Status& status) {
  status.SetPayload(kRetryDelayUrl, absl::Cord(absl::FormatDuration(delay)));
}

// Attaches a finer reason, UPPER_SNAKE_CASE; OK stays OK.
inline absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!status.ok()) status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_REASON_H_
