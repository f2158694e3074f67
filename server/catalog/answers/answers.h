// Answers in memory: one for each incumbent, and those derived from them for other problems.
#ifndef ATTUNE_SERVER_CATALOG_ANSWERS_H_
#define ATTUNE_SERVER_CATALOG_ANSWERS_H_

#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/catalog/answers/answer.h"
#include "server/catalog/result_key.h"

namespace attune::catalog {

// Thread-safe; look-ups take a shared lock.
class Answers {
 public:
  AnswerPtr Find(const ResultKey& key) const;  // null when there is none
  // Null: there is none any more. Derived answers are dropped, whatever they came from.
  void Put(const ResultKey& key, AnswerPtr answer);
  // These, by their keys' texts, and no others from now on; as after Put.
  void Assign(std::unordered_map<std::string, AnswerPtr> all);
  // What `make` gives, made once and kept until the next Put; null too. `name` tells answers for one key apart.
  AnswerPtr Derived(const ResultKey& key, absl::string_view name, absl::FunctionRef<AnswerPtr()> make);
  std::vector<std::string> Keys() const;  // of incumbents' answers, as texts
  // Those of incumbents for a class and a policy.
  std::vector<AnswerPtr> Of(absl::string_view device_class, v1::Policy policy) const;

  // Grows whenever an answer may have changed.
  uint64_t version() const { return version_; }
  void Touch() { ++version_; }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, AnswerPtr> answers_;  // by the key's text
  std::unordered_map<std::string, AnswerPtr> derived_;
  uint64_t puts_ = 0;
  std::atomic<uint64_t> version_ = 0;
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_ANSWERS_H_
