// An answer as it is given to who asks: for one card of the class that it is for.
#ifndef ATTUNE_SERVER_CATALOG_GIVEN_ANSWER_H_
#define ATTUNE_SERVER_CATALOG_GIVEN_ANSWER_H_

#include <vector>

#include "attune/v1/service.pb.h"
#include "server/catalog/answers/answer.h"
#include "server/catalog/host.h"

namespace attune::catalog {

// `cards`: those that were asked about, of one class; none when no such device is here. The response names the one that
// timed the answer if it is among them, else the first, and says which card of the class it was then.
v1::GetBestResponse GiveTo(const std::vector<const v1::Device*>& cards, const Answer& answer, const Host& host);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_GIVEN_ANSWER_H_
