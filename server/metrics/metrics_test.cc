#include "server/metrics/metrics.h"

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "server/metrics/exposer.h"

namespace attune::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  std::string Text() const { return prometheus::TextSerializer().Serialize(metrics_.Collect()); }

  Metrics metrics_{
      "1.2.3", {{"attune.v1.AttuneService", "GetBest", false}, {"attune.v1.AttuneService", "WatchOperation", true}}};
};

v1::Problem ProblemOf(v1::Mask mask, int64_t seq_q, int64_t seq_kv) {
  v1::Problem problem;
  problem.set_dtype(v1::DTYPE_F16);
  problem.set_mask(mask);
  problem.set_seq_q(seq_q);
  problem.set_seq_kv(seq_kv);
  return problem;
}

TEST_F(MetricsTest, CallsAreCountedByMethodCodeAndTime) {
  metrics_.calls().Begun(0);
  metrics_.calls().Begun(0);
  metrics_.calls().Ended(0, 0, absl::Microseconds(60));
  metrics_.calls().Ended(0, 5, absl::Seconds(20));
  metrics_.calls().Ended(1, 99, absl::ZeroDuration());
  const std::string text = Text();
  const std::string best = R"(grpc_type="unary",grpc_service="attune.v1.AttuneService",grpc_method="GetBest")";
  const std::string watch =
      R"(grpc_type="server_stream",grpc_service="attune.v1.AttuneService",grpc_method="WatchOperation")";
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_started_total{", best, "} 2\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handled_total{", best, R"(,grpc_code="OK"} 1)", "\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handled_total{", best, R"(,grpc_code="NotFound"} 1)", "\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handled_total{", watch, R"(,grpc_code="Unknown"} 1)", "\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_count{", best, "} 2\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_bucket{", best, R"(,le="5e-05"} 0)")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_bucket{", best, R"(,le="0.0001"} 1)")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_bucket{", best, R"(,le="10"} 1)")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_bucket{", best, R"(,le="+Inf"} 2)")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_sum{", best, "} 20.00006\n")));
}

