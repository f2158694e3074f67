// Tune with conditions on the variants, and with variants that it has to try.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "absl/strings/str_cat.h"
#include "server/base/reason.h"
#include "server/forecast/class_model.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using TuneSelectionTest = TunerTest;

TEST_F(TuneSelectionTest, OnlyWhatIsAskedForIsTried) {
  SetTimes({{"32/8", 40}, {"64/2", 50}});
  Start();
  v1::TuneRequest request = TuneRequest();
  request.add_where("SPLITS == 1");
  request.add_where("BLOCK > 16");
  const v1::Operation done = Tune(request);
  EXPECT_EQ(done.state(), v1::Operation::STATE_SUCCEEDED) << done.error().message();
  EXPECT_THAT(Tries(), UnorderedElementsAre(Key("tiles:BLOCK=32,SPLITS=1"), Key("tiles:BLOCK=64,SPLITS=1")));
  EXPECT_EQ(done.tune().winner().variant().text(), "tiles:BLOCK=64,SPLITS=1");
}

TEST_F(TuneSelectionTest, WhatIsServedIsComparedAllTheSame) {
  SetTimes({{"32/8", 40}, {"64/4", 50}});
  Start();
  Tune();
  v1::TuneRequest request = TuneRequest();
  request.add_where("SPLITS == 1");
  request.set_retry_known(true);
  const v1::Operation done = Tune(request);
  EXPECT_FALSE(done.tune().promoted());
  EXPECT_EQ(done.tune().incumbent().trial().variant().text(), "tiles:BLOCK=32,SPLITS=2");
}

TEST_F(TuneSelectionTest, ARandomSearchGuessesAmongWhatIsAskedFor) {
  Start();
  v1::TuneRequest request = TuneRequest();
  request.add_where("BLOCK == 64 && SPLITS == 2");
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  Tune(request);
  EXPECT_THAT(Tries(), ElementsAre(Key("tiles:BLOCK=64,SPLITS=2")));
}

TEST_F(TuneSelectionTest, WhatIsRequiredComesFirstWhateverElseIsAskedFor) {
  Start();
  v1::TuneRequest request = TuneRequest();
  request.add_where("SPLITS == 1");
  request.add_required()->set_text("tiles:BLOCK=64,SPLITS=2");
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_max_trials(1);
  Tune(request);
  EXPECT_THAT(Tries(), ElementsAre(Key("tiles:BLOCK=64,SPLITS=2")));
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_EXHAUSTIVE);
  request.mutable_strategy()->clear_max_trials();
  Tune(request);
  EXPECT_THAT(Tries(), SizeIs(4));
}

// Knows that blocks of 64 and two splits are the fastest everywhere.
class Foreseen : public forecast::Models {
 public:
  explicit Foreseen(std::shared_ptr<const space::Family> family) : family_(std::move(family)) {}
  std::shared_ptr<const forecast::ClassModel> Model(const v1::Device& device, v1::Policy policy) override {
    asked_.push_back(absl::StrCat(device.id(), " ", v1::Policy_Name(policy)));
    catalog::TunedProblem tuned;
    tuned.level_us = 10;
    tuned.problem = *ParseProblem("b1.h1.q256.d64.f16");
    for (const auto& [block, splits, us] : std::vector<std::tuple<int64_t, int64_t, double>>{
             {64, 2, 10}, {16, 2, 12}, {64, 1, 40}, {16, 1, 42}, {32, 2, 80}, {32, 1, 82}}) {
      // Several times, as leaves of trees have two rows and more.
      for (int i = 0; i < 4; ++i) {
        tuned.variants.push_back({.family = family_, .values = {block, splits}});
        tuned.us.push_back(us);
      }
    }
    return std::make_shared<forecast::ClassModel>(catalog::Families(family_), device, std::vector{tuned}, /*least=*/6);
  }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  const std::shared_ptr<const space::Family> family_;
  std::vector<std::string> asked_;
};

