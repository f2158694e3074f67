#include "server/trials/compile_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"
#include "server/trials/testing/lone_job.h"

namespace attune::trials {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Candidates 0, 1, 2, ... with the compile keys given.
std::function<std::optional<CompileAhead::Item>()> Candidates(std::vector<std::string> keys) {
  auto next = std::make_shared<size_t>(0);
  return [keys = std::move(keys), next]() -> std::optional<CompileAhead::Item> {
    if (*next == keys.size()) return std::nullopt;
    const size_t index = (*next)++;
    return CompileAhead::Item{index, keys[index], [key = keys[index]] {
                                worker::v1::CompileRequest request;
                                request.add_options(key);
                                return request;
                              }};
  };
}

// Its files may be damaged.
class DamagedStore : public store::FakeStore {
 public:
  absl::StatusOr<std::string> ReadArtifact(absl::string_view sha256) override {
    if (damaged) return absl::DataLossError("its bytes no longer have its hash");
    return FakeStore::ReadArtifact(sha256);
  }

  std::atomic<bool> damaged = false;
};

class CompileAheadTest : public ::testing::Test {
 protected:
  CompileAhead::Options Options(int window) {
    CompileAhead::Options options;
    options.store = &store_;
    options.pool = &pool_;
    options.job = &lone_.job;
    options.toolchain = "fakec 1.0";
    options.window = window;
    return options;
  }
  static std::vector<size_t> TakeAll(CompileAhead& ahead) {
    std::vector<size_t> taken;
    while (const std::optional<CompileAhead::Ready> ready = ahead.Take()) taken.push_back(ready->candidate);
    return taken;
  }

  DamagedStore store_;
  supervisor::FakeCompilePool pool_;
  LoneJob lone_;
};

TEST_F(CompileAheadTest, GivesEveryCandidateItsCode) {
  CompileAhead ahead(Options(2), Candidates({"a", "b", "c"}), [] {});
  EXPECT_THAT(TakeAll(ahead), UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(pool_.compiles(), 3);
}

TEST_F(CompileAheadTest, CandidatesOfOneKeyShareACompile) {
  CompileAhead ahead(Options(8), Candidates({"a", "a", "b", "a"}), [] {});
  EXPECT_THAT(TakeAll(ahead), UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(pool_.compiles(), 2);
}

TEST_F(CompileAheadTest, CompilesNoFurtherAheadThanItsWindow) {
  pool_.Hold();
  CompileAhead ahead(Options(3), Candidates({"a", "b", "c", "d", "e", "f"}), [] {});
  EXPECT_EQ(pool_.AwaitSubmitted(3), 3);
  pool_.Go();
  // Nothing is taken, so that nothing further is asked for: the first of three is still there.
  const std::optional<CompileAhead::Ready> first = ahead.Take();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(pool_.AwaitSubmitted(4), 4);
  EXPECT_EQ(TakeAll(ahead).size(), 5);
}

TEST_F(CompileAheadTest, TakesWhatTheStoreHas) {
  {
    CompileAhead ahead(Options(2), Candidates({"a", "b"}), [] {});
    TakeAll(ahead);
  }
  CompileAhead again(Options(2), Candidates({"a", "b"}), [] {});
  const std::optional<CompileAhead::Ready> ready = again.Take();
  ASSERT_TRUE(ready.has_value() && ready->code.ok());
  EXPECT_TRUE((*ready->code)->cached);
  EXPECT_EQ((*ready->code)->artifact, "code a");
  TakeAll(again);
  EXPECT_EQ(pool_.compiles(), 2);
}

TEST_F(CompileAheadTest, CompilesAgainWhatHasLostItsFile) {
  {
    CompileAhead ahead(Options(2), Candidates({"a"}), [] {});
    TakeAll(ahead);
  }
  store_.LoseArtifactFiles();
  CompileAhead again(Options(2), Candidates({"a"}), [] {});
  EXPECT_THAT(TakeAll(again), ElementsAre(0));
  EXPECT_EQ(pool_.compiles(), 2);
}

TEST_F(CompileAheadTest, CompilesAgainWhatIsDamaged) {
  {
    CompileAhead ahead(Options(2), Candidates({"a"}), [] {});
    TakeAll(ahead);
  }
  store_.damaged = true;
  CompileAhead again(Options(2), Candidates({"a"}), [] {});
  const std::optional<CompileAhead::Ready> ready = again.Take();
  ASSERT_TRUE(ready.has_value());
  ASSERT_TRUE(ready->code.ok()) << ready->code.status();
  EXPECT_EQ((*ready->code)->artifact, "code a");
  EXPECT_EQ(pool_.compiles(), 2);
}

TEST_F(CompileAheadTest, ABadVerdictIsQuarantinedUnlessToldOtherwise) {
  pool_.Script([](const worker::v1::CompileRequest&) -> absl::StatusOr<worker::v1::CompileResponse> {
    worker::v1::CompileResponse response;
    response.set_verdict(v1::VERDICT_COMPILE_ERROR);
    response.set_log("line 1: no");
    return response;
  });
  for (int round = 0; round < 2; ++round) {
    CompileAhead ahead(Options(2), Candidates({"a"}), [] {});
    const std::optional<CompileAhead::Ready> ready = ahead.Take();
    ASSERT_TRUE(ready.has_value() && ready->code.ok());
    EXPECT_EQ((*ready->code)->report.verdict, v1::VERDICT_COMPILE_ERROR);
    EXPECT_EQ((*ready->code)->report.log, "line 1: no");
  }
  EXPECT_EQ(pool_.compiles(), 1);
  CompileAhead::Options options = Options(2);
  options.ignore_quarantine = true;
  CompileAhead again(options, Candidates({"a"}), [] {});
  TakeAll(again);
  EXPECT_EQ(pool_.compiles(), 2);
}

TEST_F(CompileAheadTest, ALostCompileIsTriedAgainAFewTimes) {
  std::atomic<int> calls = 0;
  pool_.Script([&](const worker::v1::CompileRequest& request) -> absl::StatusOr<worker::v1::CompileResponse> {
    if (++calls < 3) return absl::InternalError("the worker is gone");
    return supervisor::FakeCompilePool::Plain(request);
  });
  CompileAhead ahead(Options(2), Candidates({"a"}), [] {});
  const std::optional<CompileAhead::Ready> ready = ahead.Take();
  ASSERT_TRUE(ready.has_value());
  EXPECT_TRUE(ready->code.ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(CompileAheadTest, WhatIsLostEveryTimeEndsAsAnError) {
  pool_.Script([](const worker::v1::CompileRequest&) -> absl::StatusOr<worker::v1::CompileResponse> {
    return absl::InternalError("the worker is gone");
  });
  CompileAhead ahead(Options(2), Candidates({"a"}), [] {});
  const std::optional<CompileAhead::Ready> ready = ahead.Take();
  ASSERT_TRUE(ready.has_value());
  EXPECT_TRUE(absl::IsInternal(ready->code.status()));
  EXPECT_EQ(pool_.compiles(), 3);
}

TEST_F(CompileAheadTest, StopEndsItWhileACompileIsInFlight) {
  pool_.Hold();
  {
    CompileAhead ahead(Options(2), Candidates({"a", "b", "c"}), [] {});
    pool_.AwaitSubmitted(2);
    ahead.Stop();
    EXPECT_THAT(TakeAll(ahead), IsEmpty());
  }
  pool_.Go();  // results of what is gone are dropped
}

}  // namespace
}  // namespace attune::trials
