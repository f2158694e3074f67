// The answer that an incumbent in the store gives: EXACT, TIE or STALE.
#ifndef ATTUNE_SERVER_CATALOG_STORED_ANSWER_H_
#define ATTUNE_SERVER_CATALOG_STORED_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/answers/answer.h"
#include "server/catalog/host.h"

namespace attune::catalog {

// With its ties and alternatives, and the baselines of every card that it is for. `incumbent` with its whole trial, as
// the store has it, and all baselines of its problem, newest first. InvalidArgument for a problem that only earlier
// versions took.
absl::StatusOr<AnswerPtr> MakeStoredAnswer(const v1::Incumbent& incumbent, const std::vector<v1::Baseline>& baselines,
                                           const Host& host);

// Of an answer given to who asks for the best by `objective`, which is not one of its alternatives: why it is the
// fastest. A sentence.
std::string WhyTheFastest(const Answer& answer, v1::Objective objective);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_STORED_ANSWER_H_
