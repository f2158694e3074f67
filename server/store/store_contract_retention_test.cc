// What stays and what goes when a store is kept within limits.
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "server/base/sha256.h"
#include "server/store/testing/store_contract.h"
#include "server/store/testing/unfinished.h"

namespace attune::store {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr char kOther[] = "b1.h1.q128.d64.f16";
constexpr char kThird[] = "b1.h1.q256.d64.f16";
// When the trials here were made, long ago; `made` counts seconds from it.
constexpr int64_t kLongAgo = 1'000'000'000;

class RetentionContract : public StoreContract {
 protected:
  static v1::Trial Trial(const std::string& problem, int block_m, int made, v1::Verdict verdict = v1::VERDICT_OK) {
    v1::Trial trial = SampleTrial(block_m, 40 + block_m);
    trial.set_problem_text(problem);
    trial.set_verdict(verdict);
    trial.set_job(absl::StrCat("operations/", problem));
    trial.mutable_finish_time()->set_seconds(kLongAgo + made);
    return trial;
  }

  // The same by another card of the class.
  static v1::Trial BySister(v1::Trial trial) {
    trial.set_device_id("cuda:1");
    trial.set_device_uuid("GPU-1");
    return trial;
  }

  static Retention Limits() {
    Retention limits;
    limits.now = absl::Now();
    return limits;
  }
  // So small that all goes that may.
  static Retention TooSmall() {
    Retention limits = Limits();
    limits.database_bytes = 1;
    limits.artifact_bytes = 1;
    limits.grace = absl::Seconds(-3600);  // also what is of this moment
    return limits;
  }

  Retained Retain(const Retention& limits) {
    const absl::StatusOr<Retained> retained = store().Retain(limits, [] { return false; });
    EXPECT_TRUE(retained.ok()) << retained.status();
    return retained.value_or(Retained());
  }

  std::string Promote(const std::string& trial, const std::string& previous) {
    v1::Incumbent incumbent;
    incumbent.mutable_trial()->set_name(trial);
    incumbent.set_job("operations/promoting");
    const absl::StatusOr<v1::Incumbent> promoted = store().Promote(incumbent, previous, {});
    EXPECT_TRUE(promoted.ok()) << promoted.status();
    return promoted.ok() ? promoted->name() : "";
  }

  std::vector<std::string> Trials(const std::string& problem = "",
                                  v1::ListTrialsRequest::Order order = v1::ListTrialsRequest::ORDER_NEWEST) {
    v1::TrialFilter filter;
    filter.set_problem(problem);
    std::vector<std::string> names;
    const absl::StatusOr<Page<v1::Trial>> page = store().ListTrials(filter, order, 1000, "");
    EXPECT_TRUE(page.ok()) << page.status();
    for (const v1::Trial& trial : page->items) names.push_back(trial.name());
    return names;
  }

  std::string PutArtifact(const std::string& code) {
    CompiledArtifact artifact;
    artifact.compile_key = code;
    artifact.toolchain = "nvrtc 13.0";
    artifact.sha256 = Sha256(code);
    EXPECT_TRUE(store().PutArtifact(artifact, code).ok());
    return artifact.sha256;
  }
  void FailCompile(const std::string& key, const std::string& toolchain) {
    CompiledArtifact artifact;
    artifact.compile_key = key;
    artifact.toolchain = toolchain;
    artifact.verdict = v1::VERDICT_COMPILE_ERROR;
    EXPECT_TRUE(store().PutArtifact(artifact, "").ok());
  }

