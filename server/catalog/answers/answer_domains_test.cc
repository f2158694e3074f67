#include "server/catalog/answers/answer_domains.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/attune/domain.h"
#include "server/catalog/testing/fake_host.h"
#include "server/space/domains.h"

namespace attune::catalog {
namespace {

const v1::Device kDevice = FakeDevice();

// The tiles family's variant of `splits` for any problem.
AnswerPtr Tiles(const std::shared_ptr<const space::Family>& family, const Problem& problem, int64_t splits) {
  auto answer = std::make_shared<Answer>();
  answer->problem = problem;
  answer->variant = space::Variant{family, {32, splits}};
  const auto recipe = space::RecipeFor(*answer->variant, problem, kDevice);
  if (!recipe.ok()) return nullptr;
  *answer->response.mutable_recipe() = *recipe;
  answer->compile_key = space::SpecFor(*answer->variant, problem, kDevice)->key;
  return answer;
}

class AnswerDomains : public ::testing::Test {
 protected:
  // The same variant everywhere.
  DomainQuestion Of(const std::string& problem) {
    DomainQuestion question;
    question.problem = *ParseProblem(problem);
    question.answer = Tiles(family_, question.problem, 2);
    question.device = &kDevice;
    question.answer_for = [this](const Problem& other) {
      ++asked_;
      return Tiles(family_, other, 2);
    };
    return question;
  }
  static std::string Text(const DomainQuestion& question) { return RangesText(DomainsFor(question)); }

  std::shared_ptr<const space::Family> family_ = SearchFamily();
  int asked_ = 0;
};

TEST_F(AnswerDomains, ARangeIsTheOctaveOfTheLength) {
  EXPECT_EQ(Text(Of("b5.h1.q1.kv1500.d64.f16")), "kv 1024..2047, batch 4..7");
  EXPECT_EQ(Text(Of("b1.h1.q300.d64.f16")), "q=kv 256..511");
  EXPECT_EQ(Text(Of("b1.h1.q5.kv1.d64.f16")), "q 4..7") << "1 is an octave by itself";
  EXPECT_LT(asked_, 200);
}

TEST_F(AnswerDomains, ALongOctaveIsDivided) {
  EXPECT_EQ(Text(Of("b1.h1.q1.kv20000.d64.f16")), "kv 16384..24575");
  EXPECT_EQ(Text(Of("b1.h1.q1.kv16383.d64.f16")), "kv 8192..16383");
}

TEST_F(AnswerDomains, ATunedLengthEndsARange) {
  DomainQuestion question = Of("b1.h1.q1.kv1500.d64.f16");
  for (const char* tuned : {"b1.h1.q1.kv1400.d64.f16", "b1.h1.q1.kv1600.d64.f16", "b1.h1.q1.kv1700.d64.f16",
                            "b2.h1.q1.kv1501.d64.f16", "b1.h1.q1.kv1499.d64.f16.lse", "b1.h1.q1.kv1500.d64.f16"}) {
    question.tuned.push_back(*ParseProblem(tuned));
  }
  EXPECT_EQ(Text(question), "kv 1401..1599");
}

TEST_F(AnswerDomains, AnotherVariantEndsARange) {
  DomainQuestion question = Of("b1.h1.q1.kv1500.d64.f16");
  question.answer_for = [this](const Problem& other) {
    return Tiles(family_, other, other.seq_kv < 1234 || other.seq_kv > 1777 ? 1 : 2);
  };
  EXPECT_EQ(Text(question), "kv 1234..1777");
  question.answer_for = [this](const Problem& other) {
    return other.seq_kv == 1500 ? Tiles(family_, other, 2) : nullptr;
  };
  EXPECT_EQ(Text(question), "") << "nobody else has it";
}

TEST_F(AnswerDomains, AConstraintEndsARange) {
  EXPECT_EQ(Text(Of("b1.h1.q1000.kv40.d64.f16")), "kv 32..63, q 512..1023");
  EXPECT_EQ(Text(Of("b1.h1.q1024.kv40.d64.f16")), "kv 32..63") << "seq_q at most 1024, and an octave has more";
}

TEST_F(AnswerDomains, AMissHoldsAsFarAsThereIsNoAnswer) {
  DomainQuestion question = Of("b1.h1.q1.kv1500.d64.f16");
  question.answer = nullptr;
  question.answer_for = [this](const Problem& other) {
    return other.seq_kv > 1900 ? Tiles(family_, other, 2) : nullptr;
  };
  const auto domains = DomainsFor(question);
  EXPECT_EQ(RangesText(domains), "kv 1024..1900");
  EXPECT_EQ(domains[0].varying_size(), 0);
}

TEST_F(AnswerDomains, TheRecipeThatIsServedIsTheOneThatIsWorkedOut) {
  DomainQuestion question = Of("b1.h1.q1.kv1500.d64.f16");
  Answer changed = *question.answer;
  changed.response.mutable_recipe()->mutable_launches(0)->mutable_grid()->set_x(77);
  question.answer = std::make_shared<Answer>(changed);
  EXPECT_EQ(Text(question), "") << "of sources that are others today";
}

TEST_F(AnswerDomains, LengthsWhoseTextIsAnotherAreNotInARange) {
  EXPECT_EQ(Text(Of("b1.h1.q20.kv30.d64.f16.causal-br")), "kv 21..31, q 16..29") << "at 20 and 30 it is .causal";
  EXPECT_EQ(Text(Of("b1.h1.q20.kv30.d64.f16.causal")), "kv 16..31, q 16..31");
}

TEST_F(AnswerDomains, EndAtTheLongestThatThereIs) {
  EXPECT_EQ(Text(Of("b60000.h1.q1.kv2.d64.f16")), "kv 2..3, batch 57344..65535");
  const auto large = DomainsFor(Of("b1.h32768.q1.kv29000.d1024.f16"));
  ASSERT_EQ(large.size(), 1);
  EXPECT_EQ(large[0].low(), 24576);
  EXPECT_GT(large[0].high(), 29000);
  EXPECT_LE(large[0].high(), 29802) << "K has at most 10^12 elements";
}

}  // namespace
}  // namespace attune::catalog
