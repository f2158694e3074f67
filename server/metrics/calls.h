// Calls by method: begun, ended with which code, and how long they took. Names are those of go-grpc-prometheus, so that
// dashboards made for it work.
#ifndef ATTUNE_SERVER_METRICS_CALLS_H_
#define ATTUNE_SERVER_METRICS_CALLS_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/metrics/counter.h"
#include "server/metrics/families.h"

namespace attune::metrics {

struct CallMethod {
  std::string service;  // "attune.v1.AttuneService"
  std::string name;
  bool streams = false;  // the server does
};

// Thread-safe.
class Calls {
 public:
  static constexpr size_t kCodes = 17;  // of gRPC

  explicit Calls(std::vector<CallMethod> methods);

  // `method` is an index into those of the constructor.
  void Begun(size_t method) { counts_[method].begun.Add(); }
  // `code`: gRPC's.
  void Ended(size_t method, int code, absl::Duration time) {
    Counts& counts = counts_[method];
    counts.ended[static_cast<size_t>(code) < kCodes ? static_cast<size_t>(code) : kUnknown].Add();
    counts.times.Add(time);
  }

  void Collect(Families& families) const;

 private:
  static constexpr size_t kUnknown = 2;
  // In cache lines of its own: calls of other methods are counted by other threads.
  struct alignas(64) Counts {
    Counter begun;
    std::array<Counter, kCodes> ended;
    Latencies times;
  };

  const std::vector<CallMethod> methods_;
  const std::unique_ptr<Counts[]> counts_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_CALLS_H_
