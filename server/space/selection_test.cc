#include "server/space/selection.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"
#include "server/space/testing/tiles_family.h"

namespace attune::space {
namespace {

using ::testing::HasSubstr;

class SelectionTest : public ::testing::Test {
 protected:
  absl::StatusOr<Enumeration> Where(const std::vector<std::string>& where) {
    return Enumerate(family_, kProblem, l4_, nullptr, {Advice::kHeeded, where});
  }

  const v1::Device l4_ = *DeviceProfile("l4");
  const std::shared_ptr<const Family> family_ = Make(kTiles);
};

TEST_F(SelectionTest, IsWhatFilteringTheWholeSpaceLeaves) {
  const auto all = Enumerate(family_, kProblem, l4_);
  // Of a compile-time parameter, of a let, of both levels at once, and of the problem alone.
  const std::vector<std::string> where = {"BLOCK_M < 64", "tiles * KV_SPLITS >= 32", "heads_q == 8"};
  std::vector<std::vector<int64_t>> expected;
  for (const Variant& variant : all->variants) {
    if (variant.values[0] < 64 && 512 / variant.values[0] * variant.values[2] >= 32) expected.push_back(variant.values);
  }
  const auto selected = Where(where);
  ASSERT_TRUE(selected.ok()) << selected.status();
  std::vector<std::vector<int64_t>> found;
  for (const Variant& variant : selected->variants) found.push_back(variant.values);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(found.empty());
  EXPECT_LT(found.size(), all->variants.size());
  int64_t removed = 0;
  for (const Removed& one : selected->removed) removed += one.count;
  EXPECT_EQ(selected->product, selected->count + removed);
}

TEST_F(SelectionTest, IsNamedAmongWhatRemovesVariants) {
  const auto selected = Where({"BLOCK_M == 16"});
  ASSERT_FALSE(selected->removed.empty());
  EXPECT_EQ(selected->removed.back().constraint, "BLOCK_M == 16");
  EXPECT_EQ(selected->removed.back().reason, "not asked for");
}

TEST_F(SelectionTest, HoldsForOneEnumerationAlone) {
  const size_t all = Enumerate(family_, kProblem, l4_)->variants.size();
  EXPECT_EQ(Where({"0 == 1"})->count, 0);
  EXPECT_EQ(Enumerate(family_, kProblem, l4_)->variants.size(), all);
  EXPECT_TRUE(Feasible(Tiles(family_, 32, 2, 1), kProblem, l4_).ok());
}

TEST_F(SelectionTest, IsDrawnFromToo) {
  const auto drawn = Sample(family_, kProblem, l4_, 100, 1, nullptr, {Advice::kHeeded, {"KV_SPLITS == 4"}});
  ASSERT_TRUE(drawn.ok());
  ASSERT_FALSE(drawn->empty());
  for (const Variant& variant : *drawn) EXPECT_EQ(variant.values[2], 4);
}

TEST_F(SelectionTest, IsTrueOfAVariantOrNot) {
  const std::vector<std::string> where = {"BLOCK_M == 32", "tiles == 16"};
  EXPECT_TRUE(IsTrueOf(Tiles(family_, 32, 2, 1), where, kProblem, l4_).value());
  EXPECT_FALSE(IsTrueOf(Tiles(family_, 64, 2, 1), where, kProblem, l4_).value());
  EXPECT_TRUE(IsTrueOf(Tiles(family_, 64, 2, 1), {}, kProblem, l4_).value());
}

TEST_F(SelectionTest, NamesWhatItDoesNotUnderstand) {
  EXPECT_TRUE(Understands(*family_, {"BLOCK_M == 16", "tiles > 1"}).ok());
  for (const absl::Status& status :
       {Understands(*family_, {"BLOCK_M == 16", "BLOCK == 3"}), Where({"BLOCK_M == 16", "BLOCK == 3"}).status(),
        Sample(family_, kProblem, l4_, 1, 1, nullptr, {Advice::kHeeded, {"1", "BLOCK == 3"}}).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("where[1] is 'BLOCK == 3': 'BLOCK' is no parameter"));
  }
  EXPECT_THAT(std::string(Understands(*family_, {"BLOCK_M = 16"}).message()), HasSubstr("'==' compares"));
}

}  // namespace
}  // namespace attune::space
