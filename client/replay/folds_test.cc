#include "client/replay/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attune::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Problem> Problems(const std::vector<std::string>& texts) {
  std::vector<Problem> problems;
  for (const std::string& text : texts) problems.push_back(*ParseProblem(text));
  return problems;
}

std::vector<std::string> Texts(const std::vector<Fold>& folds) {
  std::vector<std::string> texts;
  for (const Fold& fold : folds) {
    std::string text = fold.name + ":";
    for (size_t i : fold.held_out) text += " " + std::to_string(i);
    texts.push_back(text);
  }
  return texts;
}

TEST(Folds, HoldOutEachByItself) {
  EXPECT_THAT(Texts(OneByOne(Problems({"b1.h1.q64.d64.f16", "b1.h1.q128.d64.f16"}))),
              ElementsAre("b1.h1.q64.d64.f16: 0", "b1.h1.q128.d64.f16: 1"));
  EXPECT_THAT(OneByOne(Problems({"b1.h1.q64.d64.f16"})), IsEmpty()) << "nothing would be left to answer from";
}

TEST(Folds, HoldOutAllOfOneKind) {
  EXPECT_THAT(Texts(ByKind(Problems({"b1.h1.q64.d64.f16", "b1.h1.q128.d64.bf16", "b1.h1.q64.d64.f16.causal",
                                     "b1.h8.kvh2.q1.kv8192.d128.f16", "b1.h8.q16.kv64.d128.f16"}))),
              ElementsAre("decode: 3 4", "grouped heads: 3", "head_dim 128, no mask: 3 4", "head_dim 64, causal: 2",
                          "head_dim 64, no mask: 0 1", "more than 4096 keys: 3"));
}

TEST(Folds, LeaveHalfOfTheProblems) {
  EXPECT_THAT(Texts(ByKind(Problems({"b1.h1.q64.d64.f16", "b1.h1.q128.d64.f16", "b1.h1.q64.d64.f16.causal"}))),
              ElementsAre("head_dim 64, causal: 2"));
}

}  // namespace
}  // namespace attune::replay
