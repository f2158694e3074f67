#include "client/cli/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::cli {
namespace {

using ::testing::ElementsAre;

TEST(CsvLines, HaveTheColumnsAndOneForEachParameter) {
  const Json one = {{"type", "trial"}, {"trial", "trials/1"}, {"parameters", {{"M", 16}, {"N", 32}}}, {"us", 1.5}};
  const Json other = {{"type", "trial"}, {"trial", "trials/2"}, {"parameters", {{"N", 64}, {"K", 2}}}, {"us", nullptr}};
  EXPECT_THAT(CsvLines({"trial", "us"}, {one, other}),
              ElementsAre("trial,us,M,N,K", "trials/1,1.5,16,32,", "trials/2,,,64,2"));
}

TEST(CsvLines, QuoteWhatSeparates) {
  EXPECT_THAT(CsvLines({"variant", "detail", "settled"},
                       {{{"variant", "f:A=1,B=2"}, {"detail", "said \"no\""}, {"settled", true}}}),
              ElementsAre("variant,detail,settled", "\"f:A=1,B=2\",\"said \"\"no\"\"\",true"));
}

TEST(CsvLines, OfNothingAreTheNames) { EXPECT_THAT(CsvLines({"trial", "us"}, {}), ElementsAre("trial,us")); }

}  // namespace
}  // namespace attune::cli
