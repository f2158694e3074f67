#include "server/catalog/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/catalog/explain.h"
#include "server/catalog/testing/fake_host.h"
#include "server/space/space.h"
#include "server/store/testing/fake_store.h"

namespace attune::catalog {
namespace {

using ::testing::HasSubstr;

// Splits up to 8, but never more than there are tiles of 16 keys, and no more than two once many queries keep all SMs
// busy.
std::shared_ptr<const space::Family> SplitFamily() {
  return MakeFamily(R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK_M" values: [16, 64] binding: BINDING_COMPILE_TIME }
    parameters { name: "KV_SPLITS" values: [1, 2, 4, 8] binding: BINDING_LAUNCH_TIME }
    constraints { expr: "KV_SPLITS * 16 <= seq_kv" reason: "a split without keys" }
    constraints { expr: "KV_SPLITS <= 2 || seq_q < 4096" reason: "enough CTAs without" advice: true }
    launches { entry: "attention" grid_x: "ceil_div(seq_q, BLOCK_M) * KV_SPLITS" block_x: "128" main: true })",
                    "source one");
}

class MovesTest : public ::testing::Test {
 protected:
  // On a card of 58 SMs; us 0: a wrong result.
  v1::Trial TrialOf(int64_t block, int64_t splits, double us, const std::string& problem = "b1.h1.q64.kv64.d64.f16") {
    v1::Trial trial;
    trial.set_name(absl::StrCat("trials/", ++number_));
    *trial.mutable_problem() = ToProto(*ParseProblem(problem));
    trial.set_problem_text(ToText(*ParseProblem(problem)));
    trial.set_device_id("cuda:0");
    trial.set_policy(v1::POLICY_HOT);
    *trial.mutable_variant() = space::Variant{family_, {block, splits}}.ToProto();
    trial.set_verdict(us > 0 ? v1::VERDICT_OK : v1::VERDICT_WRONG_RESULT);
    trial.mutable_timing()->set_median_us(us);
    trial.mutable_timing()->set_low_us(us * 0.99);
    trial.mutable_timing()->set_high_us(us * 1.01);
    trial.mutable_geometry()->set_ctas((64 + block - 1) / block * splits);
    trial.mutable_geometry()->set_sm_count(58);
    trial.mutable_dependencies()->set_source_hash("source one");
    return trial;
  }

