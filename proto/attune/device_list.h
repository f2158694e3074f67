// A device_id that names one card, or several of them: "cuda:0,cuda:1".
#ifndef ATTUNE_PROTO_ATTUNE_DEVICE_LIST_H_
#define ATTUNE_PROTO_ATTUNE_DEVICE_LIST_H_

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace attune {

inline bool NamesSeveralCards(absl::string_view device_id) { return absl::StrContains(device_id, ','); }

inline std::vector<std::string> CardsIn(absl::string_view device_id) { return absl::StrSplit(device_id, ','); }
inline std::string ListOfCards(const std::vector<std::string>& cards) { return absl::StrJoin(cards, ","); }

}  // namespace attune

#endif  // ATTUNE_PROTO_ATTUNE_DEVICE_LIST_H_
