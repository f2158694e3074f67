#include "gmock/gmock.h"
#include "server/store/testing/store_contract.h"

namespace attune::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BaselineContract : public StoreContract {
 protected:
  static v1::Baseline Make(const std::string& contender, double median_us) {
    v1::Baseline baseline;
    baseline.set_problem_text(kProblem);
    baseline.set_device_id(kDevice);
    baseline.set_policy(v1::POLICY_HOT);
    baseline.set_contender(contender);
    baseline.set_median_us(median_us);
    return baseline;
  }

  std::vector<double> List(absl::string_view problem_text, absl::string_view device_id) {
    std::vector<double> medians;
    std::string token;
    do {
      absl::StatusOr<Page<v1::Baseline>> page = store().ListBaselines(problem_text, device_id, 1, token);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::Baseline& baseline : page->items) medians.push_back(baseline.median_us());
      token = page->next_page_token;
    } while (!token.empty());
    return medians;
  }
};

TEST_P(BaselineContract, ListsTheNewestOfEachContender) {
  ASSERT_TRUE(store().RecordBaseline(Make("flash", 47)).ok());
  ASSERT_TRUE(store().RecordBaseline(Make("cudnn", 39)).ok());
  ASSERT_TRUE(store().RecordBaseline(Make("flash", 45)).ok());
  v1::Baseline elsewhere = Make("flash", 12);
  elsewhere.set_device_id("cuda:1");
  ASSERT_TRUE(store().RecordBaseline(elsewhere).ok());
  EXPECT_THAT(List("", ""), ElementsAre(12, 45, 39));
  EXPECT_THAT(List(kProblem, kDevice), ElementsAre(45, 39));
  EXPECT_THAT(List("b1.h1.q1.d64.f16", ""), IsEmpty());
}

TEST_P(BaselineContract, GivesThoseOfSeveralProblemsAsItListsEach) {
  const auto record = [&](const std::string& problem, const std::string& contender, double median_us) {
    v1::Baseline baseline = Make(contender, median_us);
    baseline.set_problem_text(problem);
    ASSERT_TRUE(store().RecordBaseline(baseline).ok());
  };
  const std::string odd = "a \"text\", {with} all\\ that arrays give a meaning";
  record(kProblem, "flash", 47);
  record(odd, "flash", 30);
  record(kProblem, "cudnn", 39);
  record("another", "flash", 20);
  record(kProblem, "flash", 45);
  const auto of = [&](const std::vector<std::string>& problems, const std::string& of_them) {
    std::vector<double> medians;
    absl::StatusOr<std::vector<v1::Baseline>> baselines = store().BaselinesOf(problems);
    EXPECT_TRUE(baselines.ok()) << baselines.status();
    for (const v1::Baseline& baseline : *baselines) {
      if (baseline.problem_text() == of_them) medians.push_back(baseline.median_us());
    }
    return medians;
  };
  EXPECT_THAT(of({"another", kProblem, "unknown"}, kProblem), ElementsAre(45, 39)) << "newest first, each once";
  EXPECT_THAT(of({"another", kProblem, "unknown"}, "another"), ElementsAre(20));
  EXPECT_THAT(of({"another", kProblem, "unknown"}, odd), IsEmpty());
  EXPECT_THAT(of({odd, kProblem}, odd), ElementsAre(30));
  EXPECT_THAT(of({}, kProblem), IsEmpty());
}

TEST_P(BaselineContract, StampsTheTimeUnlessGiven) {
  absl::StatusOr<v1::Baseline> stamped = store().RecordBaseline(Make("flash", 47));
  ASSERT_TRUE(stamped.ok()) << stamped.status();
  EXPECT_GT(stamped->record_time().seconds(), 0);
  v1::Baseline dated = Make("flash", 47);
  dated.mutable_record_time()->set_seconds(5);
  EXPECT_EQ(store().RecordBaseline(dated)->record_time().seconds(), 5);
}

TEST_P(BaselineContract, RefusesOneWithoutContender) {
  EXPECT_EQ(store().RecordBaseline(Make("", 47)).status().code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Store, BaselineContract, testing::ValuesIn(Implementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
