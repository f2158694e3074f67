#include "server/trials/code_on_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"

namespace attune::trials {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kShape[] = "b1.h1.q128.d64.f16";
constexpr char kOtherShape[] = "b1.h1.q256.d64.f16";
constexpr absl::Duration kPatience = absl::Minutes(2);

v1::GetBestRequest Question(const std::string& problem = kShape) {
  v1::GetBestRequest request;
  *request.mutable_problem() = ToProto(*ParseProblem(problem));
  request.set_device_id("cuda:0");
  request.set_policy(v1::POLICY_HOT);
  return request;
}

// What variants of a family with other sources are compiled to, whatever their parameters.
absl::StatusOr<worker::v1::CompileResponse> NotCompiled(const worker::v1::CompileRequest&) {
  worker::v1::CompileResponse response;
  response.set_verdict(v1::VERDICT_COMPILE_ERROR);
  response.set_log("kernel.cu(1): error: no such thing");
  return response;
}

// Answers of an empty store, on a host whose compilers are scripted.
class CodeOnDemandTest : public ::testing::Test {
 protected:
  // As at the start of a daemon. Once more: as after its end.
  void Open(CodeOnDemand::Options options = {}) {
    results_.reset();
    supply_ = std::make_unique<CodeOnDemand>(store_, pool_, host_, options);
    results_ = *catalog::Results::Load(store_, host_, supply_.get());
  }
  v1::GetBestResponse Ask(const v1::GetBestRequest& request = Question()) {
    awaited_.clear();
    const auto best = results_->GetBest(request, &awaited_);
    EXPECT_TRUE(best.ok()) << best.status();
    return best.value_or(v1::GetBestResponse());
  }
  // Blocks until Await has called.
  void Await(const std::string& compile_key, absl::Duration patience) {
    const auto known = std::make_shared<std::promise<void>>();
    supply_->Await(compile_key, patience, [known] { known->set_value(); });
    EXPECT_EQ(known->get_future().wait_for(absl::ToChronoSeconds(kPatience)), std::future_status::ready);
  }
  // The answer once its code is no longer COMPILING.
  v1::GetBestResponse Settled(const v1::GetBestRequest& request = Question()) {
    v1::GetBestResponse best = Ask(request);
    for (int i = 0; i < 10 && best.artifact_state() == v1::ARTIFACT_STATE_COMPILING; ++i) {
      Await(awaited_, kPatience);
      best = Ask(request);
    }
    return best;
  }

