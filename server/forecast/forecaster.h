// Forecasts by a ShapeModel of the trials in the store.
//
// Its own thread, niced, reads the trials of what is served and fits the model. For each problem that somebody has
// asked for, and that is like a tuned one (relevance.h), it chooses among the fastest variants of all tuned ones,
// re-fitted, and the guess; a look-up only ever reads a table in memory. A model is fitted anew when something else is
// served than when it was fitted, and somebody asks; until then, and while that takes, the former forecasts hold.
#ifndef ATTUNE_SERVER_FORECAST_FORECASTER_H_
#define ATTUNE_SERVER_FORECAST_FORECASTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "server/catalog/answers/forecasts.h"
#include "server/catalog/host.h"
#include "server/store/store.h"

namespace attune::forecast {

class Forecaster final : public catalog::Forecasts {
 public:
  struct Options {
    // Tuned, with ShapeModel::kLeastRows good trials each: of six problems of an H200 the model's choice was no better
    // than the nearest one's winner, of ten it was (docs/benchmarks/2026-11-28-h200-forecasts.md).
    size_t least_shapes = 8;
    size_t most_shapes = 64;                 // learned from: those served last
    size_t most_waiting = 256;               // problems; more are forgotten, and may be asked for again
    size_t most_known = 16'384;              // forecasts
    absl::Duration hold = absl::Minutes(1);  // how long nobody looks whether something else is served
  };

  // Both outlive it.
  Forecaster(store::Store& store, const catalog::Host& host, Options options);
  Forecaster(store::Store& store, const catalog::Host& host) : Forecaster(store, host, Options()) {}
  ~Forecaster() override;

  std::optional<catalog::Forecast> Ask(const Problem& problem, const v1::Device& device, v1::Policy policy) override;
  uint64_t version() const override;

  // Nothing is worked out any more. Any thread may call it, again too.
  void Shutdown();
  // For tests: returns when nothing is waited for.
  void Settle();

 private:
  struct State;
  class Worker;

  std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace attune::forecast

#endif  // ATTUNE_SERVER_FORECAST_FORECASTER_H_
