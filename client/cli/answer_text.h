// An answer of GetBest as people read it.
#ifndef ATTUNE_CLIENT_CLI_ANSWER_TEXT_H_
#define ATTUNE_CLIENT_CLI_ANSWER_TEXT_H_

#include "attune/v1/service.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

// Variant, provenance, figures, baselines, then the launch recipe.
void PrintAnswer(Session& session, const v1::GetBestResponse& answer);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_ANSWER_TEXT_H_
