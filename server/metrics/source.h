// Something that is asked for its state when somebody scrapes, as long as it lives.
#ifndef ATTUNE_SERVER_METRICS_SOURCE_H_
#define ATTUNE_SERVER_METRICS_SOURCE_H_

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace attune::metrics {

// Thread-safe. `read` waits for no disk, no device and nobody who waits for one.
template <typename State>
class Source {
 public:
  using Read = std::function<State()>;

  void Set(Read read) {
    const std::lock_guard<std::mutex> lock(mutex_);
    read_ = std::move(read);
  }
  // Before what `read` reads goes.
  void Clear() { Set(nullptr); }
  // Nothing when there is no such thing now.
  std::optional<State> Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!read_) return std::nullopt;
    return read_();
  }

 private:
  mutable std::mutex mutex_;
  Read read_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_SOURCE_H_
