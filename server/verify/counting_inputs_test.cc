// Bugs that move a key or two are simulated on the host by lengths, page tables and sinks that are a little wrong.
#include "server/verify/counting_inputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "server/verify/half.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

Tensors CountingInputs(const Problem& problem) { return MakeInputs(problem, Distribution::kCounting, 1); }

// Whether O of `wrong` passes for that of `right` by the tolerance alone, however large a plain computation's error.
bool Passes(const Problem& problem, const Tensors& right, const Tensors& wrong) {
  const HostResult expected = HostReference(problem, right), result = HostReference(problem, wrong);
  std::vector<uint16_t> o(result.o.size());
  std::transform(result.o.begin(), result.o.end(), o.begin(),
                 [&](float value) { return FromFloat(problem.dtype, value); });
  return CompareOutput(problem, o, expected.o, /*plain_max_abs_error=*/1e9).ok;
}

TEST(CountingInputs, EveryElementOfOCountsKeys) {
  for (const char* text : {"b2.h4.kvh2.q9.kv300.d32.f16.causal-br", "b3.h2.q40.kv50.d16.bf16.varlen.window7",
                           "b3.h2.q1.kv100.d16.f16.page8", "b2.h2.q1.kv90.d16.bf16.kve4m3"}) {
    const Problem problem = *ParseProblem(text);
    const HostResult result = HostReference(problem, CountingInputs(problem));
    const double value = std::max(1.0, std::exp2(std::ceil(std::log2(problem.seq_kv))) / 8);
    int64_t counted = 0;
    for (size_t row = 0; row < result.lse.size(); ++row) {
      double keys = 0;  // in rows of LSE's order, which is O's where there is one head or none is inside of another
      for (int64_t d = 0; d < problem.head_dim; ++d) keys += result.o[row * problem.head_dim + d];
      // A row of O sums up to the value, or to 0 where no key is seen.
      EXPECT_TRUE(keys == 0 || std::abs(keys - value) < 1e-3 * value) << text << ", row " << row << ": " << keys;
      counted += keys > 0 ? 1 : 0;
    }
    EXPECT_GT(counted, 0);
  }
}

TEST(CountingInputs, ADroppedKeyShowsWhereverLengthsEnd) {
  for (const char* text : {"b1.h2.kvh2.q1.kv131072.d128.bf16.varlen", "b1.h4.kvh2.q1.kv8192.d128.f16.varlen"}) {
    const Problem problem = *ParseProblem(text);
    const Tensors right = CountingInputs(problem);
    EXPECT_TRUE(Passes(problem, right, right)) << text;
    Tensors last_dropped = right, first_dropped = right;
    --last_dropped.kv_bounds.back();
    ++first_dropped.kv_bounds.front();
    EXPECT_FALSE(Passes(problem, right, last_dropped)) << text;
    EXPECT_FALSE(Passes(problem, right, first_dropped)) << text;
  }
}

TEST(CountingInputs, ANeighboursKeyShows) {
  const Problem problem = *ParseProblem("b4.h8.kvh2.q1.kv32768.d64.bf16.varlen");
  const Tensors right = CountingInputs(problem);
  Tensors one_more = right;
  ++one_more.kv_bounds[2];  // the second sequence's end, and the third one's begin
  EXPECT_FALSE(Passes(problem, right, one_more));
}

TEST(CountingInputs, APageThatIsDroppedOrTakenTwiceShows) {
  const Problem problem = *ParseProblem("b1.h8.kvh8.q1.kv65536.d128.bf16.page16");
  const Tensors right = CountingInputs(problem);
  Tensors twice = right, dropped = right;
  twice.page_table[2001] = twice.page_table[2000];
  dropped.page_table.erase(dropped.page_table.begin() + 2000);
  dropped.page_table.push_back(-1);
  dropped.kv_lengths[0] -= 16;
  EXPECT_FALSE(Passes(problem, right, twice));
  EXPECT_FALSE(Passes(problem, right, dropped));
}

TEST(CountingInputs, AKeyAtASplitsEndShows) {
  const Problem problem = *ParseProblem("b1.h2.kvh2.q1.kv65536.d64.bf16.page1");
  const Tensors right = CountingInputs(problem);
  for (const int64_t split : {65536 / 64, 65536 / 2}) {
    Tensors twice = right;
    twice.page_table[split] = twice.page_table[split - 1];
    EXPECT_FALSE(Passes(problem, right, twice)) << split;
  }
}

TEST(CountingInputs, ASinkThatIsForgottenOrAddedTwiceShows) {
  for (const char* text : {"b1.h4.kvh2.q1.kv32768.d64.bf16.sinks", "b1.h4.q64.d64.f16.window16.sinks"}) {
    const Problem problem = *ParseProblem(text);
    const Tensors right = CountingInputs(problem);
    Tensors forgotten = right, twice = right;
    std::fill(forgotten.sinks.begin(), forgotten.sinks.end(), -INFINITY);
    for (float& sink : twice.sinks) sink += std::log(2.0f);
    EXPECT_FALSE(Passes(problem, right, forgotten)) << text;
    EXPECT_FALSE(Passes(problem, right, twice)) << text;
  }
}

}  // namespace
}  // namespace attune::verify
