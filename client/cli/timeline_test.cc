#include "client/cli/timeline.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/testing/fake_attune.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSecond = 1790000000;

v1::Trial TrialAt(int64_t second, double check_ms, double time_ms) {
  v1::Trial trial = attune::testing::CannedTrial(1);
  trial.set_device_id("cuda:0");
  trial.mutable_finish_time()->set_seconds(second);
  trial.mutable_cost()->set_check_ms(check_ms);
  trial.mutable_cost()->set_time_ms(time_ms);
  return trial;
}

// "name of the track: name of the span, begin and length in ms since kSecond".
std::vector<std::string> Spans(const Json& timeline) {
  std::map<int, std::string> tracks;
  std::vector<std::string> spans;
  for (const Json& event : timeline["traceEvents"]) {
    const int track = event["tid"];
    if (event["name"] == "thread_name") tracks[track] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    const std::string name = event["name"];
    const double begin = event["ts"], micros = event["dur"];
    spans.push_back(absl::StrCat(tracks[track], ": ", name.substr(0, name.find(':')), " ",
                                 std::lround((begin - 1e6 * kSecond) / 1000), "+", std::lround(micros / 1000)));
  }
  return spans;
}

TEST(Timeline, ATrialHasItsCheckAndItsTimeInside) {
  EXPECT_THAT(Spans(TimelineJson(v1::Operation(), {TrialAt(kSecond + 1, 30, 20)})),
              ElementsAre("cuda:0: attention_wmma 950+50", "cuda:0: check 950+30", "cuda:0: time 980+20"));
}

TEST(Timeline, ACodeOfSeveralTrialsIsCompiledOnce) {
  std::vector<v1::Trial> trials;
  for (int worker : {3, 3, 4}) {
    v1::Trial& trial = trials.emplace_back(TrialAt(kSecond + 1, 0, 0));
    trial.set_compile_ms(700);
    trial.mutable_cost()->mutable_compile_begin()->set_seconds(kSecond);
    trial.mutable_cost()->set_compile_worker(worker);
  }
  EXPECT_THAT(Spans(TimelineJson(v1::Operation(), trials)),
              ElementsAre("compile worker 3: attention_wmma 0+700", "compile worker 4: attention_wmma 0+700"));
}

TEST(Timeline, APhaseLastsUntilTheNextAndTheLastUntilTheEnd) {
  v1::Operation operation;
  operation.set_title("tune b2.h8.q512.d64.f16 on cuda:0");
  int64_t second = kSecond;
  for (auto phase : {v1::OperationProgress::PHASE_REFERENCE, v1::OperationProgress::PHASE_TRIALS}) {
    v1::PhaseBegin& begin = *operation.mutable_progress()->add_phases();
    begin.set_phase(phase);
    begin.mutable_time()->set_seconds(second++);
  }
  operation.mutable_end_time()->set_seconds(kSecond + 4);
  EXPECT_THAT(Spans(TimelineJson(operation, {})), ElementsAre("tune b2.h8.q512.d64.f16 on cuda:0: reference 0+1000",
                                                              "tune b2.h8.q512.d64.f16 on cuda:0: trials 1000+3000"));
}

TEST(Timeline, WhatWasNotRunOnACardHasNoSpanThere) {
  v1::Trial trial = attune::testing::CannedTrial(1);
  trial.clear_cost();
  EXPECT_THAT(Spans(TimelineJson(v1::Operation(), {trial})), ElementsAre());
}

}  // namespace
}  // namespace attune::cli
