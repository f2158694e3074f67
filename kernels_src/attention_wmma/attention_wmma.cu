// Attention forward on tensor cores through WMMA, whose fragments keep their layout to themselves.
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
// Warps stand in a grid of kWarpsM x kWarpsN over blocks of 16 x 16. A warp of row m and column n computes
//
//      S  BLOCK_M x BLOCK_N                O  BLOCK_M x HEAD_DIM
//     +------+------+                     +----------+----------+
//     | 0,0  | 0,1  |  kRowBlocks         |   0,0    |   0,1    |  in registers throughout
//     +------+------+  of 16 rows         +----------+----------+
//     | 1,0  | 1,1  |                     |   1,0    |   1,1    |
//     +------+------+                     +----------+----------+
//
// S goes to shared memory; there each row is one warp's, kRowLanes lanes a row, 8 columns a lane; P takes the place
// of S. O's fragments are scaled by a fragment that holds 2^(m - m') of its row in every column: loaded from the
// vector of factors as a column-major matrix whose columns all start at the same address (leading dimension 0).
//
// SWIZZLE. A fragment's rows lie at a constant stride, so rows cannot be permuted against each other as in
// XorRows. Instead every 16 x 16 block of Q, K, V, S and P is contiguous (Blocks16): reads conflict at most in pairs
// where unpadded rows would conflict eightfold, and no byte is padding. The lanes of S's rows visit their columns in
// an order XORed with the row number where rows of 64 bytes (BLOCK_N 16) would otherwise meet in one bank.
#include <mma.h>

#include "common/attend.cuh"
#include "common/combine.cuh"

static_assert(MMA == 1, "this kernel is WMMA");
static_assert(ACC == 32 || (ACC == 16 && !IS_BF16), "fp16 accumulation is for fp16");
static_assert(BLOCK_M % 16 == 0 && BLOCK_N % 16 == 0 && HEAD_DIM % 16 == 0, "blocks of 16 x 16");

namespace wmma = nvcuda::wmma;

#if ACC == 16
using Sum = __half;
__device__ inline float SumToFloat(Sum x) { return __half2float(x); }
__device__ inline Sum FloatToSum(float x) { return __float2half_rn(x); }
#else
using Sum = float;
__device__ inline float SumToFloat(Sum x) { return x; }
__device__ inline Sum FloatToSum(float x) { return x; }
#endif

using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 16, Element, wmma::row_major>;
using FragmentKt = wmma::fragment<wmma::matrix_b, 16, 16, 16, Element, wmma::col_major>;
using FragmentV = wmma::fragment<wmma::matrix_b, 16, 16, 16, Element, wmma::row_major>;
using FragmentSum = wmma::fragment<wmma::accumulator, 16, 16, 16, Sum>;

constexpr int kWarpsM = WARPS < BLOCK_M / 16 ? WARPS : BLOCK_M / 16;
constexpr int kWarpsN = WARPS / kWarpsM;
constexpr int kRowBlocks = BLOCK_M / 16 / kWarpsM;   // of a warp
constexpr int kKeyBlocks = BLOCK_N / 16 / kWarpsN;   // of a warp, in S
constexpr int kOutBlocks = HEAD_DIM / 16 / kWarpsN;  // of a warp, in O
static_assert(kWarpsM * kWarpsN == WARPS && kRowBlocks * kWarpsM * 16 == BLOCK_M, "warps divide the rows");
static_assert(kKeyBlocks * kWarpsN * 16 == BLOCK_N, "warps divide the keys");
static_assert(kOutBlocks * kWarpsN * 16 == HEAD_DIM, "warps divide the columns of O");
// Blocks of S that are summed at once: each fragment of Q then serves that many.
constexpr int kKeyGroup = kKeyBlocks % 4 == 0 ? 4 : kKeyBlocks % 2 == 0 ? 2 : 1;

