// One variant of attention_mma on the CPU: its own sources, over problems of awkward lengths, and every way to launch
// it that they allow. Compile-time parameters come as -D definitions, as from the family's manifest, and LAYOUT, how
// the tensors lie in memory.
#include <cstdio>

#include "cuda.h"

// math.cuh's only one: ex2.approx.
#define asm(...) y = exp2f(x)
#include "common/math.cuh"
#undef asm

#include "attention_mma.cu"
#include "reference.h"

namespace emulation {
namespace {

constexpr double kLog2OfE = 1.44269504088896341;

enum Combine { kNoSplits, kOwnLaunch, kLastCta };

struct Launch {
  int splits;
  Combine combine;
  int persistent;  // CTAs that pop work items; 0: a CTA for each
  int section;
};

// As family.textproto's let of this name.
constexpr int SharedBytes() {
  const int wide = BLOCK_N * 2 * kDim;
  const int last = KV_CONVERT ? wide : kBufferBytes;
  const int queries = Q_REGISTERS ? max(0, kQueryBytes - last) : kQueryBytes;
  const int tiles = queries + (K_STAGES + V_STAGES) * kBufferBytes + KV_CONVERT * wide;
  const int merge = WARPS_N > 1 ? kWarps / 2 * kPartBytes : 0;
  return max(tiles, max(merge, kWarps * kCombineBytes));
}

class Device {
 public:
  Device(Tensors& tensors, const Launch& launch, Landing landing)
      : tensors_(tensors),
        problem_(tensors.problem),
        launch_(launch),
        cta_(landing, 1),
        rows_(static_cast<long long>(problem_.Batch()) * problem_.heads_q * problem_.SeqQ()),
        partial_o_(launch.splits > 1 ? rows_ * launch.splits * HEAD_DIM : 0),
        partial_ml_(launch.splits > 1 ? rows_ * launch.splits : 0),
        tickets_(launch.combine == kLastCta ? problem_.Batch() * Heads() * Tiles() : 0) {
    std::fill(partial_o_.begin(), partial_o_.end(), NAN);
    std::fill(partial_ml_.begin(), partial_ml_.end(), make_float2(NAN, NAN));
  }

  // `backwards`: CTAs in reverse order, so that what one writes where another should is seen in one of the orders.
  void Attend(bool backwards) {
    const int items = problem_.Batch() * Heads() * Tiles() * launch_.splits;
    const int ctas = launch_.persistent ? min(items, launch_.persistent) : items;
    Run(ctas, kThreads, SharedBytes(), backwards, [&] { Kernel(items); });
    if (launch_.combine != kOwnLaunch) return;
    const int cta_rows = launch_.splits <= 4 ? 8 : launch_.splits <= 16 ? 2 : 1;
    Run(static_cast<int>((rows_ + cta_rows - 1) / cta_rows), kCombineWarps * 32, 0, backwards,
        [&] { CombineKernel(cta_rows); });
  }

  // The next launch finds its counters as this one did.
  bool CountersAreZero() const {
    bool zero = counter_[0] == 0;
    for (size_t i = 0; i < tickets_.size(); ++i) zero = zero && tickets_[i] == 0;
    return zero;
  }

 private:
  int Pack() const { return PACK_GQA ? problem_.Group() : 1; }
  int Heads() const { return problem_.heads_q / Pack(); }
  int Tiles() const { return (problem_.SeqQ() * Pack() + BLOCK_M - 1) / BLOCK_M; }

  void Run(int ctas, int threads, size_t shared_bytes, bool backwards, const std::function<void()>& kernel) {
    for (int i = 0; i < ctas; ++i) cta_.Run(threads, backwards ? ctas - 1 - i : i, ctas, shared_bytes, kernel);
  }

  // Null as on a device where a problem has no such tensor.
  template <class T>
  static T* OrNull(Guarded<T>& array) {
    return array.size() > 0 ? array.data() : nullptr;
  }

