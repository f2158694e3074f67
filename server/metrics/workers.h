// Worker processes and what they do: compiles, trials' phases, and the state of devices as their timings saw it.
#ifndef ATTUNE_SERVER_METRICS_WORKERS_H_
#define ATTUNE_SERVER_METRICS_WORKERS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "attune/v1/device.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/metrics/registered.h"

namespace attune::metrics {

// Thread-safe. A `device` is one's id.
class Workers {
 public:
  explicit Workers(prometheus::Registry& registry);

  // The host's, their classes named.
  void SetDevices(const std::vector<v1::Device>& devices);

  // `role`: "compile", "device" or "probe".
  void Started(const std::string& role);
  // `reason`: "fault" (a signal of its own), "killed" (or stopped, from outside), "exited", "timeout" (no answer in
  // time), "garbage" (an answer that is none), "device_fault" (the device reported one) or "unsent".
  void Lost(const std::string& role, const std::string& reason);

  // `milliseconds`: 0 where the worker did not come to say.
  void Compiled(v1::Verdict verdict, double milliseconds);
  // One call of a device's worker: "prepare", "trial", "play_off", "floor".
  void Called(const std::string& device, const std::string& call, absl::Duration time);
  void Checked(const std::string& device, double milliseconds);
  void Timed(const std::string& device, double milliseconds);
  // What a timing has seen of its device.
  void Saw(const std::string& device, const v1::Timing& timing);

 private:
  CounterFamily& started_;
  CounterFamily& lost_;
  CounterFamily& compiles_;
  prometheus::Histogram& compile_times_;
  HistogramFamily& checks_;
  HistogramFamily& timings_;
  CounterFamily& busy_;
  CounterFamily& timed_;
  CounterFamily& contended_;
  CounterFamily& samples_;
  CounterFamily& discarded_;
  GaugeFamily& clock_;
  GaugeFamily& power_;
  GaugeFamily& temperature_;
  GaugeFamily& throttled_;
  GaugeFamily& info_;
};

}  // namespace attune::metrics

#endif  // ATTUNE_SERVER_METRICS_WORKERS_H_
