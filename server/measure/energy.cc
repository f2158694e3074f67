#include "server/measure/energy.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace attune::measure {
namespace {

constexpr int kMostAtOnce = 1000;  // a graph's

// A moment at which the counter has just grown, which is the only time when its value is that of now.
struct Step {
  double joules = 0;
  int64_t runs = 0;
  absl::Time time;
};

// Keeps the device busy and counts the runs.
class Measurement {
 public:
  Measurement(Load& load, const EnergyOptions& options) : load_(load), options_(options) {}

  // At least so long. A few runs at first, until it is known how long one takes.
  absl::Status RunFor(absl::Duration least) {
    const absl::Duration until = worked_ + least;
    while (worked_ < until) {
      if (absl::Status status = RunSome(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Step> NextStep() {
    const absl::StatusOr<double> before = load_.ReadJoules();
    if (!before.ok()) return before.status();
    const absl::Duration until = worked_ + options_.longest_step;
    while (true) {
      if (absl::Status status = RunSome(); !status.ok()) return status;
      const absl::StatusOr<double> joules = load_.ReadJoules();
      if (!joules.ok()) return joules.status();
      if (*joules > *before) return Step{*joules, runs_, options_.now()};
      if (*joules < *before) {
        return absl::FailedPreconditionError(
            absl::StrCat("the device's counter of energy went back from ", *before, " to ", *joules, " J"));
      }
      if (worked_ >= until) {
        return absl::FailedPreconditionError(absl::StrCat("the device's counter of energy stood still at ", *joules,
                                                          " J for ", absl::FormatDuration(options_.longest_step),
                                                          " of runs"));
      }
    }
  }

 private:
  absl::Status RunSome() {
    const absl::StatusOr<double> us = load_.Run(at_once_);
    if (!us.ok()) return us.status();
    if (!(std::isfinite(*us) && *us > 0)) {
      return absl::InternalError(absl::StrCat("a run took ", *us, " us; it must be above 0"));
    }
    worked_ += absl::Microseconds(*us * at_once_);
    runs_ += at_once_;
    const double fit = absl::ToDoubleMicroseconds(options_.at_once) / *us;
    at_once_ = static_cast<int>(std::clamp(std::ceil(fit), 1.0, static_cast<double>(kMostAtOnce)));
    return absl::OkStatus();
  }

  Load& load_;
  const EnergyOptions& options_;
  int at_once_ = 1;
  int64_t runs_ = 0;
  absl::Duration worked_;
};

double JoulesPerRun(const Step& from, const Step& to) {
  return (to.joules - from.joules) / static_cast<double>(to.runs - from.runs);
}

}  // namespace

absl::StatusOr<v1::Energy> MeasureEnergy(Load& load, const EnergyOptions& options) {
  // Not after the warm-up, where there is no counter.
  if (const absl::StatusOr<double> counter = load.ReadJoules(); !counter.ok()) return counter.status();
  Measurement measurement(load, options);
  if (absl::Status status = measurement.RunFor(options.warm_up); !status.ok()) return status;
  const absl::StatusOr<Step> first = measurement.NextStep();
  if (!first.ok()) return first.status();
  v1::Energy energy;
  Step last = *first;
  for (int i = 0; i < options.spans; ++i) {
    if (absl::Status status = measurement.RunFor(options.span); !status.ok()) return status;
    const absl::StatusOr<Step> next = measurement.NextStep();
    if (!next.ok()) return next.status();
    const double joules = JoulesPerRun(last, *next);
    energy.set_low_joules(i == 0 ? joules : std::min(energy.low_joules(), joules));
    energy.set_high_joules(i == 0 ? joules : std::max(energy.high_joules(), joules));
    energy.set_contended(energy.contended() || load.Contended());
    last = *next;
  }
  // A mean of the spans' means, but for the last digits.
  energy.set_joules(std::clamp(JoulesPerRun(*first, last), energy.low_joules(), energy.high_joules()));
  energy.set_seconds(absl::ToDoubleSeconds(last.time - first->time));
  if (energy.seconds() > 0) energy.set_power_w((last.joules - first->joules) / energy.seconds());
  energy.set_runs(last.runs - first->runs);
  energy.set_spans(options.spans);
  return energy;
}

}  // namespace attune::measure
