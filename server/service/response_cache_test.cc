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

}  // namespace
}  // namespace attune::service
