// Waiting that a stop ends.
#ifndef ATTUNE_SERVER_BASE_PAUSE_H_
#define ATTUNE_SERVER_BASE_PAUSE_H_

#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "absl/time/time.h"
#include "server/base/deadline.h"

namespace attune {

// False when `stop` was requested before the time was over.
inline bool Pause(const std::stop_token& stop, absl::Duration duration) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock<std::mutex> lock(mutex);
  never.wait_until(lock, stop, After(duration), [] { return false; });
  return !stop.stop_requested();
}

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_PAUSE_H_