  const std::shared_ptr<const space::Family> family_ = SplitFamily();
  const v1::Device device_ = FakeDevice();
  int number_ = 0;
  const Idea more_splits_{.parameter = "KV_SPLITS", .direction = Direction::kRaise};
  const Idea smaller_tiles_{.parameter = "BLOCK_M", .direction = Direction::kLower};
};

TEST_F(MovesTest, WhatNobodyTriedIsAdvisedOnlyWhereItIsFeasible) {
  const v1::Trial trial = TrialOf(64, 1, 10);
  const Moves moves(trial, family_, device_, {});
  EXPECT_EQ(moves.Advice({more_splits_}), "raise KV_SPLITS from 1 to 2, which has not been tried");
  const auto towards = [&](int64_t value) {
    Idea idea = more_splits_;
    idea.towards = value;
    return moves.Advice({idea});
  };
  EXPECT_EQ(towards(4), "raise KV_SPLITS from 1 to 4, which has not been tried");
  EXPECT_EQ(towards(58), "raise KV_SPLITS from 1 to 4, which has not been tried") << "8 splits have no keys";
  EXPECT_EQ(moves.Proven({more_splits_}), "");
}

TEST_F(MovesTest, NothingIsAdvisedThatTheFamilyAdvisesAgainst) {
  const v1::Trial trial = TrialOf(64, 1, 10, "b1.h1.q4096.d64.f16");
  Idea many = more_splits_;
  many.towards = 8;
  EXPECT_EQ(Moves(trial, family_, device_, {}).Advice({many}), "raise KV_SPLITS from 1 to 2, which has not been tried");
}

TEST_F(MovesTest, APartlyFilledLastWaveIsAReasonForNothingThatWasNotFaster) {
  v1::Trial trial = TrialOf(64, 1, 10);
  trial.mutable_geometry()->set_ctas(60);
  trial.mutable_geometry()->set_waves(1.03);
  const auto of_grid = [&](const std::vector<v1::Trial>& others) {
    const v1::ExplainResponse response = Explain(trial, device_, 0, Moves(trial, family_, device_, others));
    for (const auto& finding : response.findings()) {
      if (finding.bound() == v1::ExplainResponse::BOUND_GRID) return finding.advice();
    }
    return std::string("no such finding");
  };
  EXPECT_EQ(of_grid({}), "");
  EXPECT_THAT(of_grid({TrialOf(64, 2, 8)}), HasSubstr("raise KV_SPLITS from 1 to 2, which took 8 us"));
}

TEST_F(MovesTest, WhereNothingIsFeasibleTheNextIdeaIsTaken) {
  const v1::Trial trial = TrialOf(64, 4, 10);
  const Moves moves(trial, family_, device_, {});
  EXPECT_EQ(moves.Advice({more_splits_, smaller_tiles_}), "lower BLOCK_M from 64 to 16, which has not been tried");
  EXPECT_EQ(moves.Advice({more_splits_}), "");
  EXPECT_EQ(moves.Advice({{.parameter = "WARPS", .direction = Direction::kRaise}}), "") << "it has no such parameter";
}

TEST_F(MovesTest, ANeighbourThatWasFasterComesFirst) {
  const v1::Trial trial = TrialOf(64, 1, 10);
  const std::vector<v1::Trial> others = {TrialOf(64, 2, 8), TrialOf(64, 4, 7), TrialOf(16, 4, 1)};
  const Moves moves(trial, family_, device_, others);
  EXPECT_EQ(moves.Advice({smaller_tiles_, more_splits_}), "raise KV_SPLITS from 1 to 4, which took 7 us (trials/3)")
      << "the variant of trial 4 differs in two parameters";
  EXPECT_EQ(moves.TriedInVain({smaller_tiles_, more_splits_}), "");
}

TEST_F(MovesTest, NothingIsAdvisedThatTrialsSpeakAgainst) {
  const v1::Trial trial = TrialOf(64, 1, 10);
  const std::vector<v1::Trial> others = {trial, TrialOf(64, 2, 9.9), TrialOf(64, 4, 0)};
  const Moves moves(trial, family_, device_, others);
  EXPECT_EQ(moves.Advice({more_splits_}), "") << "9.9 us are within the noise, and the other was wrong";
  EXPECT_EQ(moves.TriedInVain({more_splits_}), "KV_SPLITS 2 and 4 instead of 1: tried, and no faster");
  EXPECT_EQ(moves.Advice({more_splits_, smaller_tiles_}), "lower BLOCK_M from 64 to 16, which has not been tried");
}

TEST_F(MovesTest, OfAFamilyThatHasChangedOnlyWhatWasTriedIsKnown) {
  const v1::Trial trial = TrialOf(64, 1, 10);
  EXPECT_EQ(Moves(trial, nullptr, device_, {}).Advice({more_splits_}), "");
  const std::vector<v1::Trial> others = {TrialOf(64, 2, 8)};
  EXPECT_EQ(Moves(trial, nullptr, device_, others).Advice({more_splits_}),
            "raise KV_SPLITS from 1 to 2, which took 8 us (trials/2)");
}

TEST_F(MovesTest, AStoredTrialIsExplainedBesideItsNeighbours) {
  store::FakeStore store;
  const auto add = [&](const v1::Trial& trial) { return *store.AppendTrial(trial, {}); };
  const std::string name = add(TrialOf(64, 1, 10));
  const Host host = FakeHost(Families(family_));
  const auto advice = [&] {
    const absl::StatusOr<v1::ExplainResponse> explained = ExplainStored(name, store, host);
    EXPECT_TRUE(explained.ok()) << explained.status();
    EXPECT_EQ(explained->findings(0).bound(), v1::ExplainResponse::BOUND_GRID);
    return explained->findings(0).advice();
  };
  EXPECT_EQ(advice(), "raise KV_SPLITS from 1 to 4, which has not been tried") << "towards 58";
  v1::Trial former = TrialOf(64, 4, 5);
  former.mutable_dependencies()->set_source_hash("former source");
  add(former);
  EXPECT_EQ(advice(), "raise KV_SPLITS from 1 to 4, which has not been tried") << "with these sources";
  add(TrialOf(64, 2, 8));
  EXPECT_THAT(advice(), HasSubstr("raise KV_SPLITS from 1 to 2, which took 8 us"));
}

}  // namespace
}  // namespace attune::catalog
