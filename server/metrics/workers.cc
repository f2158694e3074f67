#include "server/metrics/workers.h"

#include <utility>

#include "server/metrics/words.h"

namespace attune::metrics {
namespace {

const prometheus::Histogram::BucketBoundaries& WorkBounds() {
  static const auto& bounds =
      *new prometheus::Histogram::BucketBoundaries{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120};
  return bounds;
}

// Of NVML's clocks event reasons; that a device is idle (bit 0) is none to look after.
constexpr std::pair<int, const char*> kThrottleReasons[] = {
    {1, "applications_clocks"}, {2, "power_cap"},   {3, "hardware_slowdown"}, {4, "sync_boost"}, {5, "thermal"},
    {6, "hw_thermal"},          {7, "power_brake"}, {8, "display_clocks"}};

}  // namespace

Workers::Workers(prometheus::Registry& registry)
    : started_(CountersOf(registry, "attune_workers_started_total", "Worker processes started, by role.")),
      lost_(CountersOf(registry, "attune_workers_lost_total",
                       "Worker processes lost, which are replaced when they are needed, by role and reason.")),
      compiles_(CountersOf(registry, "attune_compiles_total",
                           "Compiles, by verdict; lost: the infrastructure failed. What was compiled before is none.")),
      compile_times_(HistogramsOf(registry, "attune_compile_seconds", "How long a compile worker took for one.")
                         .Add({}, WorkBounds())),
      checks_(HistogramsOf(registry, "attune_trial_check_seconds", "How long the checks of a trial took.")),
      timings_(HistogramsOf(registry, "attune_trial_timing_seconds", "How long the timing of a trial took.")),
      busy_(CountersOf(registry, "attune_device_busy_seconds_total",
                       "Time in calls of a device's worker, by what was called.")),
      timed_(CountersOf(registry, "attune_device_timings_total", "Timings made on a device.")),
      contended_(
          CountersOf(registry, "attune_device_contended_timings_total", "Those with another process on the device.")),
      samples_(CountersOf(registry, "attune_device_samples_total", "Samples that timings are made of.")),
      discarded_(CountersOf(registry, "attune_device_discarded_samples_total",
                            "Samples thrown away because the clock had fallen.")),
      clock_(GaugesOf(registry, "attune_device_sm_clock_hertz", "SM clock in the last timing.")),
      power_(GaugesOf(registry, "attune_device_power_watts", "Power in the last timing.")),
      temperature_(GaugesOf(registry, "attune_device_temperature_celsius", "Temperature in the last timing.")),
      throttled_(GaugesOf(registry, "attune_device_throttled",
                          "1 where the device was throttled for that reason in the last timing.")),
      info_(GaugesOf(registry, "attune_device_info", "1 for each device that is worked on.")) {
  compiles_.Add({{"verdict", "ok"}});
  for (const char* role : {"compile", "device", "probe", "tool"}) {
    started_.Add({{"role", role}});
    for (const char* reason : {"fault", "killed", "exited", "timeout", "garbage", "device_fault", "unsent"}) {
      lost_.Add({{"role", role}, {"reason", reason}});
    }
  }
}

void Workers::SetDevices(const std::vector<v1::Device>& devices) {
  for (const v1::Device& device : devices) {
    info_
        .Add({{"device", device.id()},
              {"device_class", device.class_alias()},
              {"model", device.model()},
              {"driver", device.driver()}})
        .Set(1);
    const prometheus::Labels of = {{"device", device.id()}};
    timed_.Add(of);
    contended_.Add(of);
    samples_.Add(of);
    discarded_.Add(of);
  }
}

void Workers::Started(const std::string& role) { started_.Add({{"role", role}}).Increment(); }

void Workers::Lost(const std::string& role, const std::string& reason) {
  lost_.Add({{"role", role}, {"reason", reason}}).Increment();
}

void Workers::Compiled(v1::Verdict verdict, double milliseconds) {
  compiles_.Add({{"verdict", Word(v1::Verdict_Name(verdict), "VERDICT_")}}).Increment();
  if (milliseconds > 0) compile_times_.Observe(milliseconds / 1e3);
}

void Workers::Called(const std::string& device, const std::string& call, absl::Duration time) {
  busy_.Add({{"device", device}, {"call", call}}).Increment(absl::ToDoubleSeconds(time));
}

void Workers::Checked(const std::string& device, double milliseconds) {
  checks_.Add({{"device", device}}, WorkBounds()).Observe(milliseconds / 1e3);
}

void Workers::Timed(const std::string& device, double milliseconds) {
  timings_.Add({{"device", device}}, WorkBounds()).Observe(milliseconds / 1e3);
}

void Workers::Saw(const std::string& device, const v1::Timing& timing) {
  const prometheus::Labels of = {{"device", device}};
  timed_.Add(of).Increment();
  if (timing.contended()) contended_.Add(of).Increment();
  samples_.Add(of).Increment(timing.samples());
  discarded_.Add(of).Increment(timing.discarded());
  if (timing.sm_clock_mhz() == 0) return;  // no NVML there
  clock_.Add(of).Set(timing.sm_clock_mhz() * 1e6);
  power_.Add(of).Set(timing.power_w());
  temperature_.Add(of).Set(timing.temperature_c());
  for (const auto& [bit, reason] : kThrottleReasons) {
    throttled_.Add({{"device", device}, {"reason", reason}}).Set((timing.throttle_reasons() >> bit) & 1);
  }
}

}  // namespace attune::metrics
