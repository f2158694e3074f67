#include "server/catalog/answers/given_answer.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace attune::catalog {

v1::GetBestResponse GiveTo(const std::vector<const v1::Device*>& cards, const Answer& answer, const Host& host) {
  v1::GetBestResponse response = answer.response;
  if (cards.empty()) return response;
  response.set_device_id(cards.front()->id());
  if (!answer.timed_by.has_value()) return response;
  const store::Instance& timed_by = answer.timed_by->card;
  const auto own =
      std::find_if(cards.begin(), cards.end(), [&](const v1::Device* card) { return IsOf(timed_by, *card); });
  if (own != cards.end()) {
    response.set_device_id((*own)->id());
    return response;
  }
  // One of another class makes the answer STALE, which says so.
  if (answer.timed_by->device_class != cards.front()->fingerprint()) return response;
  const v1::Device* const sister = FindCard(host, timed_by);
  const std::string& detail = response.provenance_detail();
  response.set_provenance_detail(
      absl::StrCat(detail, detail.empty() ? "" : "; ", "timed on ",
                   sister != nullptr ? absl::StrCat(sister->id(), ", another ", sister->model())
                                     : absl::StrCat("another ", cards.front()->model(), ", which is no longer here")));
  return response;
}

}  // namespace attune::catalog
