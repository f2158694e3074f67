#include "client/cpp/answer_cache.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace attune {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

AnswerPtr Answer(const std::string& variant) {
  auto answer = std::make_shared<v1::GetBestResponse>();
  answer->mutable_variant()->set_text(variant);
  return answer;
}

AnswerCache::Entry Entry(const std::string& variant, absl::Duration life = absl::Seconds(60),
                         bool with_artifact = false, absl::Time fetched = kStart) {
  return {Answer(variant), with_artifact, fetched, fetched + life};
}

class AnswerCacheTest : public ::testing::Test {
 protected:
  std::string Find(const AnswerKeyView& key, bool need_artifact = false, absl::Time now = kStart) {
    const AnswerPtr answer = cache_.Find(key, need_artifact, now);
    return answer == nullptr ? "none" : answer->variant().text();
  }

  const Problem problem_ = *ParseProblem("b2.h8.q512.d64.f16");
  const Problem other_ = *ParseProblem("b2.h8.q512.d64.f16.causal");
  AnswerCache cache_{2};
};

TEST_F(AnswerCacheTest, FindsWhatWasPutUnderTheSameProblemDeviceAndPolicy) {
  cache_.Put({problem_, "cuda:0", v1::POLICY_HOT}, Entry("a"));
  EXPECT_EQ(Find({problem_, "cuda:0", v1::POLICY_HOT}), "a");
  EXPECT_EQ(Find({other_, "cuda:0", v1::POLICY_HOT}), "none");
  EXPECT_EQ(Find({problem_, "cuda:1", v1::POLICY_HOT}), "none");
  EXPECT_EQ(Find({problem_, "cuda:0", v1::POLICY_COLD}), "none");
  EXPECT_EQ(Find({problem_, "cuda:0", v1::POLICY_HOT, v1::OBJECTIVE_ENERGY}), "none");
  cache_.Put({problem_, "cuda:0", v1::POLICY_HOT, v1::OBJECTIVE_ENERGY}, Entry("b"));
  EXPECT_EQ(Find({problem_, "cuda:0", v1::POLICY_HOT, v1::OBJECTIVE_ENERGY}), "b");
  EXPECT_EQ(Find({problem_, "cuda:0", v1::POLICY_HOT}), "a");
}

TEST_F(AnswerCacheTest, EveryFieldOfAProblemTellsItFromOthers) {
  AnswerCache large(100);
  std::vector<Problem> problems(16, problem_);
  problems[0].batch = 3;
  problems[1].heads_q = 16;
  problems[2].heads_kv = 4;
  problems[3].seq_q = 7;
  problems[4].seq_kv = 7;
  problems[5].head_dim = 32;
  problems[6].dtype = v1::DTYPE_BF16;
  problems[7].mask = v1::MASK_CAUSAL_TOP_LEFT;
  problems[8].window = 5;
  problems[9].softcap = 30;
  problems[10].layout = v1::LAYOUT_BSHD;
  problems[11].lse = true;
  problems[12].sinks = true;
  problems[13].varlen = true;
  problems[14].page_size = 16;
  problems[15].kv_dtype = v1::DTYPE_E4M3;
  for (size_t i = 0; i < problems.size(); ++i) {
    large.Put({problems[i], "", v1::POLICY_HOT}, Entry(std::to_string(i)));
  }
  ASSERT_EQ(large.size(), problems.size());
  for (size_t i = 0; i < problems.size(); ++i) {
    EXPECT_EQ(large.Find({problems[i], "", v1::POLICY_HOT}, false, kStart)->variant().text(), std::to_string(i));
  }
}

TEST_F(AnswerCacheTest, ForgetsAnAnswerWhenItsTimeIsOver) {
  cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("a", absl::Seconds(60)));
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}, false, kStart + absl::Seconds(59)), "a");
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}, false, kStart + absl::Seconds(60)), "none");
}

TEST_F(AnswerCacheTest, StillHasTheExpiredAnswerForWhenThereIsNoOther) {
  cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("a", absl::Seconds(1)));
  EXPECT_EQ(cache_.FindEvenExpired({problem_, "", v1::POLICY_HOT}).answer->variant().text(), "a");
  EXPECT_EQ(cache_.FindEvenExpired({other_, "", v1::POLICY_HOT}).answer, nullptr);
}

TEST_F(AnswerCacheTest, AnAnswerWithoutItsArtifactDoesNotServeWhoNeedsIt) {
  cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("bare"));
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}, true), "none");
  cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("full", absl::Seconds(60), true));
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}, true), "full");
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}, false), "full");
}

TEST_F(AnswerCacheTest, TheOldestMakesRoomWhenItIsFull) {
  const Problem third = *ParseProblem("b1.h1.q1.d64.f16");
  cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("old", absl::Seconds(60), false, kStart));
  cache_.Put({other_, "", v1::POLICY_HOT}, Entry("new", absl::Seconds(60), false, kStart + absl::Seconds(1)));
  cache_.Put({third, "", v1::POLICY_HOT}, Entry("newest", absl::Seconds(60), false, kStart + absl::Seconds(2)));
  EXPECT_EQ(cache_.size(), 2u);
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}), "none");
  EXPECT_EQ(Find({other_, "", v1::POLICY_HOT}), "new");
}

TEST_F(AnswerCacheTest, ACapacityOfZeroKeepsNothing) {
  AnswerCache off(0);
  off.Put({problem_, "", v1::POLICY_HOT}, Entry("a"));
  EXPECT_EQ(off.size(), 0u);
}

TEST_F(AnswerCacheTest, ManyThreadsMayReadWhileOneWrites) {
  cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("a"));
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([this] {
      for (int n = 0; n < 1000; ++n) ASSERT_NE(Find({problem_, "", v1::POLICY_HOT}), "none");
    });
  }
  for (int n = 0; n < 1000; ++n) cache_.Put({problem_, "", v1::POLICY_HOT}, Entry("b"));
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(Find({problem_, "", v1::POLICY_HOT}), "b");
}

}  // namespace
}  // namespace attune
