// The jobs of a queue that have not ended, for tests. Parts of jobs are not counted.
#ifndef ATTUNE_SERVER_STORE_TESTING_UNFINISHED_H_
#define ATTUNE_SERVER_STORE_TESTING_UNFINISHED_H_

#include <chrono>
#include <cstddef>
#include <thread>

#include "absl/time/time.h"
#include "server/base/deadline.h"
#include "server/store/page_token.h"
#include "server/store/queue.h"

namespace attune::store {

inline size_t CountUnfinished(Queue& queue) {
  return queue.List({.active_only = true}, kMostPageSize, "").value().items.size();
}

// Whether all have ended within `patience`.
inline bool AwaitAllEnded(Queue& queue, absl::Duration patience = absl::Minutes(2)) {
  const Deadline deadline = After(patience);
  while (CountUnfinished(queue) > 0) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_UNFINISHED_H_
