#include "server/trials/compile_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/store/testing/fake_store.h"
#include "server/supervisor/testing/fake_workers.h"
#include "server/trials/testing/lone_job.h"

namespace attune::trials {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Candidates 0, 1, 2, ... with the compile keys given.
CompileAhead::Item Asked(size_t candidate, const std::string& key) {
  return {candidate, key, [key] {
            worker::v1::CompileRequest request;
            request.add_options(key);
            return request;
          }};
}
CompileAhead::Next Candidates(std::vector<std::string> keys) {
  auto next = std::make_shared<size_t>(0);
  return [keys = std::move(keys), next](bool room) -> CompileAhead::Wanted {
    if (!room) return {};
    if (*next == keys.size()) return {.item = {}, .dropped = {}, .over = true};
    const size_t index = (*next)++;
    return {.item = Asked(index, keys[index]), .dropped = {}};
  };
}

search::Choice First(const std::vector<size_t>& ready) {
  return ready.empty() ? search::Choice::Wait() : search::Choice::Try(ready.front());
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
    while (const std::optional<CompileAhead::Ready> ready = ahead.Take(First)) taken.push_back(ready->candidate);
    return taken;
  }

  // Waits for others than `unwanted`.
  static std::vector<size_t> TakeAllBut(CompileAhead& ahead, size_t unwanted) {
    std::vector<size_t> taken;
    const auto choose = [&](const std::vector<size_t>& ready) {
      for (size_t candidate : ready) {
        if (candidate != unwanted) return search::Choice::Try(candidate);
      }
      return search::Choice::Wait();
    };
    while (const std::optional<CompileAhead::Ready> ready = ahead.Take(choose)) taken.push_back(ready->candidate);
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

TEST_F(CompileAheadTest, SeveralThatTakeGetEachCandidateOnce) {
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(absl::StrCat("key ", i / 2));
  CompileAhead ahead(Options(8), Candidates(keys), [] {});
  std::vector<std::vector<size_t>> taken(3);
  {
    std::vector<std::jthread> threads;
    for (std::vector<size_t>& own : taken) threads.emplace_back([&] { own = TakeAll(ahead); });
  }
  std::multiset<size_t> all;
  for (const std::vector<size_t>& own : taken) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), keys.size());
  EXPECT_EQ(std::set<size_t>(all.begin(), all.end()).size(), keys.size());
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
  const std::optional<CompileAhead::Ready> first = ahead.Take(First);
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
  const std::optional<CompileAhead::Ready> ready = again.Take(First);
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
  const std::optional<CompileAhead::Ready> ready = again.Take(First);
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
    const std::optional<CompileAhead::Ready> ready = ahead.Take(First);
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
  const std::optional<CompileAhead::Ready> ready = ahead.Take(First);
  ASSERT_TRUE(ready.has_value());
  EXPECT_TRUE(ready->code.ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(CompileAheadTest, WhatIsLostEveryTimeEndsAsAnError) {
  pool_.Script([](const worker::v1::CompileRequest&) -> absl::StatusOr<worker::v1::CompileResponse> {
    return absl::InternalError("the worker is gone");
  });
  CompileAhead ahead(Options(2), Candidates({"a"}), [] {});
  const std::optional<CompileAhead::Ready> ready = ahead.Take(First);
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

TEST_F(CompileAheadTest, OnceItHasEndedNothingIsAskedAnyMore) {
  std::latch asked(1);
  std::atomic<bool> answered = false;
  const auto slow = [&](bool) -> CompileAhead::Wanted {
    asked.count_down();
    absl::SleepFor(absl::Milliseconds(50));
    answered = true;
    return {.item = {}, .dropped = {}, .over = true};
  };
  CompileAhead ahead(Options(1), slow, [] {});
  asked.wait();
  ahead.End();
  EXPECT_TRUE(answered);
}

TEST_F(CompileAheadTest, TakesWhatIsChosenOfThoseThatAreReady) {
  CompileAhead ahead(Options(3), Candidates({"a", "b", "c"}), [] {});
  const auto ready = ahead.Take([](const std::vector<size_t>& candidates) {
    return candidates.size() < 3 ? search::Choice::Wait()
                                 : search::Choice::Try(*std::max_element(candidates.begin(), candidates.end()));
  });
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->candidate, 2);
  EXPECT_THAT(TakeAll(ahead), UnorderedElementsAre(0, 1));
}

// Who waits for code may want other code meanwhile.
TEST_F(CompileAheadTest, AsksAgainOnceATakeWaits) {
  pool_.Hold();
  std::atomic<bool> waits = false;
  std::atomic<int> given = 0;
  const auto next = [&](bool) -> CompileAhead::Wanted {
    if (given == 0 || (given == 1 && waits)) {
      const int index = given++;
      return {.item = Asked(static_cast<size_t>(index), absl::StrCat("k", index)), .dropped = {}};
    }
    return {};
  };
  CompileAhead ahead(Options(2), next, [] {});
  EXPECT_EQ(pool_.AwaitSubmitted(1), 1);
  std::thread taking([&] {
    ahead.Take([&](const std::vector<size_t>& ready) {
      waits = true;
      return First(ready);
    });
  });
  EXPECT_EQ(pool_.AwaitSubmitted(2), 2);
  pool_.Go();
  taking.join();
}

TEST_F(CompileAheadTest, EndsWhenTheChoiceIsThatNothingMoreIsTried) {
  CompileAhead ahead(Options(3), Candidates({"a", "b", "c"}), [] {});
  EXPECT_FALSE(ahead.Take([](const std::vector<size_t>&) { return search::Choice::Done(); }).has_value());
}

// With a window of one, "b" has room only once "a" is dropped.
TEST_F(CompileAheadTest, WhatIsDroppedMakesRoom) {
  std::atomic<bool> changed_mind = false;
  int asked = 0;
  CompileAhead ahead(
      Options(1),
      [&](bool room) -> CompileAhead::Wanted {
        if (room && asked == 0) return {.item = Asked(asked++, "a"), .dropped = {}};
        if (!room && changed_mind.exchange(false)) return {.item = {}, .dropped = {0}};
        if (room && asked == 1) return {.item = Asked(asked++, "b"), .dropped = {}};
        return {.item = {}, .dropped = {}, .over = asked == 2};
      },
      [] {});
  pool_.AwaitSubmitted(1);
  changed_mind = true;
  ahead.Wake();
  EXPECT_THAT(TakeAllBut(ahead, 0), ElementsAre(1));
  EXPECT_EQ(pool_.compiles(), 2);
}

TEST_F(CompileAheadTest, WhatIsDroppedWhileItCompilesIsStored) {
  pool_.Hold();
  std::atomic<bool> changed_mind = false;
  std::atomic<int> asked = 0;
  std::atomic<int> compiled = 0;
  {
    CompileAhead ahead(
        Options(1),
        [&](bool room) -> CompileAhead::Wanted {
          if (room && asked == 0) return {.item = Asked(asked++, "a"), .dropped = {}};
          if (changed_mind.exchange(false)) return {.item = {}, .dropped = {0}};
          return {};
        },
        [&] {
          ++compiled;
          compiled.notify_all();
        });
    pool_.AwaitSubmitted(1);
    changed_mind = true;
    ahead.Wake();
    while (changed_mind) std::this_thread::yield();
    pool_.Go();
    compiled.wait(0);
  }
  EXPECT_TRUE(FindCode(store_, "a", "fakec 1.0").ok());
}

// What is dropped and then asked for again is taken as if it had never been dropped.
TEST_F(CompileAheadTest, WhatIsDroppedMayBeAskedForAgain) {
  std::vector<CompileAhead::Wanted> answers;
  answers.push_back({.item = Asked(0, "a"), .dropped = {}});
  answers.push_back({.item = {}, .dropped = {0}});
  answers.push_back({.item = Asked(0, "a"), .dropped = {}});
  answers.push_back({.item = {}, .dropped = {}, .over = true});
  pool_.Hold();  // else it might be taken before it is dropped
  std::atomic<size_t> next = 0;
  CompileAhead ahead(
      Options(2), [&](bool) { return answers[next++]; }, [] {});
  while (next < answers.size()) std::this_thread::yield();
  pool_.Go();
  EXPECT_THAT(TakeAll(ahead), ElementsAre(0));
  EXPECT_EQ(pool_.compiles(), 1);
}

}  // namespace
}  // namespace attune::trials