constexpr int kRowLanes = BLOCK_N / 8;                   // lanes of a row in the softmax
constexpr int kPassRows = 32 / kRowLanes;                // rows a warp does at once
constexpr int kSoftmaxRows = kRowBlocks * 16 / kWarpsN;  // rows a warp does in all
static_assert(kRowLanes <= 32 && kSoftmaxRows % kPassRows == 0, "rows divide into passes");

// A tile's 16 x 16 block (row block, column block), as a fragment finds it.
struct FragmentTile {
#if SWIZZLE
  static constexpr int kStride = 16;
  __device__ static int Offset(int row_block, int column_block) {
    return (row_block * (HEAD_DIM / 16) + column_block) * 256;
  }
#else
  static constexpr int kStride = PaddedRows::kStride;
  __device__ static int Offset(int row_block, int column_block) { return row_block * 16 * kStride + column_block * 16; }
#endif
};

// S in shared memory, in Sums, and P in its place: row r of P begins where row r of S does, so that it may be written
// as soon as the lanes of that row have read S.
struct LogitTile {
  static constexpr int kWidth = sizeof(Sum) / sizeof(Element);  // Elements in the room of one Sum
#if SWIZZLE
  static constexpr int kStride = 16;
  static constexpr int kSums = BLOCK_M * BLOCK_N;
  __device__ static int Block(int row_block, int key_block) { return (row_block * (BLOCK_N / 16) + key_block) * 256; }
  // Four columns from 4 * group on: where they begin in S, and as an Element of P.
  __device__ static int Logits(int row, int group) {
    return Block(row / 16, group / 4) + row % 16 * kStride + group % 4 * 4;
  }
  __device__ static int Weights(int row, int group) {
    return (Block(row / 16, group / 4) + row % 16 * kStride) * kWidth + group % 4 * 4;
  }
  __device__ static int WeightBlock(int row_block, int key_block) { return Block(row_block, key_block) * kWidth; }
  __device__ static int Half(int row, int half) { return kRowLanes == 2 ? half ^ (row / 2 & 1) : half; }
#else
  static constexpr int kStride = BLOCK_N + 8;
  static constexpr int kSums = BLOCK_M * kStride;
  __device__ static int Block(int row_block, int key_block) { return row_block * 16 * kStride + key_block * 16; }
  __device__ static int Logits(int row, int group) { return row * kStride + group * 4; }
  __device__ static int Weights(int row, int group) { return row * kStride * kWidth + group * 4; }
  __device__ static int WeightBlock(int row_block, int key_block) {
    return row_block * 16 * kStride * kWidth + key_block * 16;
  }
  __device__ static int Half(int row, int half) { return half; }
#endif
};
static_assert(LogitTile::kSums >= WARPS * 256, "Finish passes one block a warp through S's memory");

class WmmaCompute {
 public:
#if SWIZZLE
  using Layout = Blocks16;
#else
  using Layout = PaddedRows;
#endif
  static constexpr int kThreads = WARPS * 32;

  // Shared memory: LogitTile::kSums Sums, then BLOCK_M each of factors (16 bytes aligned), maxima and sums.
  __device__ explicit WmmaCompute(unsigned char* shared)
      : logits_(reinterpret_cast<Sum*>(shared)),
        maximum_(reinterpret_cast<float*>(logits_ + LogitTile::kSums)),
        sum_(maximum_ + BLOCK_M),
        factor_(reinterpret_cast<Sum*>(sum_ + BLOCK_M)),
        warp_(threadIdx.x / 32),
        lane_(threadIdx.x % 32),
        row_block_(warp_ / kWarpsN * kRowBlocks),
        column_(warp_ % kWarpsN) {}

  __device__ void Begin() {
    for (int row = threadIdx.x; row < BLOCK_M; row += kThreads) {
      maximum_[row] = MinusInfinity();
      sum_[row] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int j = 0; j < kOutBlocks; ++j) wmma::fill_fragment(out_[i][j], FloatToSum(0.0f));
  }

