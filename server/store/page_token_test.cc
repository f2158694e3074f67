#include "server/store/page_token.h"

#include <limits>

#include "gtest/gtest.h"

namespace attune::store {
namespace {

TEST(PageToken, GivesBackItsKey) {
  const std::string token =
      EncodePageToken("trials", {.id = 1234567890123, .rank = std::numeric_limits<double>::infinity()});
  absl::StatusOr<std::optional<PageKey>> key = DecodePageToken("trials", token);
  ASSERT_TRUE(key.ok()) << key.status();
  ASSERT_TRUE(key->has_value());
  EXPECT_EQ((*key)->id, 1234567890123);
  EXPECT_EQ((*key)->rank, std::numeric_limits<double>::infinity());
}

TEST(PageToken, IsTheFirstPageWhenEmpty) {
  absl::StatusOr<std::optional<PageKey>> key = DecodePageToken("trials", "");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_FALSE(key->has_value());
}

TEST(PageToken, BelongsToOneListing) {
  const std::string token = EncodePageToken("trials", {.id = 7});
  EXPECT_EQ(DecodePageToken("jobs", token).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PageToken, IsRefusedWhenAnyCharacterChanges) {
  const std::string token = EncodePageToken("trials", {.id = 7});
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(DecodePageToken("trials", changed).status().code(), absl::StatusCode::kInvalidArgument) << i;
    EXPECT_FALSE(DecodePageToken("trials", token.substr(0, i + 1)).ok() && i + 1 < token.size()) << i;
  }
}

TEST(PageToken, LimitsPageSizes) {
  EXPECT_EQ(PageSize(0), 50);
  EXPECT_EQ(PageSize(-3), 50);
  EXPECT_EQ(PageSize(7), 7);
  EXPECT_EQ(PageSize(1001), 1000);
}

}  // namespace
}  // namespace attune::store
