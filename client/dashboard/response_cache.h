// Answers of the last moment: requests that ask for the same, at the same time or shortly after, share one RPC.
#ifndef ATTUNE_CLIENT_DASHBOARD_RESPONSE_CACHE_H_
#define ATTUNE_CLIENT_DASHBOARD_RESPONSE_CACHE_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "client/cpp/clock.h"
#include "client/dashboard/http_message.h"

namespace attune::dashboard {

// Thread-safe.
class ResponseCache {
 public:
  // An answer is given for `time_to_live` from when it was made. `clock` is not owned. Kept are the newest that are
  // within both bounds; one that is larger than `most_bytes` by itself is given to who waits for it.
  ResponseCache(const Clock* clock, absl::Duration time_to_live, size_t most_answers, size_t most_bytes);

  // The answer to `key`; `make` is called, on this thread, when there is none. Whoever asks meanwhile waits for it.
  HttpResponse Get(const std::string& key, absl::FunctionRef<HttpResponse()> make);

 private:
  struct Entry {
    std::optional<HttpResponse> response;  // nullopt: being made
    absl::Time made = absl::InfiniteFuture();
  };
  void DropOld(absl::Time now);
  // Drops the oldest until so many answers, with so many bytes, are left.
  void Shrink(size_t answers, size_t bytes);

  const Clock* const clock_;
  const absl::Duration time_to_live_;
  const size_t most_answers_;
  const size_t most_bytes_;
  std::mutex mutex_;              // guards what follows
  std::condition_variable made_;  // an entry has its response
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace attune::dashboard

#endif  // ATTUNE_CLIENT_DASHBOARD_RESPONSE_CACHE_H_
