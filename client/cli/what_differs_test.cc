#include "client/cli/what_differs.h"

#include "gmock/gmock.h"

namespace attune::cli {
namespace {

using ::testing::ElementsAre;

TEST(WhatDiffers, LeavesOutTheFamilyAndTheParametersThatAllHave) {
  EXPECT_THAT(WhatDiffers({"simt:BLOCK_M=64,VEC=4,UNROLL=1", "simt:BLOCK_M=64,VEC=8,UNROLL=2",
                           "simt:BLOCK_M=64,VEC=8,UNROLL=1"}),
              ElementsAre("...VEC=4,UNROLL=1", "...VEC=8,UNROLL=2", "...VEC=8,UNROLL=1"));
}

TEST(WhatDiffers, KeepsFamiliesWhereThereAreSeveral) {
  EXPECT_THAT(WhatDiffers({"simt:BLOCK_M=64,VEC=4", "simt:BLOCK_M=64,VEC=8", "mma:BLOCK_M=64,STAGES=2"}),
              ElementsAre("simt:...VEC=4", "simt:...VEC=8", "mma:BLOCK_M=64,STAGES=2"));
  EXPECT_THAT(WhatDiffers({"simt:VEC=4", "simt:VEC=8", "mma:VEC=4"}),
              ElementsAre("simt:VEC=4", "simt:VEC=8", "mma:VEC=4"))
      << "nothing went";
}

TEST(WhatDiffers, LeavesEqualOnesWholeAndEmptyOnesEmpty) {
  EXPECT_THAT(WhatDiffers({"simt:VEC=4", "", "simt:VEC=4"}), ElementsAre("simt:VEC=4", "", "simt:VEC=4"));
  EXPECT_THAT(WhatDiffers({"simt:VEC=4,A=1", "", "simt:VEC=8,A=1"}), ElementsAre("...VEC=4", "", "...VEC=8"));
  EXPECT_THAT(WhatDiffers({}), ElementsAre());
}

}  // namespace
}  // namespace attune::cli
