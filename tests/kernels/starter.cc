// One step of the starter kernel (client/cli/starter) on the CPU, over problems of awkward lengths, launched as its
// manifest does. STEP, HEAD_DIM, WARPS, ROWS and KEYS come as -D definitions.
#include <cstdio>

#include "cuda.h"

// math.cuh's only one: ex2.approx.
#define asm(...) y = exp2f(x)
#include "common/math.cuh"
#undef asm

#include "attention.cu"
#include "reference.h"

namespace emulation {
namespace {

constexpr double kLog2OfE = 1.44269504088896341;

struct Launch {
  int ctas, shared_bytes;
};

int CeilDiv(int a, int b) { return (a + b - 1) / b; }

// As grid_x and dynamic_shared_bytes of the step's family.textproto.
Launch LaunchOf(const Problem& problem) {
  const int heads = problem.Batch() * problem.heads_q;
  const int rows = heads * problem.SeqQ();
  if (STEP == 1) return {CeilDiv(rows, WARPS), 0};
  if (STEP == 2) return {rows, 4 * 4 * WARPS * (2 + HEAD_DIM)};
  const int warp_bytes = max(STEP == 3 ? 4 * KEYS : 8 * KEYS, 4 * ROWS) * (HEAD_DIM + 8);
  return {heads * CeilDiv(problem.SeqQ(), ROWS), WARPS * (warp_bytes + 8 * ROWS)};
}

void Attend(Tensors& x, bool with_lse) {
  const Problem& p = x.problem;
  const int visible = p.mask == Mask::kNone ? p.SeqKv() : p.CausalOffset(0);
  const double scale = (STEP == 1 ? 1.0 : kLog2OfE) / std::sqrt(static_cast<double>(HEAD_DIM));
  float* const lse = with_lse ? x.lse.data() : nullptr;
  attention(x.q.data(), x.k.data(), x.v.data(), x.o.data(), lse,
#if STEP == 1
            static_cast<long long>(p.Batch()) * p.heads_q * p.SeqQ(),
#endif
            p.SeqQ(), p.SeqKv(), p.Group(), visible, static_cast<float>(scale));
}

std::vector<Problem> Problems() {
  const std::pair<std::vector<int>, std::vector<int>> lengths[] = {
      {{1}, {1}},   {{1}, {333}},   {{239}, {1}},   {{79}, {3}},         {{45, 45}, {103, 103}},
      {{65}, {64}}, {{127}, {128}}, {{113}, {197}}, {{16, 16}, {32, 32}}};
  constexpr std::pair<int, int> kHeads[] = {{2, 1}, {1, 1}, {4, 2}, {3, 3}};
  std::vector<Problem> problems;
  for (const auto& [q_lengths, kv_lengths] : lengths) {
    for (const Mask mask : {Mask::kNone, Mask::kTopLeft, Mask::kBottomRight}) {
      const auto [heads_q, heads_kv] = kHeads[problems.size() % 4];
      problems.push_back({heads_q, heads_kv, HEAD_DIM, q_lengths, kv_lengths, mask});
    }
  }
  return problems;
}

int Main() {
  int launches = 0;
  int wrong = 0;
  for (const Problem& problem : Problems()) {
    Tensors tensors(problem, 0);
    const Reference reference(tensors);
    const Launch launch = LaunchOf(problem);
    for (int turn = 0; turn < 3; ++turn, ++launches) {
      const bool with_lse = turn > 0;
      tensors.Clear();
      Cta cta(static_cast<Landing>(turn), launches);
      for (int i = 0; i < launch.ctas; ++i) {
        const int block = turn == 1 ? launch.ctas - 1 - i : i;
        cta.Run(32 * WARPS, block, launch.ctas, launch.shared_bytes, [&] { Attend(tensors, with_lse); });
      }
      const Reference::Deviation deviation = reference.Of(tensors);
      if (deviation.o <= 2e-3 && (!with_lse || deviation.lse <= 1e-3)) continue;
      ++wrong;
      std::printf("%s, copies land %d: O deviates by %g, LSE by %g\n", problem.Text().c_str(), turn, deviation.o,
                  deviation.lse);
    }
  }
  std::printf("%d of %d launches wrong\n", wrong, launches);
  return wrong > 0;
}

}  // namespace
}  // namespace emulation

int main() { return emulation::Main(); }
