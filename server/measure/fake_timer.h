// A timer that plays a written sequence, and a clock that only samples and pauses move. For tests.
#ifndef ATTUNE_SERVER_MEASURE_FAKE_TIMER_H_
#define ATTUNE_SERVER_MEASURE_FAKE_TIMER_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/measure/measure.h"

namespace attune::measure {

struct FakeWorld {
  absl::Time time = absl::UnixEpoch();
  std::vector<char> order;  // who took each sample

  Options MakeOptions() {
    Options options;
    options.now = [this] { return time; };
    return options;
  }
};

class FakeTimer : public Timer {
 public:
  // Sample i, warm-up included, counted from 0, of a graph of `runs`.
  using Script = std::function<absl::StatusOr<Sample>(int i, int runs)>;

  FakeTimer(FakeWorld& world, Script script, char name = 'a')
      : world_(world), script_(std::move(script)), name_(name) {}

  absl::StatusOr<Sample> Take(int runs) override {
    absl::StatusOr<Sample> sample = script_(static_cast<int>(runs_.size()), runs);
    runs_.push_back(runs);
    world_.order.push_back(name_);
    if (sample.ok()) world_.time += absl::Microseconds(sample->us) * runs;
    return sample;
  }
  void Pause() override {
    ++pauses_;
    world_.time += absl::Milliseconds(10);
  }

  const std::vector<int>& runs() const { return runs_; }
  int pauses() const { return pauses_; }

 private:
  FakeWorld& world_;
  Script script_;
  char name_;
  std::vector<int> runs_;
  int pauses_ = 0;
};

}  // namespace attune::measure

#endif  // ATTUNE_SERVER_MEASURE_FAKE_TIMER_H_
