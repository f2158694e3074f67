// What variants are checked against: attention forward in fp32, or (PLAIN 1) as a plain computation at the problem's
// dtype would round it. Shares no algorithm with the families under test: the softmax is not online but in two passes.
//
//   for each 64 query rows of a head:
//     pass 1, over tiles of 64 keys:   S = Q K^T / sqrt(HEAD_DIM)      m = max S, l = sum e^(S - m)
//     pass 2, over tiles of 64 keys:   S again, P = e^(S - m) / l      O += P V
//
// PLAIN 1 rounds to the dtype, as an unfused computation that stores each step does: Q K^T, the scaled logits, P, O.
//
// 256 threads as 16 x 16 (y, x). A thread has rows y + 16 i and, in S, keys x + 16 j; in O, columns x + 16 j.
// Q, K and V pass through shared memory as fp32, rows an odd number of words apart.
#include "common/element.cuh"
#include "common/math.cuh"

static_assert(HEAD_DIM % 32 == 0, "columns are read 32 at a time");

constexpr int kTile = 64;
constexpr int kColumns = 32;         // of Q and K at a time
constexpr int kKeys = 16;            // rows of V at a time
constexpr int kOut = HEAD_DIM / 16;  // columns of O a thread
constexpr int kPartStride = kColumns + 1;
constexpr int kInputFloats = 2 * kTile * kPartStride > kKeys* HEAD_DIM ? 2 * kTile* kPartStride : kKeys* HEAD_DIM;

__device__ inline float Rounded(float x) { return PLAIN ? ToFloat(ToElement(x)) : x; }

// `rows` x `columns` of `from` as fp32; rows from `valid_rows` on are zeros and not read.
__device__ inline void Load(float* to, int to_stride, const Element* from, long long from_stride, int rows, int columns,
                            int valid_rows) {
  for (int i = threadIdx.x; i < rows * columns; i += blockDim.x) {
    const int row = i / columns;
    const int column = i % columns;
    to[row * to_stride + column] = row < valid_rows ? ToFloat(from[row * from_stride + column]) : 0.0f;
  }
}

struct Head {
  const Element* q;
  const Element* k;
  const Element* v;
  long long q_stride, kv_stride;  // of rows
  int seq_q, seq_kv, causal_offset;
  float scale;  // 1 / sqrt(HEAD_DIM)
};

// Logits of rows first_row + y + 16 i against keys first_key + x + 16 j; -inf where the row must not see the key.
__device__ inline void Logits(const Head& head, float* shared, int first_row, int first_key, float (&s)[4][4]) {
  const int y = threadIdx.x / 16;
  const int x = threadIdx.x % 16;
  float* q = shared;
  float* k = shared + kTile * kPartStride;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) s[i][j] = 0.0f;
  for (int first = 0; first < HEAD_DIM; first += kColumns) {
    __syncthreads();
    Load(q, kPartStride, head.q + first_row * head.q_stride + first, head.q_stride, kTile, kColumns,
         head.seq_q - first_row);
    Load(k, kPartStride, head.k + first_key * head.kv_stride + first, head.kv_stride, kTile, kColumns,
         head.seq_kv - first_key);
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < kColumns; ++d) {
      float a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = q[(y + 16 * i) * kPartStride + d];
#pragma unroll
      for (int j = 0; j < 4; ++j) b[j] = k[(x + 16 * j) * kPartStride + d];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) s[i][j] += a[i] * b[j];
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int key = first_key + x + 16 * j;
      const long long row = first_row + y + 16 * i;
      const bool visible = key < head.seq_kv && (!MASK || key <= row + head.causal_offset);
      s[i][j] = visible ? Rounded(Rounded(s[i][j]) * head.scale) : MinusInfinity();
    }
}

extern "C" __global__ void __launch_bounds__(256)
    attention_reference(const Element* q, const Element* k, const Element* v, float* o, float* lse, int heads,
                        int group, int seq_q, int seq_kv, int causal_offset, float scale, long long q_batch_stride,
                        long long q_head_stride, long long q_row_stride, long long kv_batch_stride,
                        long long kv_head_stride, long long kv_row_stride) {
  __shared__ float inputs[kInputFloats];
  __shared__ float weights[kTile][kTile + 1];
  const int y = threadIdx.x / 16;
  const int x = threadIdx.x % 16;
  const int tiles = (seq_q + kTile - 1) / kTile;
  const int first_row = static_cast<int>(blockIdx.x % tiles) * kTile;
  const int batch_head = blockIdx.x / tiles;
  const long long q_offset = batch_head / heads * q_batch_stride + batch_head % heads * q_head_stride;
  const long long kv_offset = batch_head / heads * kv_batch_stride + batch_head % heads / group * kv_head_stride;
  const Head head = {q + q_offset, k + kv_offset, v + kv_offset, q_row_stride, kv_row_stride,
                     seq_q,        seq_kv,        causal_offset, scale};
  long long end = seq_kv;  // of the keys that any row of the tile sees
  if (MASK) end = min(end, static_cast<long long>(min(first_row + kTile, seq_q)) + causal_offset);

  float s[4][4];
  float maximum[4], sum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) maximum[i] = MinusInfinity(), sum[i] = 0.0f;
  for (int first_key = 0; first_key < end; first_key += kTile) {
    Logits(head, inputs, first_row, first_key, s);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float seen = fmaxf(fmaxf(s[i][0], s[i][1]), fmaxf(s[i][2], s[i][3]));
      const float larger = fmaxf(maximum[i], GroupMax<16>(seen));
      const float base = ExponentBase(larger);
      float part = 0.0f;
#pragma unroll
      for (int j = 0; j < 4; ++j) part += expf(s[i][j] - base);
      sum[i] = sum[i] * expf(maximum[i] - base) + GroupSum<16>(part);
      maximum[i] = larger;
    }
  }

  float out[4][kOut] = {};
  for (int first_key = 0; first_key < end; first_key += kTile) {
    Logits(head, inputs, first_row, first_key, s);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float p = expf(s[i][j] - ExponentBase(maximum[i])) * Reciprocal(sum[i]);
        weights[y + 16 * i][x + 16 * j] = Rounded(p);
      }
    for (int part = 0; part < kTile; part += kKeys) {
      const int key = first_key + part;
      __syncthreads();
      Load(inputs, HEAD_DIM, head.v + key * kv_row_stride, kv_row_stride, kKeys, HEAD_DIM, seq_kv - key);
      __syncthreads();
#pragma unroll 4
      for (int n = 0; n < kKeys; ++n) {
        float p[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) p[i] = weights[y + 16 * i][part + n];
#pragma unroll
        for (int j = 0; j < kOut; ++j) {
          const float value = inputs[n * HEAD_DIM + x + 16 * j];
#pragma unroll
          for (int i = 0; i < 4; ++i) out[i][j] += p[i] * value;
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + y + 16 * i;
    if (row >= seq_q) continue;
#pragma unroll
    for (int j = 0; j < kOut; ++j) o[q_offset + row * q_row_stride + x + 16 * j] = Rounded(out[i][j]);
    if (lse != nullptr && x == 0) {
      lse[static_cast<long long>(batch_head) * seq_q + row] =
          sum[i] > 0.0f ? maximum[i] + logf(sum[i]) : MinusInfinity();
    }
  }
}