  __device__ void Logits(const Element* q, const Element* k) {
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int first = 0; first < kKeyBlocks; first += kKeyGroup) {
        FragmentSum sums[kKeyGroup];
#pragma unroll
        for (int j = 0; j < kKeyGroup; ++j) wmma::fill_fragment(sums[j], FloatToSum(0.0f));
#pragma unroll 4
        for (int d = 0; d < HEAD_DIM / 16; ++d) {
          FragmentA query;
          wmma::load_matrix_sync(query, q + FragmentTile::Offset(row_block_ + i, d), FragmentTile::kStride);
#pragma unroll
          for (int j = 0; j < kKeyGroup; ++j) {
            FragmentKt key;
            wmma::load_matrix_sync(key, k + FragmentTile::Offset(column_ * kKeyBlocks + first + j, d),
                                   FragmentTile::kStride);
            wmma::mma_sync(sums[j], query, key, sums[j]);
          }
        }
#pragma unroll
        for (int j = 0; j < kKeyGroup; ++j) {
          Sum* to = logits_ + LogitTile::Block(row_block_ + i, column_ * kKeyBlocks + first + j);
          wmma::store_matrix_sync(to, sums[j], LogitTile::kStride, wmma::mem_row_major);
        }
      }
  }

  __device__ void Softmax(int first_key, int first_row, const Tensors& t) {
    SyncRow();  // S is whole
    Element* weights = reinterpret_cast<Element*>(logits_);
    const int x = lane_ % kRowLanes;
#pragma unroll 2
    for (int pass = 0; pass < kSoftmaxRows / kPassRows; ++pass) {
      const int row = row_block_ * 16 + column_ * kSoftmaxRows + pass * kPassRows + lane_ / kRowLanes;
      const int end = VisibleEnd(first_row + row, t) - first_key;  // of the row's visible keys, within the tile
      float logits[8];
      float maximum = MinusInfinity();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int group = x + kRowLanes * LogitTile::Half(row, half);
        float four[4];
        Read4(logits_ + LogitTile::Logits(row, group), four);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float logit = 4 * group + i < end ? four[i] * t.scale : MinusInfinity();
          logits[4 * half + i] = logit;
          maximum = fmaxf(maximum, logit);
        }
      }
      const float before = maximum_[row];
      maximum = fmaxf(before, GroupMax<kRowLanes>(maximum));
      const float base = ExponentBase(maximum);
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        logits[i] = Exp2(logits[i] - base);
        sum += logits[i];
      }
      sum = GroupSum<kRowLanes>(sum);
      __syncwarp();  // the lanes of the row have read S and the maximum
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Element2 pairs[2] = {ToElement2(logits[4 * half], logits[4 * half + 1]),
                             ToElement2(logits[4 * half + 2], logits[4 * half + 3])};
        Element2* to =
            reinterpret_cast<Element2*>(weights + LogitTile::Weights(row, x + kRowLanes * LogitTile::Half(row, half)));
        to[0] = pairs[0];
        to[1] = pairs[1];
      }
      if (x == 0) {
        const float factor = Exp2(before - base);
        maximum_[row] = maximum;
        sum_[row] = sum_[row] * factor + sum;
        factor_[row] = FloatToSum(factor);
      }
    }
    SyncRow();  // P and the factors are whole
  }

  __device__ void Accumulate(const Element* v) {
    const Element* weights = reinterpret_cast<const Element*>(logits_);
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
      FragmentSum factor;
      wmma::load_matrix_sync(factor, factor_ + (row_block_ + i) * 16, 0, wmma::mem_col_major);
#pragma unroll
      for (int j = 0; j < kOutBlocks; ++j)
#pragma unroll
        for (int e = 0; e < FragmentSum::num_elements; ++e) out_[i][j].x[e] = out_[i][j].x[e] * factor.x[e];
    }
#pragma unroll 2
    for (int key = 0; key < BLOCK_N / 16; ++key) {
      FragmentA p[kRowBlocks];
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        wmma::load_matrix_sync(p[i], weights + LogitTile::WeightBlock(row_block_ + i, key),
                               LogitTile::kStride * LogitTile::kWidth);
      }
