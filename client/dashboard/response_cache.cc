#include "client/dashboard/response_cache.h"

#include <algorithm>

namespace attune::dashboard {

ResponseCache::ResponseCache(const Clock* clock, absl::Duration time_to_live, size_t most_answers)
    : clock_(clock), time_to_live_(time_to_live), most_answers_(most_answers) {}

void ResponseCache::DropOld(absl::Time now) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    at = at->second->response.has_value() && now - at->second->made >= time_to_live_ ? entries_.erase(at) : ++at;
  }
}

void ResponseCache::MakeRoom() {
  while (entries_.size() >= most_answers_) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second->made < b.second->made;  // those being made are of the infinite future
    });
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
  MakeRoom();
  const auto entry = std::make_shared<Entry>();
  entries_[key] = entry;
  lock.unlock();
  HttpResponse response = make();
  lock.lock();
  entry->response = response;
  entry->made = clock_->Now();
  made_.notify_all();
  return response;
}

}  // namespace attune::dashboard
