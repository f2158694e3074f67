// What the compiler's report says of the code of an answer that nobody tuned.
#ifndef ATTUNE_SERVER_CATALOG_ANSWER_CODE_H_
#define ATTUNE_SERVER_CATALOG_ANSWER_CODE_H_

#include <string>

#include "server/catalog/answers/answer.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::catalog {

// Why nothing is launched of what an answer's compile key gave: it does not compile, or the report stands against it
// (InfeasibleReason). Empty: it may be launched.
std::string WhyUseless(const store::CompiledArtifact& report, const Answer& answer, const Host& host);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_ANSWER_CODE_H_
