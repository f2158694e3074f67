// What an incumbent or a baseline is for.
#ifndef ATTUNE_SERVER_CATALOG_RESULT_KEY_H_
#define ATTUNE_SERVER_CATALOG_RESULT_KEY_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "attune/v1/service.pb.h"
#include "server/catalog/subject.h"

namespace attune::catalog {

struct ResultKey {
  std::string problem_text;
  std::string device_id;
  v1::Policy policy = kDefaultPolicy;
};

// Of an Incumbent or a Baseline.
template <typename Result>
ResultKey KeyOf(const Result& result) {
  return {result.problem_text(), result.device_id(), result.policy()};
}
inline ResultKey KeyOf(const Subject& subject) { return {subject.problem_text, subject.device.id(), subject.policy}; }

// Equal for equal keys alone.
inline std::string ToText(const ResultKey& key) {
  return absl::StrCat(key.problem_text, "\n", key.device_id, "\n", static_cast<int>(key.policy));
}

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_RESULT_KEY_H_
