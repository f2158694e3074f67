// Fills a data directory as a year of nightly sweeps over two device classes would, and prints as JSON what is true of
// it: which problems really are slower, which really are not. Everything is drawn from a seed.
//
// Each night every problem's incumbent is timed on each class in cycles until the sweep's own rule settles
// (server/sweep/sweep_outcome.h), with noise between cycles and in what was once promoted. Among it: drivers and
// toolchains that change with and without effect; regressions of one night, of a month and to the end, sudden and
// creeping; changes below the threshold; faster variants that are promoted; nights with another process on the device;
// a card that is replaced; a problem that nobody times any more.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/problem.h"
#include "server/base/sha256.h"
#include "server/store/store.h"
#include "server/sweep/sweep_outcome.h"
#include "server/sweep/sweep_report.h"

ABSL_FLAG(std::string, data_dir, "", "directory to fill; made when missing");
ABSL_FLAG(uint64_t, seed, 1, "what everything is drawn from");
ABSL_FLAG(int, nights, 365, "nights up to now");
ABSL_FLAG(int, problems, 60, "problems of each night; at least 24");
ABSL_FLAG(int, trials, 4000, "trials besides those of incumbents");
ABSL_FLAG(double, noise, 0.003, "standard deviation between cycles, as a share");
ABSL_FLAG(std::vector<std::string>, devices, std::vector<std::string>({"cuda:0/l4", "cuda:1/h200"}),
          "the two classes' cards: id/fingerprint, or id/fingerprint/uuid");
ABSL_FLAG(std::string, title, "nightly", "of the sweeps");

namespace attune {
namespace {

using Json = nlohmann::ordered_json;
using Outcome = v1::SweepReport::Outcome;

constexpr double kRegression = 0.02;

struct Card {
  std::string id;
  std::string device_class;
  std::string uuid;
};

// What happens to a problem on a class from a night on, up to and without another.
struct Event {
  enum class Kind { kSudden, kCreeping, kPromotion };
  Kind kind = Kind::kSudden;
  int from = 0;
  int to = 1 << 30;
  double factor = 1;
  double over = 1;  // nights that creeping takes
};

// A problem on a class: what is true, and what is served.
struct Row {
  Problem problem;
  std::string text;
  int place = 0;  // of the class
  Card card;
  double base_us = 0;
  int variant = 1;
  std::vector<Event> events = {};
  int last_night = 1 << 30;  // not timed from then on
  v1::Incumbent served = {};

  double TrueUs(int night) const {
    double us = base_us;
    for (const Event& event : events) {
      if (night < event.from || night >= event.to || event.kind == Event::Kind::kPromotion) continue;
      const double share = event.kind == Event::Kind::kCreeping ? std::min(1.0, (night - event.from) / event.over) : 1;
      us *= 1 + (event.factor - 1) * share;
    }
    return us;
  }
};

class Year {
 public:
  Year(store::Store& store, std::vector<Card> cards)
      : store_(store),
        cards_(std::move(cards)),
        random_(absl::GetFlag(FLAGS_seed)),
        nights_(absl::GetFlag(FLAGS_nights)),
        first_(absl::Now() - absl::Hours(24) * nights_ + absl::Hours(2)) {}

  absl::Status Fill() {
    MakeRows();
    Plant();
    for (Row& row : rows_) {
      if (absl::Status status = Serve(row, 0, row.base_us, "the first"); !status.ok()) return status;
    }
    if (absl::Status status = Baselines(); !status.ok()) return status;
    for (int night = 1; night <= nights_; ++night) {
      for (int place = 0; place < 2; ++place) {
        if (absl::Status status = Sweep(night, place); !status.ok()) return status;
      }
    }
    return Trials();
  }

  Json Truth() const { return truth_; }

 private:
  double Normal(double deviation) { return std::normal_distribution<double>(0, deviation)(random_); }
  bool Chance(double share) { return std::uniform_real_distribution<double>(0, 1)(random_) < share; }
  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  absl::Time TimeOf(int night, int second) const { return first_ + absl::Hours(24) * night + absl::Seconds(second); }
  static google::protobuf::Timestamp Stamp(absl::Time time) {
    return google::protobuf::util::TimeUtil::MillisecondsToTimestamp(absl::ToUnixMillis(time));
  }

