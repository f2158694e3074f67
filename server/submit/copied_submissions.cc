#include "server/submit/copied_submissions.h"

#include <utility>

#include "server/base/log.h"
#include "server/submit/package.h"

namespace attune::submit {

void AddCopied(const served::v1::Copy& copy, const std::string& library, catalog::Host& host) {
  for (const v1::Submission& submission : copy.adopted()) {
    auto family = FamilyOf(submission.files(), library);
    if (family.ok()) {
      host.families.Add(*std::move(family));
    } else {
      LogError("an adopted submission is no kernel family any more",
               {{"submission", submission.name()}, {"reason", family.status().message()}});
    }
  }
}

absl::Status RemoveWithdrawn(const served::v1::Copy& copy, store::Store& store, catalog::Host& host) {
  for (const v1::Submission& submission : copy.adopted()) {
    // Of the same content another may be adopted, too.
    const auto adopted = store.ListSubmissions(
        {.content_hash = submission.content_hash(), .state = v1::Submission::STATE_ADOPTED}, 1, "");
    if (!adopted.ok()) return adopted.status();
    if (adopted->items.empty()) host.families.Remove(submission.family());
  }
  return absl::OkStatus();
}

}  // namespace attune::submit