  void Kernel(int items) {
    Tensors& x = tensors_;
    const Problem& p = problem_;
    const Spacing q = p.QuerySpacing(Tensor::kQ), o = p.QuerySpacing(Tensor::kO);
    const Spacing k = p.KeySpacing(Tensor::kK), v = p.KeySpacing(Tensor::kV);
    const Spacing scales = x.ScaleSpacing();
    const double scale = kLog2OfE / std::sqrt(static_cast<double>(HEAD_DIM));
    attention_mma(x.q.data(), x.k.data(), x.v.data(), x.o.data(), x.lse.data(), OrNull(partial_o_), OrNull(partial_ml_),
                  launch_.persistent ? counter_.data() : nullptr, OrNull(tickets_), items, Tiles(), launch_.section,
                  launch_.splits, p.Batch(), Heads(), Pack(), p.Group() / Pack(), p.SeqQ(), p.SeqKv(),
                  p.mask >= Mask::kBottomRight ? p.SeqKv() - p.SeqQ() : 0, p.window,
                  SOFTCAP ? 1.0f : static_cast<float>(scale),
                  SOFTCAP ? static_cast<float>(2 * scale / p.softcap) : 0.0f, static_cast<float>(kLog2OfE * p.softcap),
                  q.batch, q.head, q.row, k.batch, k.head, k.row, v.batch, v.head, v.row, o.batch, o.head, o.row,
                  OrNull(x.sinks), OrNull(x.q_bounds), OrNull(x.kv_bounds), OrNull(x.kv_lengths), OrNull(x.page_table),
                  p.mask >= Mask::kBottomRight, OrNull(x.k_scale), OrNull(x.v_scale), scales.batch, scales.head,
                  scales.batch, scales.head);
  }

  void CombineKernel(int cta_rows) {
    const Problem& p = problem_;
    const Spacing o = p.QuerySpacing(Tensor::kO);
    attention_mma_combine(partial_o_.data(), partial_ml_.data(), tensors_.o.data(), tensors_.lse.data(), launch_.splits,
                          rows_, cta_rows, p.heads_q, p.SeqQ(), o.batch, o.head, o.row, OrNull(tensors_.q_bounds),
                          p.Batch());
  }

  Tensors& tensors_;
  const Problem& problem_;
  const Launch launch_;
  Cta cta_;
  const long long rows_;  // of all query heads, each sequence as long as the longest
  Guarded<float> partial_o_;
  Guarded<float2> partial_ml_;
  Guarded<unsigned> tickets_;
  Guarded<unsigned> counter_{1};
};

// What mma a launch of one split needs where warps skip key tiles that they do not see: of an item's tiles those that
// all of its rows see whole, and those of which one of a warp's rows sees one of its team's keys, with rows and keys
// padded.
long long NeededProducts(const Problem& problem) {
  constexpr long long kOfTile = kRowBlocks * kKeyBlocks * (4 * kDimBlocks + kSumsByMma);
  const int pack = PACK_GQA ? problem.Group() : 1;
  long long tiles = 0;
  for (int sequence = 0; sequence < problem.Batch(); ++sequence) {
    const int rows = problem.q_lengths[sequence] * pack;
    const int keys = problem.kv_lengths[sequence];
    const auto seen = [&](int first_row, int end_row, int first_key, int count) {  // pairs
      int pairs = 0;
      for (int row = first_row; row < end_row; ++row) {
        for (int key = first_key; first_key < keys && key < first_key + count; ++key) {
          pairs += problem.Sees(sequence, row / pack, key);
        }
      }
      return pairs;
    };
    for (int first = 0; first < rows; first += BLOCK_M) {
      const int end = min(rows, first + BLOCK_M);
      for (int tile = 0; tile < keys; tile += BLOCK_N) {
        const int of_item = seen(first, end, tile, BLOCK_N);
        const bool whole = tile + BLOCK_N <= keys && of_item == (end - first) * BLOCK_N;
        for (int row = first; row < first + BLOCK_M; row += kWarpRows) {
          for (int key = tile; key < tile + BLOCK_N; key += kTeamKeys) {
            tiles += of_item > 0 && (whole || seen(row, row + kWarpRows, key, kTeamKeys) > 0);
          }
        }
      }
    }
  }
  return tiles * problem.heads_q / pack * kOfTile;
}

// Lengths of a batch's sequences, for problems with VARLEN, with pages alone, and with neither.
std::vector<std::pair<std::vector<int>, std::vector<int>>> Lengths() {
  if (VARLEN) {
    return {{{45, 0, 16, 1, 33}, {103, 17, 0, 64, 5}},  // no queries; no keys
            {{1, 1, 1, 1}, {1, 33, 130, 200}},          // decoding
            {{130, 70}, {64, 260}},                     // more queries than keys, fewer
            {{0}, {0}}};
  }
  if (PAGE_SIZE) {
    return {{{45, 45, 45, 45}, {103, 0, 64, 1}}, {{1, 1, 1}, {33, 130, 200}}, {{130}, {260}}, {{70}, {3}}};
  }
  return {{{1}, {1}},   {{239}, {1}}, {{79}, {3}},    {{45, 45}, {103, 103}}, {{130}, {260}},
          {{65}, {64}}, {{1}, {333}}, {{113}, {203}}, {{127}, {128}}};
}

std::vector<Problem> Problems() {
  constexpr std::pair<int, int> kHeads[] = {{2, 1}, {1, 1}, {8, 2}, {6, 3}};
  std::vector<Mask> masks = {Mask::kNone};
  if (MASK == 1) masks = {Mask::kTopLeft, Mask::kBottomRight};
  if (MASK == 2) masks = {Mask::kWindow};
  std::vector<Problem> problems;
  for (const auto& [q_lengths, kv_lengths] : Lengths()) {
    for (const Mask mask : masks) {
      const auto [heads_q, heads_kv] = kHeads[problems.size() % 4];
      Problem problem = {heads_q, heads_kv, HEAD_DIM, q_lengths, kv_lengths, mask};
      problem.window = MASK == 2 ? 37 : 0;
      problem.softcap = SOFTCAP ? 3.0f : 0.0f;
      problem.sinks = SINKS;
      problem.layout = static_cast<Layout>(LAYOUT);
      problem.varlen = VARLEN;
      problem.page_size = PAGE_SIZE;
      problems.push_back(problem);
    }
  }
  return problems;
}

// One problem's launches; counts those that went wrong.
class Check {
 public:
  explicit Check(const Problem& problem, int first_page = 0) : tensors_(problem, first_page), reference_(tensors_) {}

