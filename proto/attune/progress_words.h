// What programs on both sides of the protocol look for in OperationProgress.message.
#ifndef ATTUNE_PROTO_ATTUNE_PROGRESS_WORDS_H_
#define ATTUNE_PROTO_ATTUNE_PROGRESS_WORDS_H_

#include "absl/strings/string_view.h"

namespace attune {

// How the message of an operation begins that goes on when the store answers again, or of which nothing is heard until
// then. What is wrong with the store follows.
inline constexpr absl::string_view kWaitingForStore = "waiting for the store: ";

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_PROGRESS_WORDS_H_
