#include "server/trials/trial_claims.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <stop_token>
#include <utility>

namespace attune::trials {
namespace {

store::TrialKey Key(const std::string& variant) {
  store::TrialKey key;
  key.problem_text = "b1.h1.q128.d64.f16";
  key.device.id = "cuda:0";
  key.variant_text = variant;
  return key;
}

TEST(TrialClaims, AClaimKeepsOthersFromItUntilItEnds) {
  TrialClaims claims;
  std::optional<TrialClaims::Claim> first = claims.Take(Key("tiles:BLOCK=16"));
  claims.Take(Key("tiles:BLOCK=32"));
  std::promise<void> taking;
  std::future<void> second = std::async(std::launch::async, [&] {
    taking.set_value();
    claims.Take(Key("tiles:BLOCK=16"));
  });
  taking.get_future().wait();
  TrialClaims::Claim moved = *std::move(first);
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);  // it never comes back
  moved = TrialClaims::Claim();
  second.get();
}

TEST(TrialClaims, WhoIsStoppedWaitsNoLonger) {
  TrialClaims claims;
  const auto held = claims.Take(Key("tiles:BLOCK=16"));
  std::stop_source stop;
  std::future<bool> second =
      std::async(std::launch::async, [&] { return claims.Take(Key("tiles:BLOCK=16"), stop.get_token()).has_value(); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  stop.request_stop();
  EXPECT_FALSE(second.get());
}

TEST(TrialClaims, AClaimIsOfOnePolicyAndOneSetOfDependencies) {
  TrialClaims claims;
  const auto hot = claims.Take(Key("tiles:BLOCK=16"));
  store::TrialKey cold = Key("tiles:BLOCK=16");
  cold.policy = v1::POLICY_COLD;
  const auto other_policy = claims.Take(cold);
  store::TrialKey newer = Key("tiles:BLOCK=16");
  newer.dependencies.set_driver("590.1");
  const auto other_driver = claims.Take(newer);
}

}  // namespace
}  // namespace attune::trials