  void Run(const Launch& launch, Landing landing, bool backwards) {
    tensors_.Clear();
    Device device(tensors_, launch, landing);
    products = 0;
    device.Attend(backwards);
    ++launches;
    if (WARP_SKIP && launch.splits == 1 && products != NeededProducts(tensors_.problem)) {
      ++wrong;
      std::printf("%s: %lld mma where %lld are needed\n", tensors_.problem.Text().c_str(), products,
                  NeededProducts(tensors_.problem));
    }
    const Reference::Deviation deviation = reference_.Of(tensors_);
    if (deviation.o <= (IS_BF16 ? 2e-2 : 2e-3) && deviation.lse <= 1e-3 && device.CountersAreZero()) return;
    ++wrong;
    std::printf("%s, splits %d, combine %d, persistent %d, section %d, landing %d, backwards %d: ",
                tensors_.problem.Text().c_str(), launch.splits, launch.combine, launch.persistent, launch.section,
                static_cast<int>(landing), backwards);
    std::printf("O deviates by %g, LSE by %g%s\n", deviation.o, deviation.lse,
                device.CountersAreZero() ? "" : ", counters are left over");
  }

  static inline int launches = 0;
  static inline int wrong = 0;

 private:
  Tensors tensors_;
  const Reference reference_;
};

int Main() {
  constexpr Launch kLaunches[] = {{1, kNoSplits, 0, 1}, {2, kOwnLaunch, 0, 1}, {5, kLastCta, 0, 2},
                                  {1, kNoSplits, 3, 2}, {3, kLastCta, 0, 1},   {7, kOwnLaunch, 0, 1}};
  for (const Problem& problem : Problems()) {
    Check check(problem);
    for (const Launch& launch : kLaunches) {
      check.Run(launch, static_cast<Landing>(Check::launches % 3), Check::launches / 3 % 2 != 0);
    }
  }
  if (PAGE_SIZE) {  // places beyond 2^31 elements
    const Problem problem = Problems().front();
    const int far = static_cast<int>((1ll << 31) / problem.PagedKeyPlace(Tensor::kK, 1, 0, 0)) + 1;
    Check(problem, far).Run(kLaunches[2], Landing::kRandom, false);
  }
  std::printf("%d of %d launches wrong\n", Check::wrong, Check::launches);
  return Check::wrong > 0;
}

}  // namespace
}  // namespace emulation

int main() { return emulation::Main(); }
