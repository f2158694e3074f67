#include "proto/attune/device_list.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune {
namespace {

using ::testing::ElementsAre;

TEST(DeviceList, IsTheCardsThatItWasMadeOf) {
  EXPECT_THAT(CardsIn("cuda:0"), ElementsAre("cuda:0"));
  EXPECT_THAT(CardsIn(ListOfCards({"cuda:0", "cuda:1"})), ElementsAre("cuda:0", "cuda:1"));
}

TEST(DeviceList, SaysWhetherItNamesSeveral) {
  EXPECT_FALSE(NamesSeveralCards("cuda:0"));
  EXPECT_TRUE(NamesSeveralCards(ListOfCards({"cuda:0", "cuda:1"})));
}

}  // namespace
}  // namespace attune
