#include "server/forecast/class_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "server/base/device_profile.h"
#include "server/catalog/testing/fake_host.h"
#include "server/forecast/testing/blocks.h"

namespace attune::forecast {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClassModelTest : public ::testing::Test {
 protected:
  space::Variant Of(int64_t block_m, int64_t block_n) const {
    return {.family = family_, .values = {block_m, block_n}};
  }

  // The farther a block is from `best` the slower; so many variants, fastest first.
  catalog::TunedProblem Tuned(const std::string& text, int64_t best, size_t variants = 24) const {
    std::vector<std::pair<double, space::Variant>> timed;
    for (int64_t m : {16, 32, 48, 64, 80, 96, 112, 128}) {
      for (int64_t n : {16, 32, 64}) {
        timed.emplace_back(100 + 4 * std::abs(static_cast<double>(m - best)) + 64.0 / static_cast<double>(n), Of(m, n));
      }
    }
    std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> times;
    std::vector<space::Variant> fastest;
    for (const auto& [us, variant] : timed) {
      if (times.size() == variants) break;
      times.push_back(us);
      fastest.push_back(variant);
    }
    return catalog::LearnedOf(*ParseProblem(text), fastest, times);
  }
  ClassModel Learned(const std::vector<catalog::TunedProblem>& tuned) const {
    return ClassModel(catalog::Families(family_), device_, tuned);
  }

  const std::shared_ptr<const space::Family> family_ = Blocks();
  const v1::Device device_ = *DeviceProfile("h200");
  const Problem asked_ = *ParseProblem("b1.h8.q700.d64.f16");
};

TEST_F(ClassModelTest, RanksWhatOthersFoundFastest) {
  const ClassModel model =
      Learned({Tuned("b1.h8.q256.d64.f16", 64), Tuned("b1.h8.q512.d64.f16", 64), Tuned("b1.h8.q1024.d64.f16", 64)});
  EXPECT_EQ(model.problems(), 3);
  const std::vector<space::Variant> ranked = model.Ranked(asked_);
  ASSERT_THAT(ranked, SizeIs(11)) << "ten winners, the same of each, and the guess";
  EXPECT_EQ(ranked.front().ToText(), "blocks:BLOCK_M=64,BLOCK_N=64");
  EXPECT_EQ(ranked.back().ToText(), "blocks:BLOCK_M=16,BLOCK_N=64");
  const std::vector<double> expected = model.Expect(asked_, ranked);
  EXPECT_TRUE(std::is_sorted(expected.begin(), expected.end() - 1)) << "all but the guess";
  EXPECT_LT(expected.front() + 0.2, expected.back()) << "ln(164 / 101)";
}

// The guess is 16 by 64. There are work items enough for all SMs.
TEST_F(ClassModelTest, TheGuessGivesWayToWhatIsExpectedToBeClearlyFaster) {
  const auto ranked_of = [&](double faster) {
    std::vector<catalog::TunedProblem> all;
    for (const char* text : {"b99.h8.q256.d64.f16", "b99.h8.q512.d64.f16", "b99.h8.q1024.d64.f16"}) {
      catalog::TunedProblem& tuned = all.emplace_back(Tuned(text, 64));
      for (size_t i = 0; i < tuned.us.size(); ++i) {
        const int64_t block_m = tuned.variants[i].values[0];
        tuned.us[i] = block_m == 16 ? 100 : block_m == 64 ? 100 / (1 + faster) : 150;
      }
    }
    return Learned(all).Ranked(*ParseProblem("b99.h8.q700.d64.f16"));
  };
  EXPECT_EQ(ranked_of(0.01).front().ToText(), "blocks:BLOCK_M=16,BLOCK_N=64");
  EXPECT_EQ(ranked_of(0.3).front().values[0], 64);
}

TEST_F(ClassModelTest, OfATunedProblemTheFastestComesFirst) {
  std::vector<catalog::TunedProblem> tuned;
  for (int length : {256, 384, 512, 640, 768, 1024}) {
    tuned.push_back(Tuned(absl::StrCat("b1.h8.q", length, ".d64.f16"), length == 640 ? 128 : 64));
  }
  const ClassModel model = Learned(tuned);
  EXPECT_EQ(model.Ranked(*ParseProblem("b1.h8.q640.d64.f16")).front().values[0], 128);
  EXPECT_EQ(model.Ranked(*ParseProblem("b1.h8.q768.d64.f16")).front().values[0], 64);
}

TEST_F(ClassModelTest, CoversWhatIsLikeATunedProblem) {
  const ClassModel model = Learned({Tuned("b1.h8.q256.d64.f16", 64)});
  EXPECT_TRUE(model.Covers(asked_));
  EXPECT_FALSE(model.Covers(*ParseProblem("b1.h8.q700.d128.f16")));
}

// Of another family nothing was timed: where its guess goes before, the model does not know what is fastest.
TEST_F(ClassModelTest, AnswersWhereTheGuessIsOfAFamilyThatItKnows) {
  auto other = std::make_shared<space::Family>(*family_);
  other->manifest.set_name("newer");
  other->source_hash = "other";
  const auto answers = [&](int precedence, const std::string& text) {
    other->manifest.set_guess_precedence(precedence);
    return ClassModel({family_, other}, device_, {Tuned("b1.h8.q256.d64.f16", 64)}).Answers(*ParseProblem(text));
  };
  EXPECT_TRUE(answers(-1, "b1.h8.q700.d64.f16"));
  EXPECT_FALSE(answers(-1, "b1.h8.q700.d128.f16"));
  EXPECT_FALSE(answers(1, "b1.h8.q700.d64.f16"));
}

TEST_F(ClassModelTest, AProblemOfFewVariantsSaysNothing) {
  const ClassModel model = Learned({Tuned("b1.h8.q256.d64.f16", 64, 19), Tuned("b1.h8.q512.d64.f16", 32, 20)});
  EXPECT_EQ(model.problems(), 1);
  EXPECT_EQ(model.Ranked(asked_).front().values[0], 32);
}

TEST_F(ClassModelTest, OfNothingItCoversNothing) {
  const ClassModel model = Learned({});
  EXPECT_EQ(model.problems(), 0);
  EXPECT_FALSE(model.Covers(asked_));
  EXPECT_THAT(model.Ranked(asked_), IsEmpty());
}

}  // namespace
}  // namespace attune::forecast
