// Attention forward without tensor cores.
//
//   for each work item (tile of BLOCK_M queries, split of the keys, head, batch):
//     O = 0, m = -inf, l = 0                        a row each
//     for each tile of BLOCK_N keys in the split:
//       S  = Q K^T                                  keys that a row must not see: -inf
//       m' = max(m, scale * max S)                  base 2
//       P  = 2^(scale * S - m')
//       l  = l * 2^(m - m') + sum P
//       O  = O * 2^(m - m') + P V
//     one split: O / l and LSE are the result; more: (m, l, O) go to scratch, and attention_combine reduces them
//
// Online softmax: M. Milakov, N. Gimelshein, arXiv 1805.02867; tiles: T. Dao et al., arXiv 2205.14135, algorithm 1.
//
// kLanes neighbouring lanes share kRows rows; P goes from lane to lane through shared memory of their own warp:
//
//                 S: key columns x + kLanes j          O: column pairs 2 (x + kLanes j)
//             x=0  1  ..  15 | 0  1  ..  15        0 0 1 1 2 2 ..  15 15 | 0 0 1 1 ..
//   y=0 row 0      .             .
//       row 1      .             .                 y = threadIdx.x / kLanes, x = threadIdx.x % kLanes
//   y=1 row 2                                      rows of y: y * kRows ..
#include "common/attend.cuh"
#include "common/combine.cuh"

static_assert(MMA == 0, "this kernel has no tensor cores");
static_assert(ACC == 32 || !KV_DTYPE, "8-bit elements have their scale in the logits: sums of them overflow fp16");
static_assert(ACC == 32 || (ACC == 16 && !IS_BF16), "fp16 accumulation is for fp16");

constexpr int kThreadCount = WARPS * 32;
constexpr int kLanes = kThreadCount / BLOCK_M > 16 ? 32 : 16;
constexpr int kRows = BLOCK_M * kLanes / kThreadCount;
constexpr int kKeys = BLOCK_N / kLanes;
constexpr int kPairs = HEAD_DIM / (2 * kLanes);
static_assert(kRows >= 1 && kRows * kThreadCount == BLOCK_M * kLanes, "rows divide among groups of lanes");
static_assert(kKeys >= 1 && kKeys * kLanes == BLOCK_N, "a lane has whole columns of S");
static_assert(kPairs >= 1 && kPairs * 2 * kLanes == HEAD_DIM, "a lane has whole column pairs of O");
static_assert(BLOCK_N % 4 == 0, "P is read four keys at a time");

// fp32: one accumulator a logit, one a column of O.
struct AccumulateFloat {
  using Weight = float;    // P in shared memory
  using Weights = float4;  // four keys of one row
  float logits[kRows][kKeys];
  float2 out[kRows][kPairs];

  __device__ void ClearLogits() {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kKeys; ++j) logits[i][j] = 0.0f;
  }
  __device__ float Logit(int i, int j) const { return logits[i][j]; }

  __device__ void AddChunk(const uint4 (&q)[kRows], const uint4 (&k)[kKeys]) {
    float key[kKeys][kChunk];
#pragma unroll
    for (int j = 0; j < kKeys; ++j) ToFloats(k[j], key[j]);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      float query[kChunk];
      ToFloats(q[i], query);
#pragma unroll
      for (int j = 0; j < kKeys; ++j)
#pragma unroll
        for (int d = 0; d < kChunk; ++d) logits[i][j] += query[d] * key[j][d];
    }
  }

  __device__ void ClearOut(int i) {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) out[i][j] = make_float2(0.0f, 0.0f);
  }
  __device__ void Scale(int i, float factor) {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) out[i][j] = make_float2(out[i][j].x * factor, out[i][j].y * factor);
  }
  __device__ float2 Out(int i, int j) const { return out[i][j]; }

  // O += P V for four keys.
  __device__ void AddValues(const Weights (&p)[kRows], const Element2 (&v)[4][kPairs]) {
#pragma unroll
    for (int key = 0; key < 4; ++key)
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const float2 value = ToFloat2(v[key][j]);
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const float weight = key == 0 ? p[i].x : key == 1 ? p[i].y : key == 2 ? p[i].z : p[i].w;
          out[i][j].x += weight * value.x;
          out[i][j].y += weight * value.y;
        }
      }
  }
};

