// Adopted submissions of a copy (catalog/copy/served_copy.h), while the store is away and when it is back.
#ifndef ATTUNE_SERVER_SUBMIT_COPIED_SUBMISSIONS_H_
#define ATTUNE_SERVER_SUBMIT_COPIED_SUBMISSIONS_H_

#include <string>

#include "absl/status/status.h"
#include "attune/served/v1/served.pb.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::submit {

// Makes them families of `host`, as Submissions::AddAdopted does those of the store. One that is none any more is
// logged.
void AddCopied(const served::v1::Copy& copy, const std::string& library, catalog::Host& host);

// Those that the store has not as adopted any more are no families of `host` from now on.
absl::Status RemoveWithdrawn(const served::v1::Copy& copy, store::Store& store, catalog::Host& host);

}  // namespace attune::submit

#endif  // ATTUNE_SERVER_SUBMIT_COPIED_SUBMISSIONS_H_
