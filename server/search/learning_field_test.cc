#include "server/search/learning_field.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/catalog/testing/fake_host.h"
#include "server/search/feature_columns.h"
#include "server/store/testing/fake_store.h"

namespace attune::search {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LearningFieldTest : public ::testing::Test {
 protected:
  LearningFieldTest() {
    spec_.tuning_key.device = catalog::FakeDevice();
    spec_.tuning_key.toolchain = "fakec 1.0";
    Ask("b1.h1.q128.d64.f16");
  }
  void Ask(const std::string& problem) {
    spec_.tuning_key.problem = *ParseProblem(problem);
    spec_.tuning_key.problem_text = problem;
  }
  // A trial of today; promoted where it is to be served.
  void Store(const std::string& problem, const std::string& variant, v1::Verdict verdict, double us, bool served,
             const std::string& job = "operations/1") {
    v1::Trial trial;
    *trial.mutable_problem() = ToProto(*ParseProblem(problem));
    trial.set_problem_text(problem);
    trial.set_device_id("cuda:0");
    trial.set_policy(v1::POLICY_HOT);
    trial.mutable_variant()->set_family("tiles");
    trial.mutable_variant()->set_text(variant);
    trial.set_verdict(verdict);
    trial.mutable_timing()->set_median_us(us);
    trial.set_job(job);
    *trial.mutable_dependencies() = catalog::DependenciesOf(*families_[0], spec_.tuning_key);
    const absl::StatusOr<std::string> name = store_.AppendTrial(trial, {});
    ASSERT_TRUE(name.ok()) << name.status();
    if (!served) return;
    v1::Incumbent incumbent;
    *incumbent.mutable_trial() = trial;
    incumbent.mutable_trial()->set_name(*name);
    const auto promoted = store_.Promote(incumbent, "", {});
    ASSERT_TRUE(promoted.ok()) << promoted.status();
  }
  Field FieldNow() {
    const auto candidates = CandidatesNow(spec_, std::nullopt, families_, store_);
    EXPECT_TRUE(candidates.ok()) << candidates.status();
    const auto field = LearningField(*candidates, spec_, "operations/7", families_, shipped_, store_);
    EXPECT_TRUE(field.ok()) << field.status();
    return field.value_or(Field());
  }