#if ACC == 16
// fp16: two products an instruction. A logit is summed over even and odd columns apart.
struct AccumulateHalf {
  using Weight = __half;
  using Weights = uint2;
  __half2 logits[kRows][kKeys];
  __half2 out[kRows][kPairs];

  __device__ void ClearLogits() {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kKeys; ++j) logits[i][j] = __float2half2_rn(0.0f);
  }
  __device__ float Logit(int i, int j) const {
    const float2 sums = __half22float2(logits[i][j]);
    return sums.x + sums.y;
  }

  __device__ static __half2 Pair(const uint4& chunk, int i) {
    const unsigned word = i == 0 ? chunk.x : i == 1 ? chunk.y : i == 2 ? chunk.z : chunk.w;
    return *reinterpret_cast<const __half2*>(&word);
  }

  __device__ void AddChunk(const uint4 (&q)[kRows], const uint4 (&k)[kKeys]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kKeys; ++j)
#pragma unroll
        for (int d = 0; d < kChunk / 2; ++d) logits[i][j] = __hfma2(Pair(q[i], d), Pair(k[j], d), logits[i][j]);
  }

  __device__ void ClearOut(int i) {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) out[i][j] = __float2half2_rn(0.0f);
  }
  __device__ void Scale(int i, float factor) {
    const __half2 both = __float2half2_rn(factor);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) out[i][j] = __hmul2(out[i][j], both);
  }
  __device__ float2 Out(int i, int j) const { return __half22float2(out[i][j]); }

  __device__ void AddValues(const Weights (&p)[kRows], const Element2 (&v)[4][kPairs]) {
#pragma unroll
    for (int key = 0; key < 4; ++key)
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const unsigned word = key < 2 ? p[i].x : p[i].y;
        const __half2 pair = *reinterpret_cast<const __half2*>(&word);
        const __half2 weight = key % 2 ? __high2half2(pair) : __low2half2(pair);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) out[i][j] = __hfma2(weight, v[key][j], out[i][j]);
      }
  }
};
using Accumulator = AccumulateHalf;
__device__ inline __half ToWeight(float p) { return __float2half_rn(p); }
#else
using Accumulator = AccumulateFloat;
__device__ inline float ToWeight(float p) { return p; }
#endif

class SimtCompute {
 public:
#if SWIZZLE
  using Layout = XorRows;
#else
  using Layout = PaddedRows;
#endif
  static constexpr int kThreads = kThreadCount;
  using Weight = Accumulator::Weight;
  using Weights = Accumulator::Weights;

  // `weights`: BLOCK_M x BLOCK_N in shared memory.
  __device__ explicit SimtCompute(Weight* weights)
      : weights_(weights), x_(threadIdx.x % kLanes), row_(threadIdx.x / kLanes * kRows) {}

