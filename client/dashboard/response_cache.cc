#include "client/dashboard/response_cache.h"

#include <algorithm>

namespace attune::dashboard {

namespace {

size_t BytesOf(const std::optional<HttpResponse>& response) {
  if (!response.has_value() || response->content == nullptr) return 0;
  return response->content->plain.size() + response->content->gzip.size();
}

}  // namespace

ResponseCache::ResponseCache(const Clock* clock, absl::Duration time_to_live, size_t most_answers, size_t most_bytes)
    : clock_(clock), time_to_live_(time_to_live), most_answers_(most_answers), most_bytes_(most_bytes) {}

void ResponseCache::DropOld(absl::Time now) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    at = at->second->response.has_value() && now - at->second->made >= time_to_live_ ? entries_.erase(at) : ++at;
  }
}

void ResponseCache::Shrink(size_t answers, size_t bytes) {
  size_t kept = 0;
  for (const auto& [key, entry] : entries_) kept += BytesOf(entry->response);
  while (entries_.size() > answers || kept > bytes) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second->made < b.second->made;  // those being made are of the infinite future
    });
    kept -= BytesOf(oldest->second->response);
    entries_.erase(oldest);
  }
}

HttpResponse ResponseCache::Get(const std::string& key, absl::FunctionRef<HttpResponse()> make) {
  std::unique_lock lock(mutex_);
  DropOld(clock_->Now());
  if (const auto found = entries_.find(key); found != entries_.end()) {
    const std::shared_ptr<Entry> entry = found->second;
    made_.wait(lock, [&] { return entry->response.has_value(); });
    return *entry->response;
  }
  Shrink(most_answers_ - 1, most_bytes_);
  const auto entry = std::make_shared<Entry>();
  entries_[key] = entry;
  lock.unlock();
  HttpResponse response = make();
  lock.lock();
  entry->response = response;
  entry->made = clock_->Now();
  Shrink(most_answers_, most_bytes_);
  made_.notify_all();
  return response;
}

}  // namespace attune::dashboard
