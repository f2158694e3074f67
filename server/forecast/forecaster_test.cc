#include "server/forecast/forecaster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/base/device_profile.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/catalog/tuning_key.h"
#include "server/forecast/testing/blocks.h"
#include "server/store/testing/fake_store.h"

namespace attune::forecast {
namespace {

using ::testing::HasSubstr;

class ForecasterTest : public ::testing::Test {
 protected:
  // Tunes a problem: each variant takes so much more, the farther its block is from `best`.
  void Tune(const std::string& text, int64_t best) {
    catalog::TuningKey key;
    key.problem = *ParseProblem(text);
    key.problem_text = text;
    key.device = host_.devices.front();
    key.toolchain = "fakec 1.0";
    for (int64_t block : {16, 32, 48, 64, 80, 96, 112, 128}) {
      for (int64_t keys : {16, 32, 64}) {
        v1::Trial trial;
        *trial.mutable_problem() = ToProto(key.problem);
        trial.set_problem_text(text);
        trial.set_device_id("cuda:0");
        trial.set_policy(v1::POLICY_HOT);
        trial.mutable_variant()->set_family("blocks");
        trial.mutable_variant()->set_text(absl::StrCat("blocks:BLOCK_M=", block, ",BLOCK_N=", keys));
        trial.set_verdict(v1::VERDICT_OK);
        trial.mutable_timing()->set_median_us(100 + 4 * std::abs(static_cast<double>(block - best)) + 64.0 / keys);
        trial.set_job("operations/1");
        *trial.mutable_dependencies() = catalog::DependenciesOf(*family_, key);
        const absl::StatusOr<std::string> name = store_.AppendTrial(trial, {});
        ASSERT_TRUE(name.ok()) << name.status();
        if (block != best || keys != 64) continue;
        v1::Incumbent incumbent;
        *incumbent.mutable_trial() = trial;
        incumbent.mutable_trial()->set_name(*name);
        const auto promoted = store_.Promote(incumbent, "", {});
        ASSERT_TRUE(promoted.ok()) << promoted.status();
      }
    }
  }
  void TuneThree() {
    Tune("b1.h8.q256.d64.f16", 64);
    Tune("b1.h8.q512.d64.f16", 64);
    Tune("b1.h8.q1024.d64.f16", 64);
  }
  // Once it was worked out.
  std::optional<catalog::Forecast> Forecast(Forecaster& forecaster, const std::string& text) {
    const Problem problem = *ParseProblem(text);
    forecaster.Ask(problem, host_.devices.front(), v1::POLICY_HOT);
    forecaster.Settle();
    return forecaster.Ask(problem, host_.devices.front(), v1::POLICY_HOT);
  }

  const std::shared_ptr<const space::Family> family_ = Blocks();
  const Forecaster::Options kFew = {.least_shapes = 3};
  catalog::Host host_ = catalog::FakeHost(catalog::Families(family_));
  store::FakeStore store_;
};

TEST_F(ForecasterTest, ExpectsWhatLikeProblemsFoundFast) {
  TuneThree();
  Forecaster forecaster(store_, host_, kFew);
  const uint64_t version = forecaster.version();
  EXPECT_FALSE(forecaster.Ask(*ParseProblem("b1.h8.q700.d64.f16"), host_.devices.front(), v1::POLICY_HOT).has_value())
      << "nobody waits for it";
  const auto forecast = Forecast(forecaster, "b1.h8.q700.d64.f16");
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->variant.ToText(), "blocks:BLOCK_M=64,BLOCK_N=64");
  EXPECT_EQ(forecast->problems, 3);
  EXPECT_GT(forecast->among, 8);
  EXPECT_GT(forecaster.version(), version);
}

TEST_F(ForecasterTest, OfAProblemLikeNoneNothingIsExpected) {
  TuneThree();
  Forecaster forecaster(store_, host_, kFew);
  EXPECT_FALSE(Forecast(forecaster, "b1.h8.q700.d128.f16").has_value());
}

TEST_F(ForecasterTest, OfTooLittleNothingIsExpected) {
  Tune("b1.h8.q256.d64.f16", 64);
  Tune("b1.h8.q512.d64.f16", 64);
  Forecaster forecaster(store_, host_, kFew);
  EXPECT_FALSE(Forecast(forecaster, "b1.h8.q700.d64.f16").has_value());
}

TEST_F(ForecasterTest, LearnsAnewFromWhatIsServedSince) {
  TuneThree();
  Forecaster forecaster(store_, host_, {.least_shapes = 3, .hold = absl::ZeroDuration()});
  ASSERT_TRUE(Forecast(forecaster, "b1.h8.q700.d64.f16").has_value());
  forecaster.Settle();  // who asks has it looked at again, which must not be while others are tuned
  Tune("b1.h8.q640.d64.f16", 96);
  Tune("b1.h8.q720.d64.f16", 96);
  Tune("b1.h8.q800.d64.f16", 96);
  const auto forecast = Forecast(forecaster, "b1.h8.q700.d64.f16");
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->variant.values[0], 96);
  EXPECT_EQ(forecast->problems, 6);
}