  store::FakeStore store_;
  std::vector<std::shared_ptr<const space::Family>> families_ = catalog::Families(catalog::SearchFamily());
  std::vector<catalog::PriorTable> shipped_;
  SearchSpec spec_;
};

TEST_F(LearningFieldTest, HasEveryCandidateAsAPoint) {
  const Field field = FieldNow();
  ASSERT_EQ(field.candidates, 6);
  EXPECT_THAT(field.features,
              ElementsAre("problem.heads", "problem.group", "problem.seq_q", "problem.seq_kv", "BLOCK", "SPLITS"));
  ASSERT_THAT(field.points, SizeIs(6));
  EXPECT_THAT(field.points[1].values, ElementsAre(16, 2));
  EXPECT_THAT(field.points[1].features, ElementsAre(1, 1, 128, 128, 16, 2));
  EXPECT_THAT(field.known, IsEmpty());
  EXPECT_THAT(field.neighbours, IsEmpty());
}

TEST_F(LearningFieldTest, KnowsWhichCandidatesShareCode) {
  EXPECT_THAT(FieldNow().codes, ElementsAre(0, 0, 1, 1, 2, 2)) << "SPLITS is a launch-time parameter";
}

TEST_F(LearningFieldTest, KnowsTheProblemsTrialsAndWhichItsOwnJobMade) {
  Store("b1.h1.q128.d64.f16", "tiles:BLOCK=16,SPLITS=2", v1::VERDICT_OK, 30, false);
  Store("b1.h1.q128.d64.f16", "tiles:BLOCK=64,SPLITS=1", v1::VERDICT_CRASHED, 0, false, "operations/7");
  Field field = FieldNow();
  ASSERT_THAT(field.known, SizeIs(2));
  EXPECT_EQ(field.known[0].first, 1);
  EXPECT_EQ(field.known[0].second.us, 30);
  EXPECT_FALSE(field.known[1].second.ok);
  EXPECT_EQ(field.spent, 1);
  spec_.retry_known = true;
  field = FieldNow();
  ASSERT_THAT(field.known, SizeIs(1));
  EXPECT_EQ(field.known[0].first, 4);
}

TEST_F(LearningFieldTest, TakesTheTrialsOfNearProblemsNearestFirst) {
  Store("b1.h1.q512.d64.f16", "tiles:BLOCK=16,SPLITS=2", v1::VERDICT_OK, 30, true);
  Store("b1.h1.q256.d64.f16", "tiles:BLOCK=32,SPLITS=1", v1::VERDICT_OK, 20, true);
  Store("b1.h1.q256.d64.f16", "tiles:BLOCK=64,SPLITS=1", v1::VERDICT_TIMEOUT, 0, false);
  Store("b1.h1.q256.d128.f16", "tiles:BLOCK=32,SPLITS=1", v1::VERDICT_OK, 20, true);  // other code
  const Field field = FieldNow();
  ASSERT_THAT(field.neighbours, SizeIs(2));
  EXPECT_EQ(field.neighbours[0].distance, 2);  // octaves: of seq_q and of seq_kv
  ASSERT_THAT(field.neighbours[0].rows, SizeIs(2));
  EXPECT_THAT(field.neighbours[0].rows[0].features, ElementsAre(1, 1, 256, 256, 32, 1));
  EXPECT_FALSE(field.neighbours[0].rows[1].outcome.ok);
  EXPECT_EQ(field.neighbours[1].distance, 4);
}

TEST_F(LearningFieldTest, TakesWhatWasShippedForProblemsThatAreNotServed) {
  catalog::PriorTable table;
  table.device_model = spec_.tuning_key.device.model();
  table.family = "tiles";
  table.source_hash = families_[0]->source_hash;
  table.parameters = {"BLOCK", "SPLITS"};
  for (const char* text : {"b1.h1.q512.d64.f16", "b1.h1.q256.d64.f16", "b1.h1.q128.d64.f16"}) {
    table.tuned.push_back({*ParseProblem(text), 8, {{7, {32, 2}}, {8, {16, 1}}}});
  }
  shipped_ = {table};
  Store("b1.h1.q512.d64.f16", "tiles:BLOCK=16,SPLITS=2", v1::VERDICT_OK, 30, true);
  Field field = FieldNow();
  ASSERT_THAT(field.neighbours, SizeIs(2)) << "a problem is no neighbour of itself";
  EXPECT_EQ(field.neighbours[0].distance, 2);
  ASSERT_THAT(field.neighbours[0].rows, SizeIs(2));
  EXPECT_THAT(field.neighbours[0].rows[0].features, ElementsAre(1, 1, 256, 256, 32, 2));
  EXPECT_EQ(field.neighbours[0].rows[0].outcome.us, 7);
  EXPECT_EQ(field.neighbours[1].distance, 4);
  EXPECT_THAT(field.neighbours[1].rows, SizeIs(1)) << "of what was tuned here";
  spec_.tuning_key.policy = v1::POLICY_COLD;
  EXPECT_THAT(FieldNow().neighbours, IsEmpty());
  spec_.tuning_key.policy = v1::POLICY_HOT;
  shipped_[0].device_model = "another";
  EXPECT_THAT(FieldNow().neighbours, SizeIs(1));
}

TEST_F(LearningFieldTest, TrialsOfOtherSourcesSayNothing) {
  Store("b1.h1.q256.d64.f16", "tiles:BLOCK=32,SPLITS=1", v1::VERDICT_OK, 20, true);
  families_ = catalog::Families(catalog::SearchFamily("source two"));
  const Field field = FieldNow();
  ASSERT_THAT(field.neighbours, SizeIs(1));
  EXPECT_THAT(field.neighbours[0].rows, IsEmpty());
}

TEST(FeatureColumns, FamiliesShareTheColumnsOfOneName) {
  const auto one = catalog::SearchFamily();
  const auto other =
      catalog::MakeFamily(R"pb(
                            name: "other"
                            operation: OPERATION_KIND_ATTENTION_FORWARD
                            backend: BACKEND_CUDA
                            sources: "kernel.cu"
                            parameters {
                              name: "STAGES"
                              values: [ 2, 3 ]
                              binding: BINDING_COMPILE_TIME
                            }
                            parameters {
                              name: "BLOCK"
                              values: [ 16 ]
                              binding: BINDING_COMPILE_TIME
                            }
                            lets { name: "tiles" expr: "ceil_div(seq_q, BLOCK)" }
                            launches { entry: "attention" grid_x: "tiles" block_x: "128" main: true })pb",
                          "other");
  const FeatureColumns columns({one, other});
  EXPECT_THAT(columns.names(), ElementsAre("problem.heads", "problem.group", "problem.seq_q", "problem.seq_kv", "BLOCK",
                                           "SPLITS", "STAGES", "tiles"));
  const auto row = columns.Of({other, {3, 16}}, *ParseProblem("b2.h4.q100.d64.f16"), catalog::FakeDevice());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_THAT(*row, ElementsAre(8, 1, 100, 100, 16, kMissing, 3, 7));
}

}  // namespace
}  // namespace attune::search
