#include "server/catalog/answers/given_answer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attune::catalog {
namespace {

// Which card timed it, that is none of those asked about but of their class.
std::string WordsOf(const store::Instance& timed_by, const v1::Device& asked, const Host& host) {
  const std::string another = absl::StrCat("another ", asked.model());
  if (const v1::Device* const sister = FindCard(host, timed_by); sister != nullptr) {
    return absl::StrCat(sister->id(), ", another ", sister->model());
  }
  if (host.fleet == nullptr) return absl::StrCat(another, ", which is no longer here");
  const std::vector<std::string> names = host.fleet->NamesOf(timed_by, asked.fingerprint());
  if (names.empty()) return absl::StrCat(another, ", which no live host has");
  return names.size() == 1 ? names.front() : absl::StrCat(timed_by.id, " of another host");
}

}  // namespace

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
  const std::string& detail = response.provenance_detail();
  response.set_provenance_detail(
      absl::StrCat(detail, detail.empty() ? "" : "; ", "timed on ", WordsOf(timed_by, *cards.front(), host)));
  return response;
}

}  // namespace attune::catalog
