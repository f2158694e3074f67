// Tuners on two cards of a class.
#ifndef ATTUNE_SERVER_JOBS_TESTING_SEVERAL_CARDS_H_
#define ATTUNE_SERVER_JOBS_TESTING_SEVERAL_CARDS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/jobs/testing/gated_tuner.h"

namespace attune::jobs {

inline constexpr int kBlocks = 24;
inline constexpr int kVariants = 2 * kBlocks;
inline constexpr char kOther[] = "b1.h1.q256.d64.f16";

// 16, 17, ...
inline std::string Blocks() {
  std::vector<int> blocks(kBlocks);
  for (int i = 0; i < kBlocks; ++i) blocks[i] = 16 + i;
  return absl::StrJoin(blocks, ", ");
}

// The larger the block, the faster, one split before two; no two within 2 %.
inline double UsOf(const worker::v1::Candidate& candidate) {
  int block = 0;
  EXPECT_TRUE(absl::SimpleAtoi(Seen(candidate).substr(0, 2), &block));
  const bool splits = candidate.recipe().launches(0).grid().x() > (128 + block - 1) / block;
  return 10.0 * (3 * (16 + kBlocks - block) + (splits ? 1 : 0) + 10);
}
inline constexpr char kFastest[] = "tiles:BLOCK=39,SPLITS=1";

class SeveralCardsTest : public GatedTunerTest {
 protected:
  using Trying = supervisor::FakeDeviceWorker::Trying;

  SeveralCardsTest() {
    for (supervisor::FakeDeviceWorker* card : {&device_, &sister_}) card->ScriptUs(UsOf);
  }
  static v1::Device Sister() {
    v1::Device device = catalog::FakeDevice();
    device.set_id("cuda:1");
    device.set_uuid("GPU-1");
    return device;
  }
  void StartTwo() {
    others_ = {&sister_};
    Start(Families(SearchFamily("many", Blocks())));
  }
  static v1::TuneRequest OnCards(int cards, const std::string& problem = kProblem) {
    v1::TuneRequest request = TuneRequest(problem);
    request.set_cards(cards);
    return request;
  }
  static v1::TuneRequest On(const std::string& device, const std::string& problem) {
    v1::TuneRequest request = TuneRequest(problem);
    request.set_device_id(device);
    return request;
  }
  static Trying Sleeping(const supervisor::FakeDeviceWorker& card, absl::Duration time) {
    return [&card, time](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      absl::SleepFor(time);
      return card.Good(request.candidate());
    };
  }
  static Trying Losing() {
    return [](const worker::v1::TrialRequest&) -> absl::StatusOr<worker::v1::TrialResponse> {
      absl::SleepFor(absl::Milliseconds(20));
      return absl::UnavailableError("the GPU is lost");
    };
  }
  // Each trial of the sister waits at the gate.
  void GateSister() {
    sister_.ScriptTrial([this](const worker::v1::TrialRequest& request) -> absl::StatusOr<worker::v1::TrialResponse> {
      gate_.Pass();
      return sister_.Good(request.candidate());
    });
  }
  std::multiset<std::string> TriedOn(const std::string& device_id, const std::string& problem = kProblem) {
    std::multiset<std::string> tried;
    for (const v1::Trial& trial : store_.trials()) {
      if (trial.device_id() == device_id && trial.problem_text() == problem) tried.insert(trial.variant().text());
    }
    return tried;
  }
  void ExpectAllTried() { EXPECT_THAT(Tries(), ::testing::SizeIs(kVariants)); }

  supervisor::FakeDeviceWorker sister_{Sister()};
};

}  // namespace attune::jobs

#endif  // ATTUNE_SERVER_JOBS_TESTING_SEVERAL_CARDS_H_
