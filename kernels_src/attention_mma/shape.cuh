// What the parameters mean: warps and tiles. And the kernel's arguments.
//
// The CTA's WARPS_M x WARPS_N warps divide a tile of logits. The WARPS_M warps of a column are a team: they share the
// team's keys, and wait for nobody else during the mainloop.
//
//              keys of a tile: BLOCK_N
//             team 0     team 1
//            +---------+---------+
//   rows     | warp 0  | warp 2  |  kRowBlocks x 16 rows
//   BLOCK_M  +---------+---------+
//            | warp 1  | warp 3  |
//            +---------+---------+
//             kTeamKeys = BLOCK_N / WARPS_N
#pragma once

#include "common/element.cuh"
#include "common/kv_element.cuh"

constexpr int kWarps = WARPS_M * WARPS_N;
constexpr int kThreads = kWarps * 32;
constexpr int kTeamThreads = WARPS_M * 32;
constexpr int kRowBlocks = BLOCK_M / 16 / WARPS_M;  // blocks of 16 rows, of a warp
constexpr int kWarpRows = kRowBlocks * 16;
constexpr int kTeamKeys = BLOCK_N / WARPS_N;
constexpr int kKeyBlocks = kTeamKeys / 16;

// K and V: 0 as Q, 1 e4m3, 2 e5m2. 8-bit elements are converted on their way to mma, whose operands are then fp16 for
// Q in bf16, too.
constexpr bool kByteKeys = KV_DTYPE > 0;
constexpr bool kHalfOperands = kByteKeys || !IS_BF16;
constexpr bool kScalesQueries = kByteKeys && IS_BF16;  // rows of Q are divided by a power of two, to fit fp16

// Where 8-bit elements are converted: KV_CONVERT 0 in registers, by each warp that multiplies by them; 1 V by the whole
// CTA once, into a tile in shared memory; 2 K too. mma's operands are then read as 16-bit elements are.
#define KEYS_ARE_BYTES (KV_DTYPE && KV_CONVERT < 2)
#define VALUES_ARE_BYTES (KV_DTYPE && KV_CONVERT < 1)

constexpr int kDimStep = kByteKeys ? 32 : 16;                          // columns that one ldmatrix reads of K and V
constexpr int kDim = (HEAD_DIM + kDimStep - 1) / kDimStep * kDimStep;  // of the tiles; those past HEAD_DIM are zeros
constexpr int kDimBlocks = kDim / 16;

static_assert(KV_DTYPE >= 0 && KV_DTYPE <= 2, "K and V are as Q, e4m3 or e5m2");
static_assert(KV_CONVERT >= 0 && KV_CONVERT <= (KV_DTYPE ? 2 : 0), "K and V of 16 bits are not converted");
static_assert(KV_CONVERT == 0 || V_STAGES == 1, "converted tiles of V are its other buffer");
static_assert(KV_CONVERT == 0 || K_STAGES + KV_CONVERT <= 3, "and so of K; two buffers of K that is not converted");
static_assert(HEAD_DIM % (16 / sizeof(KvElement)) == 0 && HEAD_DIM <= 256, "rows are whole chunks of 16 bytes");
static_assert(kRowBlocks >= 1 && kRowBlocks * 16 * WARPS_M == BLOCK_M, "warps divide the rows in blocks of 16");
static_assert(kKeyBlocks >= 1 && kKeyBlocks * 16 * WARPS_N == BLOCK_N, "teams divide the keys in blocks of 16");
static_assert(kThreads <= 512, "16 warps at most");
static_assert(WARP_SKIP == 0 || WARPS_N == 1, "a step's barrier stands in two branches, which a team's may not");
static_assert(K_STAGES >= 1 && K_STAGES <= 3 && V_STAGES >= 1 && V_STAGES <= 3, "one to three buffers");

// A warp's part of S, and of O, as mma's sums: [16 rows][8 columns][four of a lane].
using Logits = float[kRowBlocks][2 * kKeyBlocks][4];
using Outputs = float[kRowBlocks][2 * kDimBlocks][4];

// Of a tensor, in elements, from one sequence, head and row to the next. Its pages, where it has some, are `batch`
// apart.
struct Strides {
  long long batch;
  int head, row;
};

struct HeadStrides {
  long long batch, head;
};

// As launches pass them; those of heads and rows fit 32 bits.
__device__ inline Strides StridesOf(long long batch, long long head, long long row) {
  return {batch, static_cast<int>(head), static_cast<int>(row)};
}

// With PACK_GQA a head here is a group of `pack` query heads that share K and V: their rows are interleaved into one
// head of seq_q * pack rows. Without, pack is 1.
struct Arguments {
  const Element* q;
  const KvElement* k;
  const KvElement* v;
  Element* o;
  float* lse;        // [batch][query head][row], with VARLEN [query head][row of all sequences]; or null
  float* partial_o;  // scratch; null without splits
  float2* partial_ml;
  unsigned* counter;  // of the work queue; null: one CTA an item
  unsigned*
      tickets;  // one for each (batch, head, tile): the last split reduces them all; null: a launch of its own does
  int items, tiles, section, splits;
  int batch, heads, pack, group;  // group: heads that share K and V
  int seq_q, seq_kv;              // where sequences differ the longest's
  int causal_offset;              // row i sees keys <= i + causal_offset
  int window;                     // and, with MASK 2, only the last `window` of those
  float scale;                    // log2(e) / sqrt(HEAD_DIM); 1 with SOFTCAP
  float cap_in, cap;              // SOFTCAP: 2 log2(e) / (sqrt(HEAD_DIM) softcap), and log2(e) softcap
  Strides of_q, of_k, of_v, of_o;
  const float* sinks;     // SINKS: [query head], in natural units
  const int* q_bounds;    // VARLEN: [batch + 1], where a sequence's rows begin in Q and O; the last is their number
  const int* kv_bounds;   // VARLEN without pages: the same of K and V
  const int* kv_lengths;  // PAGE_SIZE: [batch]
  const int* page_table;  // PAGE_SIZE: [batch][ceil(seq_kv / PAGE_SIZE)]
  int bottom_right;       // VARLEN, PAGE_SIZE: causal_offset is a sequence's own seq_kv - seq_q; otherwise it is 0
  const float* k_scale;   // KV_DTYPE: [batch][head of K]; a value is its element times this
  const float* v_scale;
  HeadStrides of_k_scale, of_v_scale;

  __device__ int Pack() const { return PACK_GQA ? pack : 1; }
  __device__ int Rows() const { return seq_q * Pack(); }  // of a head of the longest sequence
};
