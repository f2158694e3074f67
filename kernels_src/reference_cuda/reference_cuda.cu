// What variants are checked against: attention forward in fp32, or (PLAIN 1) as a plain computation at the problem's
// dtype would round it. Shares no algorithm with the families under test: the softmax is not online but in two passes.
//
//   for each 64 query rows of a head:
//     pass 1, over tiles of 64 keys:   S = Q K^T / sqrt(HEAD_DIM)      m = max S, l = sum e^(S - m)
//     pass 2, over tiles of 64 keys:   S again, P = e^(S - m) / l      O += P V
//
// PLAIN 1 rounds to the dtype, as an unfused computation that stores each step does: Q K^T, the scaled logits, the
// capped ones, P, O.
//
// 256 threads as 16 x 16 (y, x). A thread has rows y + 16 i and, in S, keys x + 16 j; in O, columns x + 16 j.
// Q, K and V pass through shared memory as fp32, rows an odd number of words apart. Of 8-bit K and V that is
// element * scale, with PLAIN 1 rounded to the dtype.
//
// Compile-time switches: MASK (0 none, 1 causal top-left, 2 bottom-right, 3 window), SOFTCAP, SINKS, VARLEN (0 or 1),
// PAGE_SIZE (0: K and V are not paged) and KV_DTYPE (common/kv_element.cuh).
#include "common/element.cuh"
#include "common/kv_element.cuh"
#include "common/math.cuh"

static_assert(HEAD_DIM % 8 == 0, "the manifest's limit");

constexpr int kTile = 64;
constexpr int kColumns = 32;                // of Q and K at a time
constexpr int kKeys = 16;                   // rows of V at a time
constexpr int kOut = (HEAD_DIM + 15) / 16;  // columns of O a thread
constexpr int kOutColumns = 16 * kOut;
constexpr int kPartStride = kColumns + 1;
constexpr int kPartFloats = 2 * kTile * kPartStride;
constexpr int kValueFloats = kKeys * kOutColumns;
constexpr int kInputFloats = kPartFloats > kValueFloats ? kPartFloats : kValueFloats;
constexpr int kPageSize = PAGE_SIZE > 0 ? PAGE_SIZE : 1;

__device__ inline float Rounded(float x) { return PLAIN ? ToFloat(ToElement(x)) : x; }

// Rows of a tensor, `stride` elements apart or, with pages, where the sequence's part of the page table says.
template <typename T>
struct Rows {
  const T* first;
  long long stride;
  const int* pages;
  float scale;  // of 8-bit elements

  __device__ float At(int row, int column) const { return Value(Row(row)[column]); }

 private:
  __device__ float Value(Element x) const { return ToFloat(x); }
#if KV_DTYPE
  __device__ float Value(KvElement x) const { return Rounded(KvToFloat(x) * scale); }
#endif
  __device__ const T* Row(int row) const {
    long long at = row;
    if (PAGE_SIZE > 0 && pages != nullptr) {
      at = static_cast<long long>(pages[row / kPageSize]) * kPageSize + row % kPageSize;
    }
    return first + at * stride;
  }
};

// kRows x kWidth of `from`, from (first_row, first_column) on, as fp32; what lies behind `end` and HEAD_DIM is zeros
// and not read.
template <int kRows, int kWidth, typename T>
__device__ inline void Load(float* to, int to_stride, const Rows<T>& from, int first_row, int first_column, int end) {
  for (int i = threadIdx.x; i < kRows * kWidth; i += blockDim.x) {
    const int row = first_row + i / kWidth;
    const int column = first_column + i % kWidth;
    const bool inside = row < end && (HEAD_DIM % kWidth == 0 || column < HEAD_DIM);
    to[i / kWidth * to_stride + i % kWidth] = inside ? from.At(row, column) : 0.0f;
  }
}

// One head of one sequence.
struct Head {
  Rows<Element> q;
  Rows<KvElement> k, v;
  int seq_q, seq_kv;
  int causal_offset;  // row i sees keys <= i + causal_offset
  int window;         // and of those the last `window`
  float scale;        // 1 / sqrt(HEAD_DIM)
  float softcap;

  __device__ bool Sees(long long row, int key) const {
    return key < seq_kv && (MASK == 0 || key <= row + causal_offset) &&
           (MASK != 3 || key > row + causal_offset - window);
  }
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
    Load<kTile, kColumns>(q, kPartStride, head.q, first_row, first, head.seq_q);
    Load<kTile, kColumns>(k, kPartStride, head.k, first_key, first, head.seq_kv);
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
      float logit = Rounded(Rounded(s[i][j]) * head.scale);
      if (SOFTCAP) logit = Rounded(head.softcap * tanhf(logit / head.softcap));
      s[i][j] = head.Sees(first_row + y + 16 * i, first_key + x + 16 * j) ? logit : MinusInfinity();
    }
}