TEST_F(TuneSelectionTest, ASearchThatLearnsBeginsWithWhatIsExpected) {
  const std::shared_ptr<const space::Family> family = catalog::SearchFamily();
  Foreseen models(family);
  models_ = &models;
  Start(Families(family));
  v1::TuneRequest request = TuneRequest();
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_GUIDED);
  request.mutable_strategy()->set_max_trials(1);
  Tune(request);
  EXPECT_THAT(Tries(), ElementsAre(Key("tiles:BLOCK=64,SPLITS=2")));
  EXPECT_THAT(models.asked(), testing::ElementsAre("cuda:0 POLICY_HOT"));
  // Then the guess, and what is expected to be the next.
  request.mutable_strategy()->set_max_trials(2);
  Tune(request);
  EXPECT_THAT(Tries(), UnorderedElementsAre(Key("tiles:BLOCK=64,SPLITS=2"), Key("tiles:BLOCK=32,SPLITS=2"),
                                            Key("tiles:BLOCK=16,SPLITS=2")));
  // Told where to look, it looks there.
  request.add_where("BLOCK == 32 && SPLITS == 1");
  request.mutable_strategy()->set_max_trials(1);
  Tune(request);
  EXPECT_THAT(Tries(), SizeIs(4));
  EXPECT_THAT(Tries(), testing::Contains(Key("tiles:BLOCK=32,SPLITS=1")));
  // Of another head dimension it says nothing.
  request = TuneRequest("b1.h1.q128.d128.f16");
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_GUIDED);
  request.mutable_strategy()->set_max_trials(1);
  Tune(request);
  EXPECT_THAT(Tries("b1.h1.q128.d128.f16"), testing::Not(testing::Contains(Key("tiles:BLOCK=64,SPLITS=2"))));
}

TEST_F(TuneSelectionTest, WhatDidBestForAnotherProblemComesFirst) {
  // At seq_q 256 BLOCK 32 has grids of 8 and 16.
  SetTimes({{"32/16", 20}, {"32/8", 30}, {"64/8", 40}, {"64/4", 50}, {"16/16", 60}});
  Start();
  Tune(TuneRequest("b1.h1.q256.d64.f16"));
  v1::TuneRequest request = TuneRequest();
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_RANDOM);
  request.mutable_strategy()->set_max_trials(3);
  request.add_seed_from("b1.h1.q256.d64.f16");
  Tune(request);
  EXPECT_THAT(Tries(), UnorderedElementsAre(Key("tiles:BLOCK=32,SPLITS=2"), Key("tiles:BLOCK=32,SPLITS=1"),
                                            Key("tiles:BLOCK=64,SPLITS=2")));
}

TEST_F(TuneSelectionTest, ASearchThatLearnsBeginsWithWhatANearProblemIsServedUnlessItIsToldWhereToLook) {
  SetTimes({{"16/16", 20}, {"16/8", 20}});
  Start();
  Tune(TuneRequest("b1.h1.q256.d64.f16"));
  v1::TuneRequest request = TuneRequest();
  request.mutable_strategy()->set_kind(v1::Strategy::KIND_GUIDED);
  request.mutable_strategy()->set_max_trials(1);
  request.add_where("BLOCK == 64 && SPLITS == 1");
  Tune(request);
  EXPECT_THAT(Tries(), ElementsAre(Key("tiles:BLOCK=64,SPLITS=1")));
  request.clear_where();
  Tune(request);
  EXPECT_THAT(Tries(), UnorderedElementsAre(Key("tiles:BLOCK=64,SPLITS=1"), Key("tiles:BLOCK=16,SPLITS=1")));
}

TEST_F(TuneSelectionTest, OfAProblemThatNobodyTunedThereIsNothingToBeginWith) {
  Start();
  v1::TuneRequest request = TuneRequest();
  request.add_seed_from("b1.h1.q256.d64.f16");
  const absl::Status status = tuner_->Tune(request).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("seed_from[0]: 'b1.h1.q256.d64.f16' has no trial that is OK on cuda:0's class under hot"));
}

TEST_F(TuneSelectionTest, WhatNoFamilyUnderstandsOrIsNotFeasibleIsRefused) {
  Start(catalog::Families(catalog::MakeFamily(R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK" values: [16, 64] binding: BINDING_COMPILE_TIME }
    constraints { expr: "BLOCK <= seq_q" reason: "a tile higher than the queries" }
    launches { entry: "attention" grid_x: "1" block_x: "128" main: true })",
                                              "source one")));
  v1::TuneRequest unknown = TuneRequest();
  unknown.add_where("WARPS == 4");
  EXPECT_THAT(std::string(tuner_->Tune(unknown).status().message()), HasSubstr("tiles: where[0] is 'WARPS == 4'"));
  v1::TuneRequest request = TuneRequest("b1.h1.q32.d64.f16");
  request.add_required()->set_text("tiles:BLOCK=64");
  const absl::Status infeasible = tuner_->Tune(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(infeasible));
  EXPECT_THAT(std::string(infeasible.message()),
              HasSubstr("required[0] is tiles:BLOCK=64, which is not feasible for b1.h1.q32.d64.f16: a tile higher"));
  EXPECT_EQ(infeasible.GetPayload(kReasonUrl), "INFEASIBLE");
}

}  // namespace
}  // namespace attune::jobs
