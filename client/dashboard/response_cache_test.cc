#include "client/dashboard/response_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace attune::dashboard {
namespace {

class SetClock : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixSeconds(seconds); }
  std::atomic<int64_t> seconds = 1'790'000'000;
};

class ResponseCacheTest : public ::testing::Test {
 protected:
  // The status of the answer, which is the number of the one that was made.
  int Get(const std::string& key) {
    return cache_.Get(key, [this] { return HttpResponse{.status = ++made_}; }).status;
  }

  SetClock clock_;
  ResponseCache cache_{&clock_, absl::Seconds(2), 3, 1000};
  std::atomic<int> made_ = 0;
};

TEST_F(ResponseCacheTest, GivesTheSameAnswerForItsTime) {
  EXPECT_EQ(Get("a"), 1);
  clock_.seconds += 1;
  EXPECT_EQ(Get("a"), 1);
  clock_.seconds += 1;
  EXPECT_EQ(Get("a"), 2);
}

TEST_F(ResponseCacheTest, TellsKeysApart) {
  EXPECT_EQ(Get("a"), 1);
  EXPECT_EQ(Get("b"), 2);
  EXPECT_EQ(Get("a"), 1);
}

TEST_F(ResponseCacheTest, KeepsSoManyAnswersAndNoMore) {
  Get("first");
  clock_.seconds += 1;
  for (int i = 0; i < 2; ++i) Get(absl::StrCat("other", i));
  EXPECT_EQ(Get("first"), 1);
  Get("one more");
  EXPECT_EQ(Get("first"), 5);  // it was the oldest
}

TEST_F(ResponseCacheTest, KeepsSoManyBytesAndNoMore) {
  int made = 0;
  const auto get = [&](const std::string& key, size_t bytes) {
    return cache_
        .Get(key, [&] { return HttpResponse{.status = ++made, .content = MakeContent("", std::string(bytes, 'x'))}; })
        .status;
  };
  get("a", 400);
  clock_.seconds += 1;
  get("b", 400);
  EXPECT_EQ(get("a", 400), 1);
  get("c", 400);
  EXPECT_EQ(get("b", 400), 2);
  EXPECT_EQ(get("a", 400), 4);  // it was the oldest
  EXPECT_EQ(get("too large", 1'000'000), 5);
  EXPECT_EQ(get("too large", 1'000'000), 6);
}

TEST_F(ResponseCacheTest, WhoAsksMeanwhileWaitsForTheSameAnswer) {
  constexpr int kOthers = 4;
  std::atomic<int> asked = 0;
  std::vector<std::thread> others;
  std::vector<int> got(kOthers);
  const int first = cache_
                        .Get("a",
                             [&] {
                               for (int i = 0; i < kOthers; ++i) {
                                 others.emplace_back([&, i] {
                                   ++asked;
                                   got[static_cast<size_t>(i)] = Get("a");
                                 });
                               }
                               while (asked < kOthers) std::this_thread::yield();
                               return HttpResponse{.status = 100};
                             })
                        .status;
  for (std::thread& thread : others) thread.join();
  EXPECT_EQ(first, 100);
  EXPECT_EQ(got, std::vector<int>(kOthers, 100));
  EXPECT_EQ(made_, 0);
}

}  // namespace
}  // namespace attune::dashboard
