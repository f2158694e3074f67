// Answers of GetBest kept in the process, so that asking again costs a hash look-up and no call.
#ifndef ATTUNE_CLIENT_CPP_ANSWER_CACHE_H_
#define ATTUNE_CLIENT_CPP_ANSWER_CACHE_H_

#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"

namespace attune {

using AnswerPtr = std::shared_ptr<const v1::GetBestResponse>;

// What an answer is kept under, without owning the text.
struct AnswerKeyView {
  const Problem& problem;
  absl::string_view device_id;
  v1::Policy policy;
  v1::Objective objective = v1::OBJECTIVE_UNSPECIFIED;  // never TIME, which is the same
};

// The same, owning it.
struct AnswerKey {
  explicit AnswerKey(const AnswerKeyView& view)
      : problem(view.problem), device_id(view.device_id), policy(view.policy), objective(view.objective) {}
  // NOLINTNEXTLINE(google-explicit-constructor): so that a map of keys can be searched with either.
  operator AnswerKeyView() const { return {problem, device_id, policy, objective}; }

  Problem problem;
  std::string device_id;
  v1::Policy policy;
  v1::Objective objective;
};

struct AnswerKeyHash {
  using is_transparent = void;
  size_t operator()(const AnswerKeyView& key) const;
};
struct AnswerKeyEqual {
  using is_transparent = void;
  bool operator()(const AnswerKeyView& a, const AnswerKeyView& b) const;
};

// Thread-safe: look-ups share a lock. Bounded: when full, the answer that has been there longest makes room.
class AnswerCache {
 public:
  struct Entry {
    AnswerPtr answer;
    bool with_artifact = false;  // was asked for with its artifact
    absl::Time fetched;
    absl::Time expires;
  };

  explicit AnswerCache(size_t capacity) : capacity_(capacity) {}

  // An answer that has not expired at `now` and, if `need_artifact`, was fetched with its artifact; null otherwise.
  AnswerPtr Find(const AnswerKeyView& key, bool need_artifact, absl::Time now) const;
  // The entry, expired or not; `answer` is null when there is none.
  Entry FindEvenExpired(const AnswerKeyView& key) const;
  void Put(const AnswerKeyView& key, Entry entry);
  void Clear();
  size_t size() const;

 private:
  const size_t capacity_;
  mutable std::shared_mutex mutex_;  // guards what follows
  absl::flat_hash_map<AnswerKey, Entry, AnswerKeyHash, AnswerKeyEqual> entries_;
};

}  // namespace attune

#endif  // ATTUNE_CLIENT_CPP_ANSWER_CACHE_H_