// q_bounds, kv_bounds, kv_lengths and page_table: v1::BufferRole; null unless VARLEN or PAGE_SIZE asks for them. seq_q
// and seq_kv are then the longest sequence's. Strides are in elements; with pages a page's rows are kv_row_stride
// apart. The scales are null unless KV_DTYPE asks for them.
extern "C" __global__ void __launch_bounds__(256)
    attention_reference(const Element* q, const KvElement* k, const KvElement* v, float* o, float* lse,
                        const float* sinks, const int* q_bounds, const int* kv_bounds, const int* kv_lengths,
                        const int* page_table, int heads, int group, int seq_q, int seq_kv, int window, float softcap,
                        float scale, long long q_batch_stride, long long q_head_stride, long long q_row_stride,
                        long long kv_batch_stride, long long kv_head_stride, long long kv_row_stride,
                        const float* k_scales, const float* v_scales, long long k_scale_batch_stride,
                        long long k_scale_head_stride, long long v_scale_batch_stride, long long v_scale_head_stride) {
  __shared__ float inputs[kInputFloats];
  __shared__ float weights[kTile][kTile + 1];
  const int y = threadIdx.x / 16;
  const int x = threadIdx.x % 16;
  const int tiles = (seq_q + kTile - 1) / kTile;
  const int first_row = static_cast<int>(blockIdx.x % tiles) * kTile;
  const int batch_head = blockIdx.x / tiles;
  const int sequence = batch_head / heads;
  const int head_q = batch_head % heads;

  long long q_offset = sequence * q_batch_stride + head_q * q_head_stride;
  long long kv_offset = sequence * kv_batch_stride + head_q / group * kv_head_stride;
  long long lse_offset = static_cast<long long>(batch_head) * seq_q;
  const int* pages = nullptr;
  if (PAGE_SIZE > 0) {
    pages = page_table + sequence * static_cast<long long>((seq_kv + kPageSize - 1) / kPageSize);
    kv_offset = head_q / group * kv_head_stride;
    seq_kv = kv_lengths[sequence];
  } else if (VARLEN) {
    kv_offset = kv_bounds[sequence] * kv_row_stride + head_q / group * kv_head_stride;
    seq_kv = kv_bounds[sequence + 1] - kv_bounds[sequence];
  }
  if (VARLEN) {
    const int batch = gridDim.x / tiles / heads;
    q_offset = q_bounds[sequence] * q_row_stride + head_q * q_head_stride;
    lse_offset = static_cast<long long>(head_q) * q_bounds[batch] + q_bounds[sequence];
    seq_q = q_bounds[sequence + 1] - q_bounds[sequence];
    if (first_row >= seq_q) return;
  }
  float k_scale = 1.0f, v_scale = 1.0f;
  if (KV_DTYPE) {
    k_scale = k_scales[sequence * k_scale_batch_stride + head_q / group * k_scale_head_stride];
    v_scale = v_scales[sequence * v_scale_batch_stride + head_q / group * v_scale_head_stride];
  }
  const Head head = {{q + q_offset, q_row_stride, nullptr, 1.0f},
                     {k + kv_offset, kv_row_stride, pages, k_scale},
                     {v + kv_offset, kv_row_stride, pages, v_scale},
                     seq_q,
                     seq_kv,
                     MASK == 1 ? 0 : seq_kv - seq_q,
                     window,
                     scale,
                     softcap};
  // The keys that any row of the tile sees.
  long long end = seq_kv, begin = 0;
  if (MASK > 0) end = min(end, static_cast<long long>(min(first_row + kTile, seq_q)) + head.causal_offset);
  if (MASK == 3) begin = max(begin, static_cast<long long>(first_row) + head.causal_offset - window + 1);

  float s[4][4];
  float maximum[4], sum[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) maximum[i] = MinusInfinity(), sum[i] = 0.0f;
  for (int first_key = begin; first_key < end; first_key += kTile) {
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
  if (SINKS) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float larger = fmaxf(maximum[i], sinks[head_q]);
      const float base = ExponentBase(larger);
      sum[i] = sum[i] * expf(maximum[i] - base) + expf(sinks[head_q] - base);
      maximum[i] = larger;
    }
  }

  float out[4][kOut];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < kOut; ++j) out[i][j] = isnan(sum[i]) ? sum[i] : 0.0f;  // a sink's NaN, where no key is seen
  for (int first_key = begin; first_key < end; first_key += kTile) {
    Logits(head, inputs, first_row, first_key, s);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float p = expf(s[i][j] - ExponentBase(maximum[i])) * Reciprocal(sum[i]);
        weights[y + 16 * i][x + 16 * j] = Rounded(p);
      }
    for (int part = 0; part < kTile; part += kKeys) {
      __syncthreads();
      Load<kKeys, kOutColumns>(inputs, kOutColumns, head.v, first_key + part, 0, seq_kv);
      __syncthreads();
#pragma unroll 4
      for (int n = 0; n < kKeys; ++n) {
        float p[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) p[i] = weights[y + 16 * i][part + n];
#pragma unroll
        for (int j = 0; j < kOut; ++j) {
          const float value = inputs[n * kOutColumns + x + 16 * j];
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
    for (int j = 0; j < kOut; ++j) {
      const int column = x + 16 * j;
      if (HEAD_DIM % 16 == 0 || column < HEAD_DIM) o[q_offset + row * q_row_stride + column] = Rounded(out[i][j]);
    }
    if (lse != nullptr && x == 0) {
      lse[lse_offset + row] = sum[i] == 0.0f ? MinusInfinity() : maximum[i] + logf(sum[i]);
    }
  }
}