#pragma unroll
      for (int j = 0; j < kOutBlocks; ++j) {
        FragmentV value;
        wmma::load_matrix_sync(value, v + FragmentTile::Offset(key, column_ * kOutBlocks + j), FragmentTile::kStride);
#pragma unroll
        for (int i = 0; i < kRowBlocks; ++i) wmma::mma_sync(out_[i][j], p[i], value, out_[i][j]);
      }
    }
  }

  // Block by block through shared memory, 8 columns a lane: two lanes write a sector of 32 bytes.
  __device__ void Finish(const Output& output) {
    Sum* block = logits_ + warp_ * 256;
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (int j = 0; j < kOutBlocks; ++j) {
        wmma::store_matrix_sync(block, out_[i][j], 16, wmma::mem_row_major);
        __syncwarp();
        const int row = (row_block_ + i) * 16 + lane_ / 2;
        const int column = (column_ * kOutBlocks + j) * 16 + lane_ % 2 * 8;
        float values[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) values[e] = SumToFloat(block[lane_ * 8 + e]);
        output.Store(row, column, values, sum_[row]);
        __syncwarp();
      }
    for (int row = threadIdx.x; row < BLOCK_M; row += kThreads) output.StoreSums(row, maximum_[row], sum_[row]);
  }

 private:
  // Orders shared memory among the warps that share rows.
  __device__ static void SyncRow() {
    if (kWarpsN > 1) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }

  __device__ static void Read4(const float* from, float (&to)[4]) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  }
#if ACC == 16
  __device__ static void Read4(const __half* from, float (&to)[4]) {
    const uint2 four = *reinterpret_cast<const uint2*>(from);
    const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&four.x));
    const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&four.y));
    to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
  }
#endif

  Sum* logits_;
  float* maximum_;
  float* sum_;
  Sum* factor_;
  int warp_, lane_;
  int row_block_;  // first of this warp's
  int column_;     // this warp's among those that share its rows
  FragmentSum out_[kRowBlocks][kOutBlocks];
};

// Shared memory: Q, K's buffers, V's buffers, then WmmaCompute's.
extern "C" __global__ void __launch_bounds__(WARPS * 32, MIN_CTAS)
    attention_wmma(const Element* q, const Element* k, const Element* v, Element* o, float* lse, float* partial_o,
                   float2* partial_ml, unsigned* counter, int items, int tiles, int splits, int batch, int heads,
                   int group, int seq_q, int seq_kv, int causal_offset, float scale, long long q_batch_stride,
                   long long q_head_stride, long long q_row_stride, long long k_batch_stride, long long k_head_stride,
                   long long k_row_stride, long long v_batch_stride, long long v_head_stride, long long v_row_stride,
                   long long o_batch_stride, long long o_head_stride, long long o_row_stride) {
  extern __shared__ __align__(128) unsigned char shared[];
  // clang-format off
  const Tensors tensors = {
      q, k, v, o, lse, partial_o, partial_ml, counter, items, tiles, splits, batch, heads, group, seq_q, seq_kv,
      causal_offset, scale,
      {q_batch_stride, q_head_stride, q_row_stride}, {k_batch_stride, k_head_stride, k_row_stride},
      {v_batch_stride, v_head_stride, v_row_stride}, {o_batch_stride, o_head_stride, o_row_stride}};
  // clang-format on
  using Layout = WmmaCompute::Layout;
  Element* elements = reinterpret_cast<Element*>(shared);
  constexpr int kTiles = Layout::Elements(BLOCK_M) + 2 * kBuffers * Layout::Elements(BLOCK_N);
  static_assert(kTiles * sizeof(Element) % 32 == 0, "fragments want 32-byte alignment");
  WmmaCompute compute(shared + kTiles * sizeof(Element));
  Attend(compute, elements, tensors);
}
