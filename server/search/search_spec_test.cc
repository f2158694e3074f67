#include "server/search/search_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/catalog/testing/fake_host.h"

namespace attune::search {
namespace {

using ::testing::ElementsAre;

// The first parameter of each, in SearchFamily.
std::vector<int64_t> Blocks(const std::vector<space::Variant>& seeds) {
  std::vector<int64_t> blocks;
  for (const space::Variant& seed : seeds) blocks.push_back(seed.values[0]);
  return blocks;
}

TEST(SeedsOf, WhatIsExpectedComesAfterTheNearest) {
  const auto family = catalog::SearchFamily();
  const auto of = [&](int64_t block) { return space::Variant{.family = family, .values = {block, 1}}; };
  EXPECT_THAT(Blocks(SeedsOf({of(1), of(2)}, std::nullopt)), ElementsAre(1, 2));
  EXPECT_THAT(Blocks(SeedsOf({of(1), of(2)}, of(9))), ElementsAre(1, 9, 2));
  EXPECT_THAT(Blocks(SeedsOf({}, of(9))), ElementsAre(9));
  EXPECT_THAT(Blocks(SeedsOf({of(1), of(2), of(9)}, of(9))), ElementsAre(1, 9, 2)) << "each once";
  EXPECT_THAT(Blocks(SeedsOf({of(9), of(2)}, of(9))), ElementsAre(9, 2));
  EXPECT_THAT(Blocks(SeedsOf({of(1), of(2), of(3), of(4)}, of(9))), ElementsAre(1, 9, 2, 3)) << "at most four";
}

}  // namespace
}  // namespace attune::search