// Of a table of three problems one was tuned here, with another result.
TEST_F(ForecasterTest, LearnsFromWhatWasShippedWhatWasNotTunedHere) {
  const auto shipped_for = [&](const std::string& model) {
    catalog::PriorTable table;
    table.device_model = model;
    table.family = family_->name();
    table.source_hash = family_->source_hash;
    table.parameters = {"BLOCK_M", "BLOCK_N"};
    for (const char* text : {"b1.h8.q256.d64.f16", "b1.h8.q512.d64.f16", "b1.h8.q1024.d64.f16"}) {
      catalog::PriorTable::Tuned& tuned = table.tuned.emplace_back();
      tuned.problem = *ParseProblem(text);
      for (int64_t keys : {64, 32, 16}) {
        for (int64_t block : {96, 80, 112, 64, 128, 48, 32, 16}) {
          tuned.rows.push_back({100 + 40 * static_cast<double>(tuned.rows.size()), {block, keys}});
        }
      }
      tuned.level_us = 120;
    }
    return std::vector{table};
  };
  const auto learned = [&](const std::vector<catalog::PriorTable>& shipped) {
    Forecaster forecaster(store_, host_, {.least_shapes = 3, .shipped = &shipped});
    return Forecast(forecaster, "b1.h8.q700.d64.f16");
  };
  const std::string here = host_.devices.front().model();
  auto forecast = learned(shipped_for(here));
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->variant.ToText(), "blocks:BLOCK_M=96,BLOCK_N=64");
  EXPECT_EQ(forecast->problems, 3);
  EXPECT_EQ(forecast->shipped, 3);
  EXPECT_FALSE(learned(shipped_for("another model")).has_value());

  Tune("b1.h8.q512.d64.f16", 32);
  Tune("b1.h8.q600.d64.f16", 32);
  Tune("b1.h8.q800.d64.f16", 32);
  forecast = learned(shipped_for(here));
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->problems, 5);
  EXPECT_EQ(forecast->shipped, 2);
  EXPECT_EQ(forecast->variant.values[0], 32) << "three say so here, and two there otherwise";
}

TEST_F(ForecasterTest, WhatIsServedComesBeforeWhatWasShipped) {
  TuneThree();
  catalog::PriorTable table;
  table.device_model = host_.devices.front().model();
  table.family = family_->name();
  table.source_hash = family_->source_hash;
  table.parameters = {"BLOCK_M", "BLOCK_N"};
  table.tuned.push_back({*ParseProblem("b1.h8.q700.d128.f16"), 100, {}});
  for (int64_t block : {16, 32, 48, 64, 80, 96, 112, 128}) {
    for (int64_t keys : {16, 32, 64}) table.tuned[0].rows.push_back({100, {block, keys}});
  }
  const std::vector<catalog::PriorTable> shipped = {table};
  for (size_t most : {3, 4}) {
    Forecaster forecaster(store_, host_, {.least_shapes = 3, .most_shapes = most, .shipped = &shipped});
    const auto forecast = Forecast(forecaster, "b1.h8.q700.d64.f16");
    ASSERT_TRUE(forecast.has_value());
    EXPECT_EQ(forecast->problems, most);
    EXPECT_EQ(Forecast(forecaster, "b1.h8.q900.d128.f16").has_value(), most == 4)
        << "there is no room for what was shipped";
  }
}