TEST_F(MetricsTest, AnswersAreCountedByProvenanceAndMissesByShape) {
  const v1::Problem decode = ProblemOf(v1::MASK_NONE, 1, 4096);
  const v1::Problem prefill = ProblemOf(v1::MASK_CAUSAL_BOTTOM_RIGHT, 512, 4096);
  metrics_.answers().Of(decode, v1::PROVENANCE_EXACT).Count();
  metrics_.answers().Of(decode, v1::PROVENANCE_STALE).Count();
  const AnswerKind kept = metrics_.answers().Of(decode, v1::PROVENANCE_NEAREST);
  kept.Count();
  kept.Count();
  metrics_.answers().Of(prefill, std::nullopt).Count();
  AnswerKind().Count();
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attune_answers_total{provenance=\"exact\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_answers_total{provenance=\"nearest\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("attune_answers_total{provenance=\"none\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_misses_total{dtype=\"f16\",mask=\"none\",phase=\"decode\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("attune_misses_total{dtype=\"f16\",mask=\"causal\",phase=\"prefill\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_misses_total{dtype=\"bf16\",mask=\"window\",phase=\"decode\"} 0\n"));
}

TEST_F(MetricsTest, OneQueryOfOneKeyIsNoDecodeStep) {
  metrics_.answers().Of(ProblemOf(v1::MASK_NONE, 1, 1), v1::PROVENANCE_HEURISTIC).Count();
  EXPECT_THAT(Text(), HasSubstr("attune_misses_total{dtype=\"f16\",mask=\"none\",phase=\"prefill\"} 1\n"));
}

TEST_F(MetricsTest, JobsOfCardsOfAClassAreAddedUpWhileThereIsSomebodyToAsk) {
  EXPECT_THAT(Text(), Not(HasSubstr("attune_jobs_waiting")));
  metrics_.jobs().loads().Set([] {
    return std::vector<JobLoad>{{"l4", "background", 3, 1}, {"l4", "background", 2, 1}, {"l4", "idle", 0, 0}};
  });
  EXPECT_THAT(Text(), HasSubstr("attune_jobs_waiting{device_class=\"l4\",priority=\"background\"} 5\n"));
  EXPECT_THAT(Text(), HasSubstr("attune_jobs_running{device_class=\"l4\",priority=\"background\"} 2\n"));
  metrics_.jobs().loads().Clear();
  EXPECT_THAT(Text(), Not(HasSubstr("attune_jobs_waiting")));
}

TEST_F(MetricsTest, ASweepsOutcomesAreThoseOfTheLastOne) {
  v1::Operation sweep;
  sweep.set_state(v1::Operation::STATE_SUCCEEDED);
  sweep.mutable_progress()->mutable_elapsed()->set_seconds(100);
  sweep.mutable_sweep()->add_rows()->set_outcome(v1::SweepReport::OUTCOME_SLOWER);
  sweep.mutable_sweep()->add_rows()->set_outcome(v1::SweepReport::OUTCOME_SAME);
  metrics_.jobs().Ended("sweep", sweep);
  EXPECT_THAT(Text(), HasSubstr("attune_jobs_total{kind=\"sweep\",state=\"succeeded\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("attune_sweep_problems{outcome=\"slower\"} 1\n"));
  v1::Operation part;
  part.set_state(v1::Operation::STATE_SUCCEEDED);
  part.set_parent("operations/1");
  part.mutable_sweep()->add_rows()->set_outcome(v1::SweepReport::OUTCOME_SAME);
  metrics_.jobs().Ended("sweep_problem", part);
  EXPECT_THAT(Text(), HasSubstr("attune_sweep_problems{outcome=\"slower\"} 1\n")) << "a part is no sweep";
  sweep.mutable_sweep()->mutable_rows(0)->set_outcome(v1::SweepReport::OUTCOME_SAME);
  metrics_.jobs().Ended("sweep", sweep);
  EXPECT_THAT(Text(), HasSubstr("attune_sweep_problems{outcome=\"slower\"} 0\n"));
  EXPECT_THAT(Text(), HasSubstr("attune_sweep_problems{outcome=\"same\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("attune_job_seconds_sum{kind=\"sweep\"} 200\n"));
}

TEST_F(MetricsTest, TrialsOfFamiliesThatNobodyNamedShareOneLabel) {
  metrics_.store().SetFamilies({"attention_mma"});
  v1::Trial trial;
  trial.set_verdict(v1::VERDICT_WRONG_RESULT);
  trial.mutable_variant()->set_family("attention_mma");
  metrics_.store().Recorded(trial);
  for (int i = 0; i < 3; ++i) {
    trial.mutable_variant()->set_family(absl::StrCat("stranger", i));
    metrics_.store().Recorded(trial);
  }
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attune_trials_total{family=\"attention_mma\",verdict=\"wrong_result\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_trials_total{family=\"other\",verdict=\"wrong_result\"} 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("stranger")));
}

TEST_F(MetricsTest, HostsAreCountedByStateAsTheLastBeatFoundThem) {
  EXPECT_THAT(Text(), Not(HasSubstr("attune_hosts{"))) << "before the first";
  std::vector<v1::Host> hosts(5);
  hosts[0].set_state(v1::Host::STATE_LIVE);
  hosts[1].set_state(v1::Host::STATE_LIVE);
  hosts[1].set_draining(true);
  hosts[2].set_state(v1::Host::STATE_LOST);
  hosts[2].set_draining(true);  // that it did is of no more use
  hosts[3].set_state(v1::Host::STATE_LOST);
  hosts[4].set_state(v1::Host::STATE_STOPPED);
  metrics_.hosts().Set(hosts);
  for (const char* line : {"live\"} 1", "draining\"} 1", "lost\"} 2", "stopped\"} 1"}) {
    EXPECT_THAT(Text(), HasSubstr(absl::StrCat("attune_hosts{state=\"", line)));
  }
  hosts.resize(2);
  metrics_.hosts().Set(hosts);
  EXPECT_THAT(Text(), HasSubstr("attune_hosts{state=\"lost\"} 0")) << "they were forgotten";
}

TEST_F(MetricsTest, ADeviceIsAsItsLastTimingSawIt) {
  v1::Timing timing;
  timing.set_samples(100);
  metrics_.workers().Saw("opencl:0", timing);
  EXPECT_THAT(Text(), Not(HasSubstr("attune_device_sm_clock_hertz{device=\"opencl:0\"}"))) << "nobody knows it";
  timing.set_sm_clock_mhz(1980);
  timing.set_power_w(345.5);
  timing.set_temperature_c(61);
  timing.set_throttle_reasons(0x4 | 0x1);
  timing.set_discarded(7);
  timing.set_contended(true);
  metrics_.workers().Saw("cuda:0", timing);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attune_device_sm_clock_hertz{device=\"cuda:0\"} 1980000000\n"));
  EXPECT_THAT(text, HasSubstr("attune_device_power_watts{device=\"cuda:0\"} 345.5\n"));
  EXPECT_THAT(text, HasSubstr("attune_device_throttled{device=\"cuda:0\",reason=\"power_cap\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_device_throttled{device=\"cuda:0\",reason=\"hw_thermal\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("attune_device_contended_timings_total{device=\"cuda:0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_device_discarded_samples_total{device=\"cuda:0\"} 7\n"));
}

TEST_F(MetricsTest, AFailedRetentionLeavesTheTimeOfTheLastThatDidNot) {
  metrics_.store().Retained(Removed{.trials = 5}, 1000, absl::FromUnixSeconds(100));
  metrics_.store().Retained(std::nullopt, 0, absl::FromUnixSeconds(200));
  EXPECT_THAT(Text(), HasSubstr("attune_retention_last_success_timestamp_seconds 100\n"));
  EXPECT_THAT(Text(), HasSubstr("attune_retention_runs_total{result=\"failed\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("attune_retention_removed_total{what=\"trials\"} 5\n"));
}

TEST_F(MetricsTest, ExposesNothingButMetricsAndSaysWhereItCannot) {
  const auto metrics = std::make_shared<Metrics>("1", std::vector<CallMethod>());
  const auto exposer = Exposer::Start("127.0.0.1", 0, metrics);
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const int port = std::stoi((*exposer)->address().substr((*exposer)->address().rfind(':') + 1));
  EXPECT_GT(port, 0);
  const absl::Status taken = Exposer::Start("127.0.0.1", port, metrics).status();
  EXPECT_TRUE(absl::IsUnavailable(taken)) << taken;
  EXPECT_THAT(taken.message(), HasSubstr(absl::StrCat("127.0.0.1:", port)));
}

// Everything that can be exposed, as "name type label label".
std::set<std::string> Exposed(Metrics& metrics) {
  const v1::Problem problem = ProblemOf(v1::MASK_NONE, 1, 2);
  metrics.calls().Ended(0, 0, absl::ZeroDuration());
  metrics.answers().Of(problem, std::nullopt).Count();
  v1::Operation sweep;
  sweep.mutable_sweep()->add_rows()->set_outcome(v1::SweepReport::OUTCOME_NEW);
  metrics.jobs().Ended("sweep", sweep);
  metrics.jobs().Waited("l4", "background", absl::Seconds(1));
  metrics.jobs().SweepSucceeded(absl::Now());
  metrics.jobs().OnMiss("started");
  metrics.jobs().loads().Set([] { return std::vector<JobLoad>{{"l4", "idle", 0, 0}}; });
  metrics.store().SetFamilies({"f"});
  metrics.store().Retained(Removed{}, 1, absl::Now());
  metrics.store().SetFiles({.newest_backup = absl::Now()});
  metrics.store().writer().Set([] { return WriterState{}; });
  metrics.hosts().Set({v1::Host()});
  metrics.workers().SetDevices({v1::Device()});
  metrics.workers().Lost("compile", "fault");
  metrics.workers().Compiled(v1::VERDICT_OK, 1);
  metrics.workers().Called("d", "trial", absl::Seconds(1));
  metrics.workers().Checked("d", 1);
  metrics.workers().Timed("d", 1);
  v1::Timing timing;
  timing.set_sm_clock_mhz(1);
  metrics.workers().Saw("d", timing);
  constexpr const char* kTypes[] = {"counter", "gauge", "summary", "untyped", "histogram"};
  std::set<std::string> exposed;
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    std::set<std::string> labels;
    for (const auto& metric : family.metric) {
      for (const auto& label : metric.label) labels.insert(label.name);
    }
    exposed.insert(absl::StrCat(family.name, " ", kTypes[static_cast<int>(family.type)], labels.empty() ? "" : " ",
                                absl::StrJoin(labels, " ")));
    EXPECT_FALSE(family.help.empty()) << family.name;
  }
  return exposed;
}

// The rows of docs/metrics.md, "| `name` | type | labels | ...", but for those of prometheus-cpp itself.
std::set<std::string> Documented() {
  std::ifstream file(ATTUNE_SOURCE_DIR "/docs/metrics.md");
  std::set<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `") || absl::StartsWith(line, "| `exposer_")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    const auto cell = [&cells](size_t i) {
      return std::string(absl::StripAsciiWhitespace(absl::StrReplaceAll(cells.at(i), {{"`", ""}, {",", " "}})));
    };
    const std::vector<std::string> named = absl::StrSplit(cell(3), ' ', absl::SkipEmpty());
    const std::set<std::string> labels(named.begin(), named.end());
    documented.insert(absl::StrCat(cell(1), " ", cell(2), labels.empty() ? "" : " ", absl::StrJoin(labels, " ")));
  }
  return documented;
}

TEST_F(MetricsTest, AreThoseThatTheDocumentHas) {
  const std::set<std::string> exposed = Exposed(metrics_);
  const std::set<std::string> documented = Documented();
  for (const std::string& one : exposed) EXPECT_TRUE(documented.contains(one)) << "not in docs/metrics.md: " << one;
  for (const std::string& one : documented) EXPECT_TRUE(exposed.contains(one)) << "nobody exposes: " << one;
}

}  // namespace
}  // namespace attune::metrics