  store::FakeStore store_;
  supervisor::FakeCompilePool pool_;
  catalog::Host host_ = catalog::FakeHost();
  std::unique_ptr<CodeOnDemand> supply_;
  std::unique_ptr<catalog::Results> results_;
  std::string awaited_;  // of the last Ask
};

TEST_F(CodeOnDemandTest, TheFirstAnswerIsGivenAtOnceAndItsCodeCompiledMeanwhile) {
  pool_.Hold();
  Open();
  EXPECT_EQ(Ask().artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  EXPECT_FALSE(awaited_.empty());
  const uint64_t before = results_->version();
  pool_.Go();
  v1::GetBestRequest request = Question();
  request.set_include_artifact(true);
  const v1::GetBestResponse best = Settled(request);
  EXPECT_EQ(best.provenance(), v1::PROVENANCE_HEURISTIC);
  EXPECT_EQ(best.artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_THAT(best.artifact(), HasSubstr("code "));
  EXPECT_FALSE(best.artifact_sha256().empty());
  EXPECT_GT(results_->version(), before) << "who keeps answers keeps that it is being compiled";
  EXPECT_THAT(awaited_, IsEmpty());
}

TEST_F(CodeOnDemandTest, AnswersOfOneCodeShareACompile) {
  pool_.Hold();
  Open();
  EXPECT_EQ(Ask(Question(kShape)).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  EXPECT_EQ(Ask(Question(kOtherShape)).artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  pool_.Go();
  EXPECT_EQ(Settled(Question(kShape)).artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_EQ(Settled(Question(kOtherShape)).artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_EQ(pool_.compiles(), 1);
}

TEST_F(CodeOnDemandTest, NothingIsCompiledForAnAnswerThatIsNotAcceptable) {
  Open();
  v1::GetBestRequest request = Question();
  request.add_acceptable(v1::PROVENANCE_EXACT);
  EXPECT_FALSE(results_->GetBest(request).ok());
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_EQ(pool_.compiles(), 1);
}

TEST_F(CodeOnDemandTest, WhatIsInTheStoreIsNotCompiledAgain) {
  Open();
  Settled();
  Open();
  v1::GetBestRequest request = Question();
  request.set_include_artifact(true);
  const v1::GetBestResponse best = Ask(request);
  EXPECT_EQ(best.artifact_state(), v1::ARTIFACT_STATE_READY) << "with its bytes the store is looked into at once";
  EXPECT_FALSE(best.artifact().empty());
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_EQ(pool_.compiles(), 1);
}

TEST_F(CodeOnDemandTest, CodeThatDoesNotCompileGivesWayToTheNextBestForGood) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    const bool guess = supervisor::FakeCompilePool::Has(request, "-DBLOCK=32");
    return guess ? NotCompiled(request) : supervisor::FakeCompilePool::Plain(request);
  });
  Open();
  EXPECT_THAT(Ask().variant().text(), HasSubstr("BLOCK=32"));
  const v1::GetBestResponse best = Settled();
  EXPECT_EQ(best.artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_THAT(best.variant().text(), HasSubstr("BLOCK=16"));
  EXPECT_EQ(pool_.compiles(), 2);
  Open();
  EXPECT_THAT(Settled().variant().text(), HasSubstr("BLOCK=16"));
  EXPECT_EQ(pool_.compiles(), 2) << "the store remembers";
}

TEST_F(CodeOnDemandTest, CodeThatSpillsGivesWayToTheNextBest) {
  pool_.Script([](const worker::v1::CompileRequest& request) {
    auto response = supervisor::FakeCompilePool::Plain(request);
    if (supervisor::FakeCompilePool::Has(request, "-DBLOCK=32")) response->mutable_entries(0)->set_spill_bytes(64);
    return response;
  });
  Open();
  const v1::GetBestResponse best = Settled();
  EXPECT_EQ(best.artifact_state(), v1::ARTIFACT_STATE_READY);
  EXPECT_THAT(best.variant().text(), HasSubstr("BLOCK=16"));
  // Before anybody has looked, neither are the stored bytes of the one that spills given.
  Open();
  v1::GetBestRequest request = Question();
  request.set_include_artifact(true);
  EXPECT_THAT(Ask(request).artifact(), IsEmpty());
}

TEST_F(CodeOnDemandTest, WhereNothingCompilesTheAnswerSaysWhyUntilItIsTriedAgain) {
  std::atomic<bool> broken = true;
  pool_.Script([&broken](const worker::v1::CompileRequest& request) {
    return broken ? NotCompiled(request) : supervisor::FakeCompilePool::Plain(request);
  });
  Open();
  const v1::GetBestResponse best = Settled();
  EXPECT_EQ(best.artifact_state(), v1::ARTIFACT_STATE_NONE);
  EXPECT_THAT(best.artifact_reason(), HasSubstr("COMPILE_ERROR: kernel.cu(1): error: no such thing"));
  EXPECT_THAT(best.variant().text(), HasSubstr("BLOCK=32"));
  EXPECT_EQ(pool_.compiles(), 3);
  broken = false;
  for (const int64_t block : {16, 32, 64}) {
    const space::Variant variant{host_.families.Now()[0], {block, 1}};
    const auto spec = space::SpecFor(variant, *ParseProblem(kShape), host_.devices[0]);
    ASSERT_EQ(store_.ForgetFailedCompiles({spec->key}, "fakec 1.0").value_or(0), 1);
  }
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_NONE);
  supply_->ForgetUseless();
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_READY);
}

TEST_F(CodeOnDemandTest, CodeThatATrialFoundWrongGivesWayToTheNextBestUntilItIsTriedAgain) {
  Open();
  const v1::GetBestResponse before = Settled();
  ASSERT_EQ(before.artifact_state(), v1::ARTIFACT_STATE_READY);
  const space::Variant variant{host_.families.Now()[0], {32, 2}};
  ASSERT_EQ(before.variant().text(), variant.ToText());
  const uint64_t version = results_->version();
  const auto spec = space::SpecFor(variant, *ParseProblem(kShape), host_.devices[0]);
  supply_->Condemn(spec->key, "WRONG_RESULT");
  EXPECT_GT(results_->version(), version);
  EXPECT_NE(Settled().variant().text(), variant.ToText());
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_READY);
  supply_->ForgetUseless();
  EXPECT_EQ(Settled().variant().text(), variant.ToText());
}

TEST_F(CodeOnDemandTest, WithTooManyUnderWayAnAnswerIsToldToAskAgain) {
  host_.families = catalog::Families(catalog::SearchFamily("source one", "32"));
  host_.families.Add(catalog::MakeFamily(R"(
    name: "long" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    problem_limits { expr: "seq_q > 1024" reason: "longer than tiles takes" }
    launches { entry: "attention" grid_x: "seq_q" block_x: "128" main: true })",
                                         "source two"));
  const v1::GetBestRequest longer = Question("b1.h1.q2048.d64.f16");
  pool_.Hold();
  CodeOnDemand::Options options;
  options.most_under_way = 1;
  Open(options);
  Ask();
  const v1::GetBestResponse refused = Ask(longer);
  EXPECT_EQ(refused.artifact_state(), v1::ARTIFACT_STATE_NONE);
  EXPECT_THAT(refused.artifact_reason(), HasSubstr("ask again later"));
  const uint64_t before = results_->version();
  pool_.Go();
  Settled();
  EXPECT_GT(results_->version(), before);
  EXPECT_EQ(Settled(longer).artifact_state(), v1::ARTIFACT_STATE_READY);
}

TEST_F(CodeOnDemandTest, WhoWaitsIsToldWhenItsPatienceOrTheDaemonEnds) {
  pool_.Hold();
  Open();
  Ask();
  const std::string key = awaited_;
  Await(key, absl::Milliseconds(1));
  EXPECT_EQ(Ask().artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  std::promise<void> told;
  supply_->Await(key, absl::Hours(1), [&told] { told.set_value(); });
  supply_->Shutdown();
  EXPECT_EQ(told.get_future().wait_for(std::chrono::minutes(2)), std::future_status::ready);
  EXPECT_EQ(Ask(Question(kOtherShape)).artifact_state(), v1::ARTIFACT_STATE_COMPILING) << "as before";
}

TEST_F(CodeOnDemandTest, WhoWaitsForWhatNobodyCompilesOrAmongTooManyIsToldAtOnce) {
  pool_.Hold();
  CodeOnDemand::Options options;
  options.most_waiting = 0;
  Open(options);
  Ask();
  Await(awaited_, kPatience);
  Await("another key", kPatience);
}

TEST_F(CodeOnDemandTest, ALostWorkerSaysNothingOfTheCode) {
  int lost = 0;
  pool_.Script([&lost](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    if (lost++ < 2) return absl::InternalError("the worker went away");
    return supervisor::FakeCompilePool::Plain(request);
  });
  Open();
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_READY);
}

TEST_F(CodeOnDemandTest, WhatTheHostFailsAtIsHeldForAWhile) {
  pool_.Script([](const worker::v1::CompileRequest&) -> absl::StatusOr<worker::v1::CompileResponse> {
    return absl::UnavailableError("no compiler here");
  });
  CodeOnDemand::Options options;
  options.hold = absl::InfiniteDuration();
  Open(options);
  for (int i = 0; i < 2; ++i) {
    const v1::GetBestResponse held = Settled();
    EXPECT_EQ(held.artifact_state(), v1::ARTIFACT_STATE_NONE);
    EXPECT_EQ(held.artifact_reason(), "no compiler here");
    EXPECT_THAT(held.variant().text(), HasSubstr("BLOCK=32")) << "the code may be good";
  }
  EXPECT_EQ(pool_.compiles(), 1);
}

TEST_F(CodeOnDemandTest, WhatTheHostFailsAtIsTriedAgainAfterThat) {
  int failures = 0;
  pool_.Script([&failures](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    if (failures++ == 0) return absl::UnavailableError("no compiler here");
    return supervisor::FakeCompilePool::Plain(request);
  });
  CodeOnDemand::Options options;
  options.hold = absl::Milliseconds(1);
  Open(options);
  const absl::Time end = absl::Now() + kPatience;
  while (Settled().artifact_state() != v1::ARTIFACT_STATE_READY && absl::Now() < end) std::this_thread::yield();
  EXPECT_EQ(Settled().artifact_state(), v1::ARTIFACT_STATE_READY);
}

TEST_F(CodeOnDemandTest, LostBytesAreMadeAgain) {
  Open();
  Settled();
  store_.LoseArtifactFiles();
  v1::GetBestRequest request = Question();
  request.set_include_artifact(true);
  const v1::GetBestResponse lost = Ask(request);
  EXPECT_EQ(lost.artifact_state(), v1::ARTIFACT_STATE_COMPILING);
  EXPECT_THAT(lost.artifact_sha256(), IsEmpty());
  EXPECT_FALSE(Settled(request).artifact().empty());
  EXPECT_EQ(pool_.compiles(), 2);
}

}  // namespace
}  // namespace attune::trials
