// The answer for another length or batch than the one that a server was asked for (attune.v1.Domain).
#ifndef ATTUNE_CLIENT_CPP_ANSWER_AT_H_
#define ATTUNE_CLIENT_CPP_ANSWER_AT_H_

#include "absl/status/statusor.h"
#include "client/cpp/answer_cache.h"
#include "proto/attune/problem.h"

namespace attune {

// The answer to `wanted` that `answer`, to `answered`, comes to: without code and ranges, and NEAREST where `answered`
// was tuned. NotFound when `wanted` is in none of its domains, InvalidArgument when that domain does not fit its
// recipe.
absl::StatusOr<AnswerPtr> AnswerAt(const v1::GetBestResponse& answer, const Problem& answered, const Problem& wanted);

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_ANSWER_AT_H_
