#include "client/cli/timeline.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

constexpr int kProcess = 1;
constexpr int kPhasesTrack = 1;
constexpr int kFirstCardTrack = 100;
constexpr int kFirstCompilerTrack = 1000;

double MicrosOf(const google::protobuf::Timestamp& time) {
  return static_cast<double>(time.seconds()) * 1e6 + time.nanos() / 1e3;
}

class Trace {
 public:
  void Track(int track, const std::string& name) {
    if (!named_.insert(track).second) return;
    events_.push_back(
        {{"ph", "M"}, {"name", "thread_name"}, {"pid", kProcess}, {"tid", track}, {"args", {{"name", name}}}});
    events_.push_back({{"ph", "M"},
                       {"name", "thread_sort_index"},
                       {"pid", kProcess},
                       {"tid", track},
                       {"args", {{"sort_index", track}}}});
  }
  void Span(int track, const std::string& name, double begin_us, double micros, Json args = Json::object()) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"pid", kProcess},
                       {"tid", track},
                       {"ts", begin_us},
                       {"dur", micros},
                       {"args", std::move(args)}});
  }
  Json Done() { return {{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}}; }

 private:
  Json events_ = Json::array();
  std::set<int> named_;
};

void AddPhases(const v1::Operation& operation, Trace& trace) {
  trace.Track(kPhasesTrack, operation.title().empty() ? operation.name() : operation.title());
  const auto& phases = operation.progress().phases();
  for (int i = 0; i < phases.size(); ++i) {
    const double begin = MicrosOf(phases[i].time());
    double end = begin;
    if (i + 1 < phases.size()) {
      end = MicrosOf(phases[i + 1].time());
    } else if (operation.has_end_time()) {
      end = MicrosOf(operation.end_time());
    }
    trace.Span(kPhasesTrack, Word(phases[i].phase()), begin, end - begin);
  }
}

Json ArgsOf(const v1::Trial& trial) {
  return {{"trial", trial.name()},
          {"verdict", attune::Word(trial.verdict())},
          {"detail", trial.detail()},
          {"median_us", trial.timing().median_us()},
          {"device_ms", trial.cost().device_ms()},
          {"wait_ms", trial.cost().wait_ms()}};
}

void AddTrial(const v1::Trial& trial, int track, Trace& trace) {
  const double check = 1000 * trial.cost().check_ms(), time = 1000 * trial.cost().time_ms();
  if (check + time <= 0) return;
  const double end = MicrosOf(trial.finish_time());
  trace.Track(track, trial.device_id());
  trace.Span(track, VariantText(trial.variant()), end - check - time, check + time, ArgsOf(trial));
  if (check > 0) trace.Span(track, "check", end - check - time, check);
  if (time > 0) trace.Span(track, "time", end - time, time);
}

}  // namespace

Json TimelineJson(const v1::Operation& operation, const std::vector<v1::Trial>& trials) {
  Trace trace;
  AddPhases(operation, trace);
  std::map<std::string, int> cards;
  std::set<std::pair<int, double>> compiled;  // a code may be that of several trials
  for (const v1::Trial& trial : trials) {
    const int card =
        cards.try_emplace(trial.device_id(), kFirstCardTrack + static_cast<int>(cards.size())).first->second;
    AddTrial(trial, card, trace);
    if (!trial.cost().has_compile_begin() || trial.compile_ms() <= 0) continue;
    const int worker = trial.cost().compile_worker();
    const double begin = MicrosOf(trial.cost().compile_begin());
    if (!compiled.emplace(worker, begin).second) continue;
    trace.Track(kFirstCompilerTrack + worker, absl::StrCat("compile worker ", worker));
    trace.Span(kFirstCompilerTrack + worker, VariantText(trial.variant()), begin, 1000 * trial.compile_ms());
  }
  return trace.Done();
}

}  // namespace attune::cli
