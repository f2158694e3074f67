#include "server/catalog/answers/answers.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::catalog {
namespace {

constexpr size_t kMostDerived = 4096;  // answers of some 5 KB kept for problems without an incumbent

}  // namespace

AnswerPtr Answers::Find(const ResultKey& key) const {
  const std::string text = ToText(key);
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto it = answers_.find(text);
  return it == answers_.end() ? nullptr : it->second;
}

void Answers::Put(const ResultKey& key, AnswerPtr answer) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (answer == nullptr) {
    answers_.erase(ToText(key));
  } else {
    answers_[ToText(key)] = std::move(answer);
  }
  derived_.clear();
  ++puts_;
  ++version_;
}

void Answers::Assign(std::unordered_map<std::string, AnswerPtr> all) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  answers_ = std::move(all);
  derived_.clear();
  ++puts_;
  ++version_;
}

AnswerPtr Answers::Derived(const ResultKey& key, absl::string_view name, absl::FunctionRef<AnswerPtr()> make) {
  const std::string text = absl::StrCat(ToText(key), "\n", name);
  uint64_t puts = 0;
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    if (const auto it = derived_.find(text); it != derived_.end()) return it->second;
    puts = puts_;
  }
  AnswerPtr answer = make();
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (puts != puts_) return answer;  // made of what has changed since
  if (derived_.size() >= kMostDerived) derived_.clear();
  return derived_[text] = std::move(answer);
}

std::vector<std::string> Answers::Keys() const {
  std::vector<std::string> keys;
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  keys.reserve(answers_.size());
  for (const auto& [key, answer] : answers_) keys.push_back(key);
  return keys;
}

std::vector<AnswerPtr> Answers::Of(absl::string_view device_class, v1::Policy policy) const {
  std::vector<AnswerPtr> some;
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  for (const auto& [key, answer] : answers_) {
    if (answer->device_class == device_class && answer->policy == policy) some.push_back(answer);
  }
  return some;
}

}  // namespace attune::catalog