  __device__ void Begin() {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      maximum_[i] = MinusInfinity();
      sum_[i] = 0.0f;
      sums_.ClearOut(i);
    }
  }

  __device__ void Logits(const Element* q, const Element* k) {
    sums_.ClearLogits();
#pragma unroll 2
    for (int chunk = 0; chunk < kRowChunks; ++chunk) {
      uint4 query[kRows];
      uint4 key[kKeys];
#pragma unroll
      for (int j = 0; j < kKeys; ++j) key[j] = Chunk(k, x_ + kLanes * j, chunk);
#pragma unroll
      for (int i = 0; i < kRows; ++i) query[i] = Chunk(q, row_ + i, chunk);
      sums_.AddChunk(query, key);
    }
  }

  __device__ void Softmax(int first_key, int first_row, const Tensors& t) {
    __syncwarp();  // the lanes of a row have read the weights of the tile before
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int end = VisibleEnd(first_row + row_ + i, t) - first_key;  // of the row's visible keys, within the tile
      float logits[kKeys];
      float maximum = MinusInfinity();
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        logits[j] = x_ + kLanes * j < end ? sums_.Logit(i, j) * t.scale : MinusInfinity();
        maximum = fmaxf(maximum, logits[j]);
      }
      maximum = fmaxf(maximum_[i], GroupMax<kLanes>(maximum));
      const float base = ExponentBase(maximum);
      const float factor = Exp2(maximum_[i] - base);
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        const float p = Exp2(logits[j] - base);
        sum += p;
        weights_[(row_ + i) * BLOCK_N + x_ + kLanes * j] = ToWeight(p);
      }
      sum_[i] = sum_[i] * factor + GroupSum<kLanes>(sum);
      maximum_[i] = maximum;
      sums_.Scale(i, factor);
    }
    __syncwarp();
  }

  __device__ void Accumulate(const Element* v) {
#pragma unroll 1
    for (int first = 0; first < BLOCK_N; first += 4) {
      Weights weights[kRows];
      Element2 values[4][kPairs];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        weights[i] = *reinterpret_cast<const Weights*>(weights_ + (row_ + i) * BLOCK_N + first);
      }
#pragma unroll
      for (int key = 0; key < 4; ++key)
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          const int column = 2 * (x_ + kLanes * j);
          const int offset = Layout::Offset(first + key, column / kChunk) + column % kChunk;
          values[key][j] = *reinterpret_cast<const Element2*>(v + offset);
        }
      sums_.AddValues(weights, values);
    }
  }

  __device__ void Finish(const Output& output) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#if KV_DTYPE
      sums_.Scale(i, output.value_scale);
#endif
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        const float2 out = sums_.Out(i, j);
        const float pair[2] = {out.x, out.y};
        output.Store(row_ + i, 2 * (x_ + kLanes * j), pair, sum_[i]);
      }
      if (x_ == 0) output.StoreSums(row_ + i, maximum_[i], sum_[i]);
    }
  }

 private:
  __device__ static uint4 Chunk(const Element* tile, int row, int chunk) {
    return *reinterpret_cast<const uint4*>(tile + Layout::Offset(row, chunk));
  }

  Weight* weights_;
  int x_, row_;
  float maximum_[kRows], sum_[kRows];  // the same in all lanes of a row
  Accumulator sums_;
};

// Shared memory: Q, K's buffers, V's buffers, P.
extern "C" __global__ void __launch_bounds__(kThreadCount, MIN_CTAS)
    attention_simt(const Element* q, const KvElement* k, const KvElement* v, Element* o, float* lse, float* partial_o,
                   float2* partial_ml, unsigned* counter, int items, int tiles, int splits, int batch, int heads,
                   int group, int seq_q, int seq_kv, int causal_offset, float scale, long long q_batch_stride,
                   long long q_head_stride, long long q_row_stride, long long k_batch_stride, long long k_head_stride,
                   long long k_row_stride, long long v_batch_stride, long long v_head_stride, long long v_row_stride,
                   long long o_batch_stride, long long o_head_stride, long long o_row_stride, const float* k_scales,
                   const float* v_scales, long long k_scale_batch_stride, long long k_scale_head_stride,
                   long long v_scale_batch_stride, long long v_scale_head_stride) {
  extern __shared__ __align__(128) unsigned char shared[];
  // clang-format off
  const Tensors tensors = {
      q, k, v, o, lse, partial_o, partial_ml, counter, items, tiles, splits, batch, heads, group, seq_q, seq_kv,
      causal_offset, scale,
      {q_batch_stride, q_head_stride, q_row_stride}, {k_batch_stride, k_head_stride, k_row_stride},
      {v_batch_stride, v_head_stride, v_row_stride}, {o_batch_stride, o_head_stride, o_row_stride}
#if KV_DTYPE
      , k_scales, v_scales, {k_scale_batch_stride, k_scale_head_stride, 0}, {v_scale_batch_stride, v_scale_head_stride, 0}
#endif
      };
  // clang-format on
  using Layout = SimtCompute::Layout;
  Element* elements = reinterpret_cast<Element*>(shared);
  constexpr int kTiles = Layout::Elements(BLOCK_M) + 2 * kBuffers * Layout::Elements(BLOCK_N);
  SimtCompute compute(reinterpret_cast<SimtCompute::Weight*>(elements + kTiles));
  Attend(compute, elements, tensors);
}
