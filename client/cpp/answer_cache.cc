#include "client/cpp/answer_cache.h"

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"

namespace attune {

size_t AnswerKeyHash::operator()(const AnswerKeyView& key) const {
  const Problem& p = key.problem;
  return absl::HashOf(p.batch, p.heads_q, p.heads_kv, p.seq_q, p.seq_kv, p.head_dim, static_cast<int>(p.dtype),
                      static_cast<int>(p.mask), p.window, p.softcap, static_cast<int>(p.layout), p.lse, p.sinks,
                      p.varlen, p.page_size, static_cast<int>(p.kv_dtype), key.device_id, static_cast<int>(key.policy),
                      static_cast<int>(key.objective));
}

bool AnswerKeyEqual::operator()(const AnswerKeyView& a, const AnswerKeyView& b) const {
  return a.problem == b.problem && a.policy == b.policy && a.objective == b.objective && a.device_id == b.device_id;
}

AnswerPtr AnswerCache::Find(const AnswerKeyView& key, bool need_artifact, absl::Time now) const {
  const std::shared_lock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end() || now >= it->second.expires || (need_artifact && !it->second.with_artifact)) {
    return nullptr;
  }
  return it->second.answer;
}

AnswerCache::Entry AnswerCache::FindEvenExpired(const AnswerKeyView& key) const {
  const std::shared_lock lock(mutex_);
  const auto it = entries_.find(key);
  return it == entries_.end() ? Entry() : it->second;
}

void AnswerCache::Put(const AnswerKeyView& key, Entry entry) {
  if (capacity_ == 0) return;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= capacity_ && !entries_.contains(key)) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const auto& a, const auto& b) { return a.second.fetched < b.second.fetched; }));
  }
  entries_.insert_or_assign(AnswerKey(key), std::move(entry));
}

void AnswerCache::Clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

size_t AnswerCache::size() const {
  const std::shared_lock lock(mutex_);
  return entries_.size();
}

}  // namespace attune
