#include "server/supervisor/answers.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attune::supervisor {
namespace {

using worker::v1::Request;
using worker::v1::Response;

constexpr std::pair<Request::KindCase, Response::KindCase> kKinds[] = {
    {Request::kDescribe, Response::kDescribe}, {Request::kCompile, Response::kCompile},
    {Request::kPrepare, Response::kPrepare},   {Request::kTrial, Response::kTrial},
    {Request::kPlayOff, Response::kPlayOff},   {Request::kRelease, Response::kRelease},
    {Request::kFloor, Response::kFloor},       {Request::kTool, Response::kTool}};

constexpr int kQuantiles = 33;  // of a timing, if any

template <typename... What>
absl::Status Wrong(const What&... what) {
  return absl::DataLossError(absl::StrCat("an answer that no worker gives: ", what...));
}

absl::Status CheckVerdict(v1::Verdict verdict, std::initializer_list<v1::Verdict> allowed) {
  if (std::find(allowed.begin(), allowed.end(), verdict) != allowed.end()) return absl::OkStatus();
  return Wrong("verdict ", static_cast<int>(verdict));
}

// Neither is true of NaN.
bool Ordered(double low, double high) { return low >= 0 && low <= high && std::isfinite(high); }

// Longer than any call to a worker may last.
constexpr double kLongestUs = 24 * 3600e6;
constexpr double kLongestMs = kLongestUs / 1000;
// More than any protocol takes, any compiler reports and any card draws.
constexpr int64_t kMostSamples = 100'000'000;
constexpr int64_t kMostRuns = int64_t{1} << 40;
constexpr int64_t kMostOfAResource = int64_t{1} << 32;
constexpr double kMostWatts = 100'000;

// Not true of NaN either.
bool IsIn(double value, double low, double high) { return value >= low && value <= high; }

template <typename Number>
absl::Status CheckRange(absl::string_view what, Number value, Number low, Number high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Wrong(what, " of ", value, "; allowed: ", low, " to ", high);
}

absl::Status FirstOf(std::initializer_list<absl::Status> statuses) {
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckQuantiles(const v1::Timing& timing) {
  const auto& us = timing.quantiles_us();
  if (!us.empty() && us.size() != kQuantiles) {
    return Wrong(us.size(), " quantiles; allowed: none or ", kQuantiles);
  }
  float before = 0;
  for (const float each : us) {
    if (!(each >= before && each <= kLongestUs))
      return Wrong("a quantile of ", each, " us behind one of ", before, " us");
    before = each;
  }
  return absl::OkStatus();
}

absl::Status CheckTiming(const v1::Timing& timing) {
  if (timing.has_energy()) return Wrong("an energy in a timing");
  if (!Ordered(timing.low_us(), timing.median_us()) || !Ordered(timing.median_us(), timing.high_us()) ||
      timing.high_us() > kLongestUs || !IsIn(timing.min_us(), 0, timing.median_us())) {
    return Wrong("a time of ", timing.median_us(), " us in ", timing.low_us(), " to ", timing.high_us(), ", at least ",
                 timing.min_us());
  }
  if (absl::Status spread = CheckQuantiles(timing); !spread.ok()) return spread;
  return FirstOf({CheckRange<int64_t>("samples", timing.samples(), 0, kMostSamples),
                  CheckRange<int64_t>("discarded samples", timing.discarded(), 0, kMostSamples),
                  CheckRange<int64_t>("a clock in MHz", timing.sm_clock_mhz(), 0, 1'000'000),
                  CheckRange<int64_t>("a temperature in C", timing.temperature_c(), -300, 1'000),
                  CheckRange("a power in W", timing.power_w(), 0.0, kMostWatts)});
}

absl::Status CheckEnergy(const v1::Energy& energy) {
  if (!(energy.joules() > 0) || !Ordered(energy.low_joules(), energy.joules()) ||
      !Ordered(energy.joules(), energy.high_joules())) {
    return Wrong("an energy of ", energy.joules(), " J in ", energy.low_joules(), " to ", energy.high_joules());
  }
  return FirstOf({CheckRange("a power in W", energy.power_w(), 0.0, kMostWatts),
                  CheckRange("seconds of an energy", energy.seconds(), 0.0, kLongestMs / 1000),
                  CheckRange<int64_t>("runs of an energy", energy.runs(), 1, kMostRuns),
                  CheckRange<int64_t>("spans of an energy", energy.spans(), 1, kMostSamples)});
}

// Of what is right. What is wrong may be off by anything, infinity and NaN included.
absl::Status CheckAccuracy(const v1::Accuracy& accuracy) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return FirstOf({CheckRange("an error", accuracy.max_abs_error(), 0.0, kMost),
                  CheckRange("a plain computation's error", accuracy.plain_max_abs_error(), 0.0, kMost),
                  CheckRange<int64_t>("cases", accuracy.cases(), 0, 1'000'000)});
}

absl::Status CheckEntries(const worker::v1::CompileResponse& compile) {
  for (const worker::v1::CompileResponse::Entry& entry : compile.entries()) {
    absl::Status status =
        FirstOf({CheckRange<int64_t>("registers", entry.registers(), 0, kMostOfAResource),
                 CheckRange<int64_t>("spilled bytes", entry.spill_bytes(), 0, kMostOfAResource),
                 CheckRange<int64_t>("bytes of shared memory", entry.static_shared_bytes(), 0, kMostOfAResource),
                 CheckRange<int64_t>("bytes of stack", entry.stack_bytes(), 0, kMostOfAResource)});
    if (!status.ok()) return status;
  }
  return CheckRange("a compile's ms", compile.compile_ms(), 0.0, kLongestMs);
}

absl::Status CheckCompile(const worker::v1::CompileResponse& compile) {
  absl::Status verdict = CheckVerdict(compile.verdict(), {v1::VERDICT_OK, v1::VERDICT_COMPILE_ERROR});
  if (!verdict.ok()) return verdict;
  if (compile.verdict() == v1::VERDICT_OK && compile.artifact().empty()) return Wrong("code of no bytes");
  return CheckEntries(compile);
}

// A response's time of the device.
template <typename Response>
absl::Status CheckWorked(const Response& response) {
  return CheckRange("the device's ms", response.device_ms(), 0.0, kLongestMs);
}

absl::Status CheckTrial(const worker::v1::TrialResponse& trial) {
  const absl::Status verdict =
      CheckVerdict(trial.verdict(), {v1::VERDICT_OK, v1::VERDICT_INFEASIBLE, v1::VERDICT_WRONG_RESULT,
                                     v1::VERDICT_OUT_OF_BOUNDS, v1::VERDICT_UNSTABLE, v1::VERDICT_SLOW});
  if (!verdict.ok()) return verdict;
  absl::Status figures = FirstOf({CheckRange("a check's ms", trial.check_ms(), 0.0, kLongestMs),
                                  CheckRange("a timing's ms", trial.time_ms(), 0.0, kLongestMs), CheckWorked(trial)});
  if (figures.ok() && trial.verdict() == v1::VERDICT_OK) figures = CheckAccuracy(trial.accuracy());
  if (!figures.ok() || !trial.has_timing()) return figures;
  // What is wrong was not timed.
  const absl::Status timed = CheckVerdict(trial.verdict(), {v1::VERDICT_OK, v1::VERDICT_UNSTABLE, v1::VERDICT_SLOW});
  return timed.ok() ? CheckTiming(trial.timing()) : timed;
}

// A round is a sample of everyone, so that they can be compared in pairs.
absl::Status CheckPlayOff(const worker::v1::PlayOffRequest& request, const worker::v1::PlayOffResponse& response) {
  if (absl::Status status = CheckWorked(response); !status.ok()) return status;
  std::optional<int> rounds;
  for (const worker::v1::TrialResponse& result : response.results()) {
    if (absl::Status status = CheckTrial(result); !status.ok()) return status;
    if (result.has_energy() && !request.energy()) return Wrong("an energy that nobody asked for");
    if (request.energy() && result.has_timing()) return Wrong("a timing where energy was asked for");
    if (result.has_energy()) {
      if (absl::Status status = CheckEnergy(result.energy()); !status.ok()) return status;
    }
    if (request.many_runs() || !result.has_timing()) continue;
    if (result.rounds_us_size() == 0 || result.rounds_us_size() != rounds.value_or(result.rounds_us_size())) {
      return Wrong(result.rounds_us_size(), " rounds of one contestant, ", rounds.value_or(0), " of another");
    }
    rounds = result.rounds_us_size();
    for (double us : result.rounds_us()) {
      if (absl::Status status = CheckRange("a round's us", us, 0.0, kLongestUs); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAnswer(const Request& request, const Response& response) {
  if (response.error_code() != 0) return absl::OkStatus();
  if (std::find(std::begin(kKinds), std::end(kKinds), std::pair(request.kind_case(), response.kind_case())) ==
      std::end(kKinds)) {
    return Wrong("one of kind ", static_cast<int>(response.kind_case()), " to a request of kind ",
                 static_cast<int>(request.kind_case()));
  }
  if (response.has_compile()) return CheckCompile(response.compile());
  if (response.has_prepare()) {
    return FirstOf({CheckRange("a preparation's ms", response.prepare().prepare_ms(), 0.0, kLongestMs),
                    CheckWorked(response.prepare())});
  }
  if (response.has_floor()) return CheckTiming(response.floor().timing());
  if (response.has_trial()) return CheckTrial(response.trial());
  if (response.has_tool()) {
    return FirstOf({CheckRange("an exit code", response.tool().exit_code(), 0, 255),
                    CheckRange("a tool's output", static_cast<int64_t>(response.tool().output().size()), int64_t{0},
                               request.tool().most_output())});
  }
  if (response.play_off().results_size() != request.play_off().candidates_size()) {
    return Wrong(response.play_off().results_size(), " results of ", request.play_off().candidates_size(),
                 " candidates");
  }
  return CheckPlayOff(request.play_off(), response.play_off());
}

}  // namespace attune::supervisor
