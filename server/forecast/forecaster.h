// Forecasts by a ClassModel of the trials in the store, and of those that were shipped.
//
// Its own thread, niced, reads the trials of what is served, takes for other problems what was shipped for the model of
// device, and fits a ClassModel. Of each problem that somebody has asked for, and that is like a tuned one, it keeps
// the model's first choice; a look-up only ever reads a table in memory. A model is fitted anew when something else is
// served than when it was fitted, and somebody asks; until then, and while that takes, the former one and its forecasts
// hold.
#ifndef ATTUNE_SERVER_FORECAST_FORECASTER_H_
#define ATTUNE_SERVER_FORECAST_FORECASTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/catalog/answers/forecasts.h"
#include "server/catalog/host.h"
#include "server/catalog/prior/shipped_prior.h"
#include "server/forecast/class_model.h"
#include "server/store/store.h"

namespace attune::forecast {

class Forecaster final : public catalog::Forecasts, public Models {
 public:
  struct Options {
    size_t least_shapes = ClassModel::kLeastProblems;  // tuned, with ShapeModel::kLeastRows good trials each
    size_t most_shapes = 128;                          // learned from: those served last, then those shipped
    size_t most_waiting = 256;                         // problems; more are forgotten, and may be asked for again
    size_t most_known = 16'384;                        // forecasts
    absl::Duration hold = absl::Minutes(1);            // how long nobody looks whether something else is served
    const std::vector<catalog::PriorTable>* shipped = &catalog::ShippedPriors();
  };

  // Both outlive it.
  Forecaster(store::Store& store, const catalog::Host& host, Options options);
  Forecaster(store::Store& store, const catalog::Host& host) : Forecaster(store, host, Options()) {}
  ~Forecaster() override;

  std::optional<catalog::Forecast> Ask(const Problem& problem, const v1::Device& device, v1::Policy policy) override;
  uint64_t version() const override;
  // Never blocks: a model that there is not yet, or is older than what is served, is fitted from then on, which takes
  // some seconds where much was tuned.
  std::shared_ptr<const ClassModel> Model(const v1::Device& device, v1::Policy policy) override;

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