// With today's families and the tables that are shipped. Of attention_hopper, which is guessed for prompts, they have
// nothing.
TEST_F(ForecasterTest, AFreshInstallForeseesDecodesAndLeavesPromptsToTheGuess) {
  host_.families = *space::LoadFamilies(ATTUNE_SOURCE_DIR "/kernels_src");
  host_.devices = {*DeviceProfile("h100")};
  Forecaster forecaster(store_, host_);
  const auto forecast = Forecast(forecaster, "b2.h32.kvh8.q1.kv6000.d128.f16");
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->variant.family->name(), "attention_mma");
  EXPECT_EQ(forecast->problems, forecast->shipped);
  EXPECT_GE(forecast->shipped, 8);
  EXPECT_FALSE(Forecast(forecaster, "b2.h32.kvh8.q1500.d128.f16.causal").has_value());
  EXPECT_NE(forecaster.Model(host_.devices.front(), v1::POLICY_HOT), nullptr) << "searches have it for these, too";
}

TEST_F(ForecasterTest, WhoSearchesGetsTheNewestModelThatThereIs) {
  TuneThree();
  Forecaster forecaster(store_, host_, {.least_shapes = 3, .hold = absl::ZeroDuration()});
  const auto model = [&](v1::Policy policy = v1::POLICY_HOT) {
    const auto before = forecaster.Model(host_.devices.front(), policy);
    forecaster.Settle();
    return before;
  };
  EXPECT_EQ(model(), nullptr) << "nobody waits for it";
  const auto first = model();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->problems(), 3);
  Tune("b1.h8.q640.d64.f16", 96);
  EXPECT_EQ(model()->problems(), 3);
  EXPECT_EQ(model()->problems(), 4);
  EXPECT_EQ(first->problems(), 3) << "who has one keeps it";
  model(v1::POLICY_COLD);
  EXPECT_EQ(model(v1::POLICY_COLD), nullptr) << "nothing was tuned under it";
}

TEST_F(ForecasterTest, NobodyGetsAModelAfterShutdown) {
  TuneThree();
  Forecaster forecaster(store_, host_, kFew);
  forecaster.Shutdown();
  forecaster.Model(host_.devices.front(), v1::POLICY_HOT);
  forecaster.Settle();
  EXPECT_EQ(forecaster.Model(host_.devices.front(), v1::POLICY_HOT), nullptr);
}

TEST_F(ForecasterTest, AfterShutdownNothingIsWorkedOut) {
  TuneThree();
  Forecaster forecaster(store_, host_, kFew);
  forecaster.Shutdown();
  EXPECT_FALSE(Forecast(forecaster, "b1.h8.q700.d64.f16").has_value());
}

TEST_F(ForecasterTest, IsTheAnswerWhereNobodyTunedButNotForLengths) {
  TuneThree();
  Tune("b1.h8.q701.d64.f16", 128);  // the nearest
  Forecaster forecaster(store_, host_, kFew);
  const auto results = catalog::Results::Load(store_, host_, nullptr, &forecaster);
  ASSERT_TRUE(results.ok()) << results.status();
  v1::GetBestRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem("b1.h8.q500.d64.f16"));
  request.set_device_id("cuda:0");
  request.set_policy(v1::POLICY_HOT);
  const uint64_t version = (*results)->version();
  ASSERT_TRUE((*results)->GetBest(request).ok());
  forecaster.Settle();
  EXPECT_GT((*results)->version(), version) << "what was answered before may be another answer now";
  const auto answer = (*results)->GetBest(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->provenance(), v1::PROVENANCE_NEAREST);
  EXPECT_THAT(answer->provenance_detail(), HasSubstr("expected to be the fastest of "));
  EXPECT_THAT(answer->provenance_detail(),
              HasSubstr("from the trials of 4 problems; its time is predicted from b1.h8.q512.d64.f16"));
  EXPECT_GT(answer->predicted().us(), 0);
  EXPECT_TRUE(answer->has_recipe());
  request.set_include_domains(true);
  const auto ranged = (*results)->GetBest(request);
  ASSERT_TRUE(ranged.ok()) << ranged.status();
  EXPECT_THAT(ranged->provenance_detail(), HasSubstr("from b1.h8.q512.d64.f16"));
}

}  // namespace
}  // namespace attune::forecast
