// What is counted on the way of every call: relaxed atomics, no lock and no look-up.
#ifndef ATTUNE_SERVER_METRICS_COUNTER_H_
#define ATTUNE_SERVER_METRICS_COUNTER_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace attune::metrics {

class Counter {
 public:
  void Add(uint64_t more = 1) { value_.fetch_add(more, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

// How long calls took. A reader may see a call's bucket before its time in the sum, or after it.
class Latencies {
 public:
  // Upper bounds, in seconds; what took longer is in one more bucket.
  static constexpr std::array kBounds = {50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3,
                                         25e-3, 50e-3,  100e-3, 250e-3, 0.5,  1.0,    2.5,  10.0};

  void Add(absl::Duration time) {
    const double seconds = absl::ToDoubleSeconds(time);
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    buckets_[static_cast<size_t>(bound - kBounds.begin())].Add();
    nanoseconds_.Add(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(time))));
  }
  // Those in one bucket alone.
  uint64_t in_bucket(size_t bucket) const { return buckets_[bucket].value(); }
  double seconds() const { return static_cast<double>(nanoseconds_.value()) * 1e-9; }

 private:
  std::array<Counter, kBounds.size() + 1> buckets_;
  Counter nanoseconds_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_COUNTER_H_
