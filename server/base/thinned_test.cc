#include "server/base/thinned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Thinned, TheFirstOneByOneAndSomeOfTheRest) {
  const std::vector<size_t> kept = Thinned(660, 120);
  ASSERT_EQ(kept.size(), 120);
  EXPECT_EQ(kept[59], 59);
  EXPECT_EQ(kept[60], 60);
  EXPECT_EQ(kept[61], 70);
  EXPECT_EQ(kept.back(), 650);
  EXPECT_THAT(Thinned(9, 4), ElementsAre(0, 1, 2, 6));
}

TEST(Thinned, FewStayAsTheyAre) {
  EXPECT_THAT(Thinned(3, 120), ElementsAre(0, 1, 2));
  EXPECT_THAT(Thinned(4, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Thinned(0, 4), IsEmpty());
}

TEST(Thinned, NeverMoreThanWereAskedFor) {
  for (size_t size = 1; size < 400; ++size) EXPECT_LE(Thinned(size, 120).size(), 120) << size;
}

}  // namespace
}  // namespace attune