  void MakeJob(const std::string& name, const std::string& problem, bool done, const std::string& parent = "") {
    Job job;
    job.name = name;
    job.parent = parent;
    job.operation.set_name(name);
    job.operation.set_problem(problem);
    job.operation.set_done(done);
    if (done) job.operation.mutable_end_time()->set_seconds(kLongAgo);
    EXPECT_TRUE(store().queue().Create(job, {}).ok());
  }
};

TEST_P(RetentionContract, KeepsAllWithoutLimits) {
  const std::string trial = Append(Trial(kProblem, 64, 0));
  MakeJob("operations/1", kProblem, true);
  const std::string code = PutArtifact("code");
  Retain(Limits());
  EXPECT_THAT(Trials(), ElementsAre(trial));
  EXPECT_TRUE(store().queue().Get("operations/1").ok());
  EXPECT_TRUE(store().ReadArtifact(code).ok());
}

TEST_P(RetentionContract, RemovesTrialsThatWereNotUsedForLong) {
  Append(Trial(kProblem, 64, 0));
  const std::string used = Append(Trial(kOther, 64, 0));
  ASSERT_TRUE(
      store().KnownTrials(kOther, InstanceOf(SampleTrial()), v1::POLICY_HOT, SampleTrial().dependencies()).ok());
  Retention limits = Limits();
  limits.trial_age = absl::Hours(24 * 365);
  EXPECT_EQ(Retain(limits).removed_trials, 1);
  EXPECT_THAT(Trials(), ElementsAre(used));
  Reopen();
  EXPECT_EQ(Retain(limits).removed_trials, 0) << "the use was written down";
}

TEST_P(RetentionContract, RemovesNothingThatIsYoungerThanItsAge) {
  const std::string trial = Append(Trial(kProblem, 64, 0));
  Retention limits = Limits();
  limits.trial_age = absl::Now() - absl::FromUnixSeconds(kLongAgo) + absl::Hours(1);
  Retain(limits);
  EXPECT_THAT(Trials(), ElementsAre(trial));
}

TEST_P(RetentionContract, UsesUnderOtherDependenciesDoNotCount) {
  Append(Trial(kProblem, 64, 0));
  v1::Dependencies newer = SampleTrial().dependencies();
  newer.set_driver("581");
  ASSERT_TRUE(store().KnownTrials(kProblem, InstanceOf(SampleTrial()), v1::POLICY_HOT, newer).ok());
  Retention limits = Limits();
  limits.trial_age = absl::Hours(24 * 365);
  EXPECT_EQ(Retain(limits).removed_trials, 1);
}

TEST_P(RetentionContract, RemovesWhatWasUsedLeastRecentlyFirst) {
  for (const auto& [problem, made] : {std::pair(kProblem, 30), std::pair(kOther, 10), std::pair(kThird, 20)}) {
    for (int i = 0; i < 100; ++i) {
      v1::Trial trial = Trial(problem, i, made);
      trial.set_detail(std::string(2'000, 'd'));
      Append(trial);
    }
  }
  Retention limits = Limits();
  limits.database_bytes = Retain(limits).database_bytes * 95 / 100;
  const Retained retained = Retain(limits);
  EXPECT_LE(retained.database_bytes, limits.database_bytes);
  EXPECT_LT(Trials(kOther).size(), 100U);
  EXPECT_EQ(Trials(kThird).size(), 100U);
  EXPECT_EQ(Trials(kProblem).size(), 100U);
}

TEST_P(RetentionContract, RemovesNoMoreThanItsSizeAsksFor) {
  for (int i = 0; i < 20; ++i) Append(Trial(kProblem, i, 0));
  Retention limits = Limits();
  limits.database_bytes = Retain(limits).database_bytes * 2;
  Retain(limits);
  EXPECT_EQ(Trials().size(), 20U);
}

TEST_P(RetentionContract, LeavesIncumbentsAndTheirHistory) {
  const std::string first = Append(Trial(kProblem, 1, 0));
  const std::string second = Append(Trial(kProblem, 2, 0));
  const std::string name = Promote(first, "");
  Promote(second, name);
  const std::string taken_out = Append(Trial(kOther, 1, 0));
  const std::string before = Promote(Append(Trial(kOther, 2, 0)), "");
  Promote(taken_out, before);
  ASSERT_TRUE(store().RollBack(kOther, kClass, v1::POLICY_HOT, "wrong", "").ok());
  Append(Trial(kThird, 1, 0));
  EXPECT_EQ(Retain(TooSmall()).removed_trials, 1);
  EXPECT_THAT(Trials(kProblem), UnorderedElementsAre(first, second));
  EXPECT_THAT(Trials(kOther), Contains(taken_out)) << "history shows it";
  EXPECT_EQ(store().RollBack(kProblem, kClass, v1::POLICY_HOT, "", "")->trial().name(), first);
}

TEST_P(RetentionContract, LeavesTheFastestTrialsOfWhatIsServed) {
  for (int i = 0; i < 2 * kServedTrials; ++i) Append(Trial(kProblem, i, 0));
  const std::vector<std::string> before = Trials(kProblem, v1::ListTrialsRequest::ORDER_FASTEST);
  Promote(before[3], "");
  const std::string slow = before.back();
  Promote(slow, store().GetIncumbent(kProblem, kClass, v1::POLICY_HOT)->name());
  Retain(TooSmall());
  std::vector<std::string> expected(before.begin(), before.begin() + kServedTrials);
  expected.push_back(slow);
  EXPECT_EQ(Trials(kProblem, v1::ListTrialsRequest::ORDER_FASTEST), expected);
}

TEST_P(RetentionContract, LeavesTheFastestTrialsOfEveryCardThatAnIncumbentIsServedOn) {
  for (int i = 0; i < kServedTrials + 10; ++i) Append(Trial(kProblem, i, 0));
  for (int i = 100; i < 100 + kServedTrials + 10; ++i) Append(BySister(Trial(kProblem, i, 0)));
  const std::vector<std::string> before = Trials(kProblem, v1::ListTrialsRequest::ORDER_FASTEST);
  Promote(before[3], "");
  v1::Trial elsewhere = BySister(Trial(kProblem, 200, 0));
  elsewhere.mutable_dependencies()->set_device_fingerprint("h200");
  Append(elsewhere);
  EXPECT_EQ(Retain(TooSmall()).removed_trials, 10 + 10 + 1);
  std::vector<std::string> expected(before.begin(), before.begin() + kServedTrials);
  expected.insert(expected.end(), before.begin() + kServedTrials + 10, before.end() - 10);
  EXPECT_EQ(Trials(kProblem, v1::ListTrialsRequest::ORDER_FASTEST), expected);
}

TEST_P(RetentionContract, LeavesTodaysBadVerdicts) {
  const std::string crashed = Append(Trial(kProblem, 1, 0, v1::VERDICT_CRASHED));
  const std::string infeasible = Append(Trial(kProblem, 2, 0, v1::VERDICT_INFEASIBLE));
  v1::Trial of_yesterday = Trial(kProblem, 1, 0, v1::VERDICT_CRASHED);
  of_yesterday.mutable_dependencies()->set_driver("579");
  Append(of_yesterday);
  Append(Trial(kProblem, 3, 0));
  Append(Trial(kProblem, 4, 0, v1::VERDICT_LOST));
  Retention limits = TooSmall();
  limits.current = {SampleTrial().dependencies()};
  EXPECT_EQ(Retain(limits).removed_trials, 3);
  EXPECT_THAT(Trials(), UnorderedElementsAre(crashed, infeasible));
  EXPECT_TRUE(store().FindTrial(KeyOf(SampleTrial(1))).ok());
}

TEST_P(RetentionContract, LeavesNoBadVerdictThatNoLongerCounts) {
  Append(Trial(kProblem, 1, 0, v1::VERDICT_CRASHED));
  Append(Trial(kProblem, 1, 0));  // since then it was right
  Append(Trial(kProblem, 2, 0, v1::VERDICT_TIMEOUT));
  v1::TrialFilter timeouts;
  timeouts.add_verdicts(v1::VERDICT_TIMEOUT);
  ASSERT_EQ(store().RetryTrials(timeouts)->trials, 1);
  Retention limits = TooSmall();
  limits.current = {SampleTrial().dependencies()};
  EXPECT_EQ(Retain(limits).removed_trials, 3);
}

TEST_P(RetentionContract, LeavesABadVerdictThatStillCountsOnItsCard) {
  const std::string unstable = Append(Trial(kProblem, 1, 0, v1::VERDICT_UNSTABLE));
  Append(BySister(Trial(kProblem, 1, 0)));  // says nothing of the first card
  const std::string crashed = Append(BySister(Trial(kProblem, 2, 0, v1::VERDICT_CRASHED)));
  Append(Trial(kProblem, 2, 0));
  Retention limits = TooSmall();
  limits.current = {SampleTrial().dependencies()};
  Retain(limits);
  EXPECT_EQ(store().FindTrial(KeyOf(SampleTrial(1)))->name(), unstable);
  EXPECT_EQ(store().FindTrial(KeyOf(BySister(SampleTrial(2))))->name(), crashed);
}

TEST_P(RetentionContract, LeavesNoBadVerdictThatItsClassHasANewerOneFor) {
  Append(Trial(kProblem, 1, 0, v1::VERDICT_TIMEOUT));
  const std::string newer = Append(BySister(Trial(kProblem, 1, 0, v1::VERDICT_CRASHED)));
  Retention limits = TooSmall();
  limits.current = {SampleTrial().dependencies()};
  EXPECT_EQ(Retain(limits).removed_trials, 1);
  EXPECT_THAT(Trials(), ElementsAre(newer));
}

// With the sister's newer trial gone, the crash would be the newest of the class, and hold for the sister too.
TEST_P(RetentionContract, LetsNoOlderVerdictOfTheClassTakeANewersPlace) {
  Append(Trial(kProblem, 1, 0, v1::VERDICT_CRASHED));
  const std::string right = Append(BySister(Trial(kProblem, 1, 0)));
  Retention limits = TooSmall();
  limits.current = {SampleTrial().dependencies()};
  EXPECT_EQ(Retain(limits).removed_trials, 0);
  EXPECT_EQ(store().FindTrial(KeyOf(BySister(SampleTrial(1))))->name(), right);
}

TEST_P(RetentionContract, LetsNoOlderVerdictTakeANewersPlace) {
  const std::string right = Append(Trial(kProblem, 1, 0));
  Promote(right, "");
  const std::string unstable = Append(Trial(kProblem, 1, 0, v1::VERDICT_UNSTABLE));
  Retain(TooSmall());
  EXPECT_THAT(Trials(), ElementsAre(unstable, right));
  EXPECT_EQ(store().FindTrial(KeyOf(SampleTrial(1)))->name(), unstable);
}

TEST_P(RetentionContract, LeavesWhatAJobIsWorkingOn) {
  const std::string trial = Append(Trial(kProblem, 1, 0));
  MakeJob("operations/1", kProblem, false);
  Append(Trial(kOther, 1, 0));
  Retain(TooSmall());
  EXPECT_THAT(Trials(), ElementsAre(trial));
  EXPECT_EQ(CountUnfinished(store().queue()), 1U);
}

TEST_P(RetentionContract, LeavesWhatWasUsedJustNow) {
  v1::Trial trial = Trial(kProblem, 1, 0);
  trial.mutable_finish_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  const std::string name = Append(trial);
  const std::string asked_for = Append(Trial(kOther, 1, 0));
  ASSERT_TRUE(store().KnownTrials(kOther, InstanceOf(SampleTrial()), v1::POLICY_HOT, trial.dependencies()).ok());
  const std::string code = PutArtifact("code");
  Retention limits = TooSmall();
  limits.grace = absl::Minutes(10);
  Retain(limits);
  EXPECT_THAT(Trials(), ElementsAre(asked_for, name));
  EXPECT_TRUE(store().ReadArtifact(code).ok());
}

TEST_P(RetentionContract, StopsWhenItIsToldTo) {
  const std::string trial = Append(Trial(kProblem, 1, 0));
  const std::string code = PutArtifact("code");
  ASSERT_TRUE(store().Retain(TooSmall(), [] { return true; }).ok());
  EXPECT_THAT(Trials(), ElementsAre(trial));
  EXPECT_TRUE(store().ReadArtifact(code).ok());
}

TEST_P(RetentionContract, RemovesOldFinishedJobs) {
  MakeJob("operations/old", kProblem, true);
  MakeJob("operations/unfinished", kProblem, false);
  Promote(Append(Trial(kOther, 1, 0)), "");
  MakeJob("operations/promoting", kOther, true);
  MakeJob(absl::StrCat("operations/", kOther), kOther, true);  // of the incumbent's trial
  Retention limits = Limits();
  limits.job_age = absl::Hours(24 * 365);
  EXPECT_EQ(Retain(limits).removed_jobs, 1);
  EXPECT_EQ(store().queue().Get("operations/old").status().code(), absl::StatusCode::kNotFound);
  for (const std::string& name : {std::string("operations/unfinished"), std::string("operations/promoting"),
                                  absl::StrCat("operations/", kOther)}) {
    EXPECT_TRUE(store().queue().Get(name).ok()) << name;
  }
}

TEST_P(RetentionContract, LeavesThePartsOfAJobThatHasNotEnded) {
  MakeJob("operations/sweep", "", false);
  MakeJob("operations/sweep.0", kProblem, true, "operations/sweep");
  Retention limits = Limits();
  limits.job_age = absl::Hours(24 * 365);
  EXPECT_EQ(Retain(limits).removed_jobs, 0);
  EXPECT_TRUE(store().queue().Get("operations/sweep.0").ok());
  v1::Operation sweep;
  sweep.set_name("operations/sweep");
  FinishJob(store(), sweep);
  EXPECT_EQ(Retain(limits).removed_jobs, 1);
  EXPECT_FALSE(store().queue().Get("operations/sweep.0").ok());
}

TEST_P(RetentionContract, ARequestIdGoesWithItsJob) {
  Job job;
  job.name = "operations/1";
  job.request_id = "nightly";
  job.operation.set_name(job.name);
  job.operation.set_done(true);
  job.operation.mutable_end_time()->set_seconds(kLongAgo);
  ASSERT_TRUE(store().queue().Create(job, {}).ok());
  Retention limits = Limits();
  limits.job_age = absl::Hours(24 * 365);
  EXPECT_EQ(Retain(limits).removed_jobs, 1);
  job.name = "operations/2";
  EXPECT_EQ(store().queue().Create(job, {})->name, "operations/2");
}

TEST_P(RetentionContract, AJobThatHasJustEndedIsYoung) {
  MakeJob("operations/1", kProblem, false);
  v1::Operation operation;
  operation.set_name("operations/1");
  FinishJob(store(), operation);
  Retention limits = Limits();
  limits.job_age = absl::Hours(1);
  Retain(limits);
  EXPECT_TRUE(store().queue().Get("operations/1").ok());
}

TEST_P(RetentionContract, LeavesTheArtifactsOfIncumbents) {
  v1::Trial trial = Trial(kProblem, 1, 0);
  trial.set_artifact_sha256(PutArtifact("of the past"));
  const std::string first = Promote(Append(trial), "");
  trial = Trial(kProblem, 2, 0);
  trial.set_artifact_sha256(PutArtifact("served"));
  Promote(Append(trial), first);
  const std::string unserved = PutArtifact("unserved");
  const Retained retained = Retain(TooSmall());
  EXPECT_EQ(retained.removed_artifacts, 1);
  EXPECT_EQ(retained.artifact_bytes, 11 + 6);
  EXPECT_EQ(store().ReadArtifact(Sha256("of the past")).value(), "of the past");
  EXPECT_EQ(store().ReadArtifact(Sha256("served")).value(), "served");
  EXPECT_EQ(store().ReadArtifact(unserved).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().FindArtifact("unserved", "nvrtc 13.0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store().FindArtifact("served", "nvrtc 13.0").ok());
}

TEST_P(RetentionContract, LeavesTheArtifactsOfAlternatives) {
  v1::Incumbent incumbent;
  incumbent.mutable_trial()->set_name(Append(Trial(kProblem, 1, 0)));
  incumbent.add_alternatives()->mutable_trial()->set_artifact_sha256(PutArtifact("of the least energy"));
  ASSERT_TRUE(store().Promote(incumbent, "", {}).ok());
  PutArtifact("unserved");
  EXPECT_EQ(Retain(TooSmall()).removed_artifacts, 1);
  EXPECT_EQ(store().ReadArtifact(Sha256("of the least energy")).value(), "of the least energy");
}

TEST_P(RetentionContract, RemovesArtifactsByAge) {
  const std::string code = PutArtifact("code");
  Retention limits = Limits();
  limits.artifact_age = absl::Hours(24);
  EXPECT_EQ(Retain(limits).removed_artifacts, 0);
  limits.now += absl::Hours(25);
  EXPECT_EQ(Retain(limits).removed_artifacts, 1);
}

TEST_P(RetentionContract, RemovesRetimingsByAgeAndBySize) {
  const auto append = [this](int made) {
    v1::Retiming retiming;
    retiming.set_problem_text(kProblem);
    retiming.set_device_id(kDevice);
    retiming.set_policy(v1::POLICY_HOT);
    retiming.set_variant("tiles:BLOCK=1");
    retiming.mutable_timing()->set_median_us(made);
    retiming.mutable_finish_time()->set_seconds(kLongAgo + made);
    ASSERT_TRUE(store().AppendRetiming(retiming, {}).ok());
  };
  append(10);
  append(3600);
  append(7200);
  Retention limits = Limits();
  EXPECT_EQ(Retain(limits).removed_retimings, 0);
  limits.now = absl::FromUnixSeconds(kLongAgo + 2 * 86400);
  limits.retiming_age = absl::Hours(47);
  EXPECT_EQ(Retain(limits).removed_retimings, 1);
  EXPECT_EQ(store().ListRetimings({}, 10, "")->items.back().timing().median_us(), 3600);
  EXPECT_EQ(Retain(TooSmall()).removed_retimings, 2);
}

TEST_P(RetentionContract, LeavesTodaysFailedCompiles) {
  FailCompile("today", "nvrtc 13.0");
  FailCompile("yesterday", "nvrtc 12.9");
  Retention limits = TooSmall();
  limits.current = {SampleTrial().dependencies()};
  EXPECT_EQ(Retain(limits).removed_compiles, 1);
  EXPECT_TRUE(store().FindArtifact("today", "nvrtc 13.0").ok());
  EXPECT_EQ(store().FindArtifact("yesterday", "nvrtc 12.9").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(RetentionContract, ATrialGoesWithWhatToolsSaidOfIt) {
  const std::string name = Append(Trial(kProblem, 1, 0));
  ASSERT_TRUE(store().RecordProfile(name, v1::Profile(), {}).ok());
  EXPECT_EQ(Retain(TooSmall()).removed_trials, 1);
  EXPECT_EQ(store().GetTrial(name).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(RetentionContract, AVariantIsStoredAnewAfterItsTrialsHaveGone) {
  Append(Trial(kProblem, 1, 0));
  Retain(TooSmall());
  ASSERT_THAT(Trials(), testing::IsEmpty());
  const std::string again = Append(Trial(kProblem, 1, 0));
  EXPECT_EQ(store().GetTrial(again)->variant().parameters(0).value(), 1);
}

INSTANTIATE_TEST_SUITE_P(Store, RetentionContract, testing::ValuesIn(DurableImplementations()), ImplementationName);

}  // namespace
}  // namespace attune::store