  void MakeRows() {
    const int problems = absl::GetFlag(FLAGS_problems);
    for (int place = 0; place < 2; ++place) {
      for (int p = 0; p < problems; ++p) {
        Row row;
        row.problem.batch = 1 + p % 4;
        row.problem.heads_q = row.problem.heads_kv = 8 << (p / 4 % 3);
        row.problem.seq_q = row.problem.seq_kv = 128 << (p / 12 % 6);
        row.problem.mask = p % 2 == 0 ? v1::MASK_NONE : v1::MASK_CAUSAL_TOP_LEFT;
        row.text = ToText(row.problem);
        row.place = place;
        row.card = cards_[place];
        const double work = Flops(row.problem) / (place == 0 ? 5e13 : 3e14) * 1e6;
        row.base_us = 6 + work * (1 + 0.1 * std::abs(Normal(1)));
        rows_.push_back(std::move(row));
      }
    }
  }

  // Which rows are what: the first of a shuffled list.
  void Plant() {
    std::vector<size_t> order(rows_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    size_t next = 0;
    const auto take = [&]() -> Row& { return rows_[order[next++]]; };
    truth_["slower"] = Json::array();
    const auto slower = [&](Row& row, int night, double factor, const char* why) {
      truth_["slower"].push_back({{"problem", row.text},
                                  {"device_class", row.card.device_class},
                                  {"night", night},
                                  {"date", absl::FormatTime("%Y-%m-%d", TimeOf(night, 0), absl::UTCTimeZone())},
                                  {"change", factor - 1},
                                  {"why", why}});
    };
    const auto at = [this](double share) { return static_cast<int>(nights_ * share); };
    for (const double factor : {1.03, 1.05, 1.12}) {
      Row& row = take();
      row.events.push_back({.from = driver_nights_[1] = at(0.55), .factor = factor});
      slower(row, at(0.55), factor, "driver");
    }
    for (const double factor : {1.035, 1.25}) {
      Row& row = take();
      row.events.push_back({.from = toolchain_night_ = at(0.8), .factor = factor});
      slower(row, at(0.8), factor, "toolchain");
    }
    {
      Row& row = take();
      row.events.push_back({.kind = Event::Kind::kCreeping, .from = at(0.4), .factor = 1.06, .over = nights_ / 3.0});
      slower(row, at(0.4), 1.06, "creeping");
    }
    {
      Row& row = take();
      row.events.push_back({.from = nights_ - 1, .factor = 1.04});
      slower(row, nights_ - 1, 1.04, "the last two nights");
    }
    {  // Promoted after it: what is served now is slower than what was.
      Row& row = take();
      row.events.push_back({.from = at(0.55), .factor = 1.15});
      row.events.push_back({.kind = Event::Kind::kPromotion, .from = at(0.6), .factor = 0.95});
      slower(row, at(0.55), 1.15 * 0.95, "driver, then a faster variant");
    }
    for (const double factor : {1.008, 0.995, 1.005}) take().events.push_back({.from = at(0.55), .factor = factor});
    for (const double factor : {1.06, 1.2}) take().events.push_back({.from = at(0.3), .to = at(0.4), .factor = factor});
    for (const double factor : {0.9, 0.7, 0.8}) {
      take().events.push_back({.kind = Event::Kind::kPromotion, .from = at(0.5), .factor = factor});
    }
    Row& gone = take();
    gone.last_night = at(0.6);
    truth_["not_timed_since"] = {{"problem", gone.text}, {"device_class", gone.card.device_class}};
    Row& moved = take();
    replaced_ = order[next - 1];
    truth_["moved"] = {{"problem", moved.text}, {"device_class", moved.card.device_class}};
    driver_nights_[0] = at(0.25);
    driver_nights_[2] = at(0.9);
    replaced_night_ = at(0.95);
  }

  v1::Dependencies DependenciesOf(const Row& row, int night) const {
    v1::Dependencies dependencies;
    dependencies.set_source_hash(Sha256("source"));
    dependencies.set_toolchain(night >= toolchain_night_ ? "nvrtc 13.1" : "nvrtc 13.0");
    const char* const drivers[] = {"570.86.10", "580.65.06", "580.95.05", "590.44.01"};
    int driver = 0;
    for (const int changed : driver_nights_) driver += night >= changed ? 1 : 0;
    dependencies.set_driver(drivers[driver]);
    dependencies.set_device_fingerprint(row.card.device_class);
    return dependencies;
  }

  v1::Variant VariantOf(int number, int family = 0) const {
    v1::Variant variant;
    variant.set_family(family == 0 ? "attention_mma" : "attention_simt");
    const std::vector<std::pair<const char*, std::vector<int>>> parameters = {
        {"BLOCK_M", {64, 128, 256}}, {"BLOCK_N", {32, 64, 128}}, {"WARPS", {4, 8}},
        {"STAGES", {1, 2, 3, 4}},    {"KV_SPLITS", {1, 2, 4}},   {"SWIZZLE", {0, 1}}};
    std::string text = absl::StrCat(variant.family(), ":");
    int rest = number;
    for (const auto& [name, values] : parameters) {
      v1::ParameterValue& value = *variant.add_parameters();
      value.set_name(name);
      value.set_value(values[rest % values.size()]);
      rest /= static_cast<int>(values.size());
      absl::StrAppend(&text, text.back() == ':' ? "" : ",", name, "=", value.value());
    }
    variant.set_text(text);
    return variant;
  }

  v1::Timing TimingOf(double us) {
    v1::Timing timing;
    timing.set_median_us(us);
    timing.set_low_us(us * (1 - 0.002 - std::abs(Normal(0.0005))));
    timing.set_high_us(us * (1 + 0.002 + std::abs(Normal(0.0005))));
    timing.set_min_us(timing.low_us() * 0.999);
    timing.set_samples(20);
    timing.set_settled(true);
    timing.set_sm_clock_mhz(1980 - Draw(0, 40));
    timing.set_power_w(300 + Draw(0, 200));
    timing.set_temperature_c(40 + Draw(0, 30));
    return timing;
  }

  v1::Trial TrialOf(const Row& row, int night, const v1::Variant& variant, const v1::Timing& timing) {
    v1::Trial trial;
    *trial.mutable_problem() = ToProto(row.problem);
    trial.set_problem_text(row.text);
    trial.set_device_id(row.card.id);
    trial.set_device_uuid(row.card.uuid);
    trial.set_policy(v1::POLICY_HOT);
    trial.set_verdict(v1::VERDICT_OK);
    *trial.mutable_variant() = variant;
    *trial.mutable_timing() = timing;
    trial.mutable_accuracy()->set_max_abs_error(2e-4);
    trial.mutable_accuracy()->set_plain_max_abs_error(2e-4);
    trial.mutable_accuracy()->set_cases(5);
    trial.mutable_resources()->set_registers(128);
    trial.mutable_geometry()->set_ctas(row.problem.batch * row.problem.heads_q * row.problem.seq_q / 64);
    trial.mutable_geometry()->set_sm_count(row.place == 0 ? 58 : 132);
    trial.mutable_geometry()->set_ctas_per_sm(2);
    *trial.mutable_dependencies() = DependenciesOf(row, night);
    trial.set_job(absl::StrCat("operations/", night, "-", row.place));
    *trial.mutable_finish_time() = Stamp(TimeOf(night, 0));
    return trial;
  }

  // Promotes a variant that takes `us`, as a play-off of that night measured it.
  absl::Status Serve(Row& row, int night, double us, const std::string& why) {
    v1::Trial trial = TrialOf(row, night, VariantOf(row.variant), TimingOf(us * (1 + Normal(Noise()))));
    const auto name = store_.AppendTrial(trial, {});
    if (!name.ok()) return name.status();
    trial.set_name(*name);
    v1::Incumbent incumbent;
    *incumbent.mutable_problem() = trial.problem();
    incumbent.set_problem_text(row.text);
    incumbent.set_device_id(row.card.id);
    incumbent.set_policy(v1::POLICY_HOT);
    *incumbent.mutable_timing() = TimingOf(us * (1 + Normal(Noise())));
    *incumbent.mutable_trial() = std::move(trial);
    incumbent.set_job(absl::StrCat("operations/", night, "-", row.place));
    incumbent.set_why(why);
    *incumbent.mutable_promote_time() = Stamp(TimeOf(night, 1));
    const auto promoted = store_.Promote(incumbent, row.served.name(), {});
    if (!promoted.ok()) return promoted.status();
    row.served = *promoted;
    return absl::OkStatus();
  }

  absl::Status Baselines() {
    for (const Row& row : rows_) {
      for (const auto& [contender, factor] :
           {std::pair("torch-sdpa-flash 2.11", 1.3), {"torch-sdpa-cudnn 2.11", 0.95}}) {
        if (row.place == 0 && factor < 1) continue;  // only one class has it
        v1::Baseline baseline;
        *baseline.mutable_problem() = ToProto(row.problem);
        baseline.set_problem_text(row.text);
        baseline.set_device_id(row.card.id);
        baseline.set_policy(v1::POLICY_HOT);
        baseline.set_contender(contender);
        baseline.set_median_us(row.base_us * factor * (1 + 0.1 * std::abs(Normal(1))));
        *baseline.mutable_record_time() = Stamp(TimeOf(0, 60));
        if (const auto recorded = store_.RecordBaseline(baseline); !recorded.ok()) return recorded.status();
      }
    }
    return absl::OkStatus();
  }

  // One night of one class: its re-timings, promotions and report.
  absl::Status Sweep(int night, int place) {
    v1::Operation operation;
    operation.set_name(absl::StrCat("operations/", night, "-", place));
    operation.set_title(absl::StrCat("sweep ", absl::GetFlag(FLAGS_title), " on ", cards_[place].id));
    operation.set_state(v1::Operation::STATE_SUCCEEDED);
    operation.set_done(true);
    *operation.mutable_create_time() = Stamp(TimeOf(night, 0));
    v1::SweepReport& report = *operation.mutable_sweep();
    report.set_title(absl::GetFlag(FLAGS_title));
    report.set_device_id(cards_[place].id);
    int second = 10;
    for (size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      if (row.place != place || night >= row.last_night) continue;
      auto outcome = Night(row, i == replaced_ && night >= replaced_night_, night, second);
      if (!outcome.ok()) return outcome.status();
      *report.add_rows() = *std::move(outcome);
    }
    if (night == nights_) {  // what a report also has
      const auto add = [&](const char* problem, Outcome outcome, const char* detail) {
        v1::SweepReport::Row& row = *report.add_rows();
        row.set_problem(problem);
        row.set_outcome(outcome);
        row.set_detail(detail);
      };
      add("b1.h1.q1.kv777.d64.f16", v1::SweepReport::OUTCOME_FAILED, "no kernel family applies");
      add("b1.h1.q1.kv999.d64.f16", v1::SweepReport::OUTCOME_SKIPPED, "");
    }
    sweep::Complete(report);
    *operation.mutable_end_time() = Stamp(TimeOf(night, second));
    store::Job job;
    job.name = operation.name();
    job.kind = store::JobKind::kSweep;
    job.operation = operation;
    job.operation.set_done(false);
    job.operation.set_state(v1::Operation::STATE_RUNNING);
    if (const auto created = store_.queue().Create(job, {}); !created.ok()) return created.status();
    const auto leased = store_.queue().Lease(job.name, "fill_year", absl::Minutes(1));
    if (!leased.ok()) return leased.status();
    return store_.queue().Finish({job.name, (*leased)->epoch}, operation);
  }

  // One problem's night: cycles until the sweep's rule settles.
  absl::StatusOr<v1::SweepReport::Row> Night(Row& row, bool elsewhere, int night, int& second) {
    for (const Event& event : row.events) {
      if (event.kind != Event::Kind::kPromotion || event.from != night) continue;
      row.base_us *= event.factor;
      row.variant += 7;
      if (absl::Status status = Serve(row, night, row.TrueUs(night), "faster than the incumbent"); !status.ok()) {
        return status;
      }
    }
    const double true_us = row.TrueUs(night) * (elsewhere ? 1.04 : 1);
    const bool quiet = night > nights_ - 3;  // what happens to the last nights is known to be planted
    const bool contended = !quiet && Chance(0.02);
    const double hot = !quiet && Chance(0.01) ? 1 + 0.03 + 0.1 * std::abs(Normal(1)) : 1;
    const v1::Timing& before = row.served.timing();
    std::vector<sweep::Reading> readings;
    v1::SweepReport::Row out;
    out.set_problem(row.text);
    out.set_device_id(row.card.id);
    out.set_before_us(before.median_us());
    out.set_variant(row.served.trial().variant().text());
    while (true) {
      v1::Retiming retiming;
      retiming.set_problem_text(row.text);
      retiming.set_device_id(row.card.id);
      retiming.set_device_uuid(elsewhere ? "GPU-of-another-card" : row.card.uuid);
      if (elsewhere && row.card.uuid.empty()) retiming.set_device_id("cuda:7");
      retiming.set_policy(v1::POLICY_HOT);
      retiming.set_variant(out.variant());
      const double noisy = true_us * hot * (1 + Normal(Noise()));
      *retiming.mutable_timing() = TimingOf(contended ? noisy * (1 + std::abs(Normal(0.2))) : noisy);
      retiming.mutable_timing()->set_contended(contended);
      *retiming.mutable_dependencies() = DependenciesOf(row, night);
      retiming.set_job(absl::StrCat("operations/", night, "-", row.place));
      *retiming.mutable_finish_time() = Stamp(TimeOf(night, second++));
      if (const auto stored = store_.AppendRetiming(retiming, {}); !stored.ok()) return stored.status();
      out.set_after_us(retiming.timing().median_us());
      readings.push_back(sweep::Read(before, retiming.timing(), kRegression));
      if (elsewhere) {
        out.set_outcome(v1::SweepReport::OUTCOME_MOVED);
        out.clear_before_us();
        return out;
      }
      if (const auto outcome = sweep::Settle(readings); outcome.has_value()) {
        out.set_outcome(*outcome);
        return out;
      }
    }
  }

  // Of searches, with verdicts of every kind. Many threads, so that commits are shared.
  absl::Status Trials() {
    const int trials = absl::GetFlag(FLAGS_trials);
    constexpr int kThreads = 32;
    std::vector<absl::Status> statuses(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Year own(store_, cards_);
        own.random_.seed(absl::GetFlag(FLAGS_seed) * 1000 + t);
        for (int i = t; i < trials && statuses[t].ok(); i += kThreads)
          statuses[t] = own.AddTrial(rows_[i % rows_.size()], i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status AddTrial(const Row& row, int number) {
    const int place = number / 120 % 432;
    const v1::Variant variant = VariantOf(place, number % 5 == 4 ? 1 : 0);
    double us = row.base_us * (1.02 + 0.25 * std::abs(Normal(1)));
    for (const v1::ParameterValue& parameter : variant.parameters()) {
      if (parameter.name() == "STAGES" && parameter.value() == 1) us *= 1.3;
      if (parameter.name() == "SWIZZLE" && parameter.value() == 0) us *= 1.15;
    }
    v1::Trial trial = TrialOf(row, 0, variant, TimingOf(us));
    trial.set_compile_ms(200 + Draw(0, 300));
    const int kind = Draw(0, 99);
    if (kind < 8 && variant.parameters(0).value() == 256) {
      trial.set_verdict(v1::VERDICT_INFEASIBLE);
      trial.set_detail("spills 96 bytes");
      trial.clear_timing();
    } else if (kind < 10) {
      trial.set_verdict(kind == 8 ? v1::VERDICT_WRONG_RESULT : v1::VERDICT_TIMEOUT);
      trial.set_detail(kind == 8 ? "0.031 off at row 7" : "no answer in 10 s");
      trial.clear_timing();
    }
    return store_.AppendTrial(trial, {}).status();
  }

  static double Noise() { return absl::GetFlag(FLAGS_noise); }

  store::Store& store_;
  const std::vector<Card> cards_;
  std::mt19937_64 random_;
  const int nights_;
  const absl::Time first_;
  std::vector<Row> rows_;
  int driver_nights_[3] = {1 << 30, 1 << 30, 1 << 30};
  int toolchain_night_ = 1 << 30;
  size_t replaced_ = 0;
  int replaced_night_ = 1 << 30;
  Json truth_;
};

std::vector<Card> Cards() {
  std::vector<Card> cards;
  for (const std::string& text : absl::GetFlag(FLAGS_devices)) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 2));
    cards.push_back({parts[0], parts.size() > 1 ? parts[1] : "", parts.size() > 2 ? parts[2] : ""});
  }
  return cards;
}

int Main() {
  const std::vector<Card> cards = Cards();
  if (absl::GetFlag(FLAGS_data_dir).empty() || cards.size() != 2 || absl::GetFlag(FLAGS_problems) < 24 ||
      absl::GetFlag(FLAGS_problems) > 72 || absl::GetFlag(FLAGS_nights) < 20) {
    std::fprintf(stderr, "fill_year: needed are --data_dir, two --devices, 24 to 72 --problems, 20 --nights or more\n");
    return 2;
  }
  auto store = store::OpenSqliteStore({.directory = absl::GetFlag(FLAGS_data_dir)});
  if (!store.ok()) {
    std::fprintf(stderr, "fill_year: %s\n", store.status().ToString().c_str());
    return 1;
  }
  Year year(**store, cards);
  if (const absl::Status status = year.Fill(); !status.ok()) {
    std::fprintf(stderr, "fill_year: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("%s\n", year.Truth().dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return attune::Main();
}
