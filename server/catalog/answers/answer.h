// A look-up's answer, ready but for its artifact's bytes.
#ifndef ATTUNE_SERVER_CATALOG_ANSWER_H_
#define ATTUNE_SERVER_CATALOG_ANSWER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/catalog/policy.h"
#include "server/space/space.h"
#include "server/store/store.h"

namespace attune::catalog {

struct Answer;
using AnswerPtr = std::shared_ptr<const Answer>;

struct Answer {
  v1::GetBestResponse response;
  std::string device_class;  // of the cards it is for; empty when no card of it is here
  // The card that the timing is of, and its class then; nothing when nothing was timed.
  struct TimedBy {
    store::Instance card;
    std::string device_class;
  };
  std::optional<TimedBy> timed_by;
  Problem problem;
  v1::Policy policy = kDefaultPolicy;
  std::optional<space::Variant> variant;  // as today's families have it
  std::string compile_key;                // of `variant` for `problem`
  // The compiler that made the answer's code from the sources as they are today; empty when there is no such code.
  std::string toolchain;
  v1::Resources resources;
  // Of an incumbent, by other objectives than TIME: null where it is itself the best; no entry where nobody has asked.
  struct Alternative {
    v1::Objective objective;
    AnswerPtr answer;
  };
  std::vector<Alternative> alternatives;
};

// Behind what the answer's provenance says of itself already; nothing where `more` is empty.
inline void AddDetail(absl::string_view more, v1::GetBestResponse& response) {
  if (more.empty()) return;
  const std::string& detail = response.provenance_detail();
  response.set_provenance_detail(absl::StrCat(detail, detail.empty() ? "" : "; ", more));
}

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_ANSWER_H_
