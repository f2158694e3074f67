// O = softmax(scale * Q K^T + mask) V. Step 2 of 4: parallelism.
//
// In step 1 a warp goes through its row's keys one after the other: few warps for a short sequence, each waiting for
// one key before the next. But a softmax can be computed in parts (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", section 3.1). A row now has a CTA, whose threads are groups of 8 lanes:
//
//   group p, of keys p, p + kGroups, ...:   m_p, l_p, O_p    maximum, sum of weights and output, as in step 1
//   then                                    m = max m_p,  w_p = 2^(m_p - m),  O = sum w_p O_p / sum w_p l_p
//
// Lane x of a group has columns 4 x .. 4 x + 3 of every 32, read by one load of 8 bytes: the next key costs three
// exchanges among 8 lanes instead of five among 32, and a warp is at four keys at once. `scale` has log2(e) in it.
// `visible`: row i sees the keys 0 .. i + visible.
#include <cuda_fp16.h>

#include "common/math.cuh"

constexpr int kLanes = 8;                     // of a group
constexpr int kGroups = 32 * WARPS / kLanes;  // of the CTA
constexpr int kQuads = HEAD_DIM / 32;         // a lane's columns, by four

__device__ inline float4 Load4(const __half* from) {
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&words.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&words.y));
  return make_float4(low.x, low.y, high.x, high.y);
}

// Dynamic shared memory: m and l of each group, then O of each group.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const __half* q, const __half* k, const __half* v, __half* o, float* lse, int seq_q, int seq_kv,
              int group, int visible, float scale) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  float* const greatest_of = reinterpret_cast<float*>(dynamic);
  float* const sum_of = greatest_of + kGroups;
  float* const out_of = sum_of + kGroups;

  const long long row = blockIdx.x;
  const int mine = threadIdx.x / kLanes;
  const int column = 4 * (threadIdx.x % kLanes);
  const long long head_kv = row / seq_q / group;
  const int last = min(seq_kv - 1, (int)(row % seq_q) + visible);
  k += head_kv * seq_kv * HEAD_DIM + column;
  v += head_kv * seq_kv * HEAD_DIM + column;

  float4 query[kQuads], out[kQuads];
  for (int i = 0; i < kQuads; ++i) {
    query[i] = Load4(q + row * HEAD_DIM + column + 32 * i);
    out[i] = make_float4(0, 0, 0, 0);
  }
  float greatest = MinusInfinity(), sum = 0;
#pragma unroll 2
  for (int first = 0; first <= last; first += kGroups) {
    // Groups without a key take the last one, with weight 0: all lanes of a warp are in the exchange.
    const long long key = min(first + mine, last);
    float logit = 0;
    for (int i = 0; i < kQuads; ++i) {
      const float4 x = Load4(k + key * HEAD_DIM + 32 * i);
      logit += query[i].x * x.x + query[i].y * x.y + query[i].z * x.z + query[i].w * x.w;
    }
    logit = GroupSum<kLanes>(logit) * scale;
    if (first + mine > last) logit = MinusInfinity();
    const float greater = fmaxf(greatest, logit);
    const float keep = Exp2(greatest - ExponentBase(greater));
    const float weight = Exp2(logit - ExponentBase(greater));
    for (int i = 0; i < kQuads; ++i) {
      const float4 x = Load4(v + key * HEAD_DIM + 32 * i);
      out[i] = make_float4(out[i].x * keep + weight * x.x, out[i].y * keep + weight * x.y,
                           out[i].z * keep + weight * x.z, out[i].w * keep + weight * x.w);
    }
    sum = sum * keep + weight;
    greatest = greater;
  }

  if (column == 0) {
    greatest_of[mine] = greatest;
    sum_of[mine] = sum;
  }
  for (int i = 0; i < kQuads; ++i) {
    *reinterpret_cast<float4*>(out_of + mine * HEAD_DIM + column + 32 * i) = out[i];
  }
  __syncthreads();

  float all = MinusInfinity(), total = 0;
  for (int p = 0; p < kGroups; ++p) all = fmaxf(all, greatest_of[p]);
  const float base = ExponentBase(all);
  for (int p = 0; p < kGroups; ++p) total += Exp2(greatest_of[p] - base) * sum_of[p];
  for (int d = threadIdx.x; d < HEAD_DIM; d += 32 * WARPS) {
    float merged = 0;
    for (int p = 0; p < kGroups; ++p) merged += Exp2(greatest_of[p] - base) * out_of[p * HEAD_DIM + d];
    o[row * HEAD_DIM + d] = __float2half_rn(merged * Reciprocal(total));
  }
  if (lse && threadIdx.x == 0) lse[row] = LogSumExp(all, total);
}
