#include "server/service/response_cache.h"

#include "gtest/gtest.h"

namespace attune::service {
namespace {

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

std::string Text(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

TEST(ResponseCache, GivesBackWhatWasPut) {
  ResponseCache cache;
  EXPECT_FALSE(cache.Find("a", 0));
  cache.Put("a", 0, Bytes("answer"));
  EXPECT_EQ(Text(*cache.Find("a", 0)), "answer");
  EXPECT_EQ(Text(*cache.Find("a", 0)), "answer");  // reading does not use it up
  EXPECT_FALSE(cache.Find("b", 0));
}

TEST(ResponseCache, CountsEachAnswerThatItGives) {
  metrics::Answers answers;
  v1::Problem problem;
  problem.set_dtype(v1::DTYPE_F16);
  ResponseCache cache;
  cache.Put("a", 0, Bytes("answer"), nullptr, answers.Of(problem, v1::PROVENANCE_EXACT));
  EXPECT_TRUE(cache.Find("a", 0));
  EXPECT_TRUE(cache.Find("a", 0));
  EXPECT_FALSE(cache.Find("b", 0));
  metrics::Families families;
  answers.Collect(families);
  double count = 0;
  for (const auto& metric : families.front().metric) count += metric.counter.value;
  EXPECT_EQ(count, 2);
}

TEST(ResponseCache, ForgetsWhenAnAnswerMayHaveChanged) {
  ResponseCache cache;
  cache.Put("a", 1, Bytes("old"));
  EXPECT_FALSE(cache.Find("a", 2));
  cache.Put("b", 2, Bytes("new"));
  EXPECT_FALSE(cache.Find("a", 2));
  EXPECT_EQ(Text(*cache.Find("b", 2)), "new");
}

TEST(ResponseCache, AnAnswerMadeBeforeTheLastChangeIsNotKept) {
  ResponseCache cache;
  cache.Put("a", 2, Bytes("new"));
  cache.Put("a", 1, Bytes("old"));
  EXPECT_EQ(Text(*cache.Find("a", 2)), "new");
}

TEST(ResponseCache, HoldsNoMoreThanItsBound) {
  ResponseCache cache;
  const std::string answer(100'000, 'a');
  const int kept = ResponseCache::kMostBytes / 101'000;
  for (int i = 0; i < 10 * kept; ++i) {
    cache.Put(std::to_string(i), 0, Bytes(answer));
    EXPECT_TRUE(cache.Find(std::to_string(i), 0));
  }
  int there = 0;
  for (int i = 0; i < 10 * kept; ++i) there += cache.Find(std::to_string(i), 0).has_value() ? 1 : 0;
  EXPECT_LE(there, kept + 1);
}

TEST(ResponseCache, KeepsNeitherLargeRequestsNorLargeResponses) {
  ResponseCache cache;
  const std::string padded(ResponseCache::kMostRequestBytes + 1, 'r');
  cache.Put(padded, 0, Bytes("answer"));
  EXPECT_FALSE(cache.Find(padded, 0));
  cache.Put("a", 0, Bytes(std::string(ResponseCache::kMostResponseBytes + 1, 'a')));
  EXPECT_FALSE(cache.Find("a", 0));
}

}  // namespace
}  // namespace attune::service
