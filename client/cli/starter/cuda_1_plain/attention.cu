// O = softmax(scale * Q K^T + mask) V, one warp a row of Q, softmax with a running maximum (Milakov and Gimelshein,
// "Online normalizer calculation for softmax"). Step 1 of 4, plain: no tiles, no tensor cores, no shared memory. Then
// come parallelism, tensor cores and asynchronous copies: attune new-kernel DIR --backend cuda --step 2 (to 4).
// `visible`: row i sees the keys 0 .. i + visible.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const __half* q, const __half* k, const __half* v, __half* o, float* lse, long long rows, int seq_q,
              int seq_kv, int group, int visible, float scale) {
  constexpr int kMine = HEAD_DIM / 32;                       // columns of a lane
  const float minus_infinity = __int_as_float(0xff800000);  // NVRTC knows no INFINITY
  const long long row = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  const long long head_kv = row / seq_q / group;
  const int last = min(seq_kv - 1, (int)(row % seq_q) + visible);
  q += row * HEAD_DIM + lane;
  o += row * HEAD_DIM + lane;
  k += head_kv * seq_kv * HEAD_DIM + lane;
  v += head_kv * seq_kv * HEAD_DIM + lane;

  float query[kMine], out[kMine];
  for (int d = 0; d < kMine; ++d) {
    query[d] = __half2float(q[32 * d]) * scale;
    out[d] = 0;
  }
  float greatest = minus_infinity, sum = 0;
  for (long long key = 0; key <= last; ++key) {
    float logit = 0;
    for (int d = 0; d < kMine; ++d) logit += query[d] * __half2float(k[key * HEAD_DIM + 32 * d]);
    for (int step = 16; step > 0; step /= 2) logit += __shfl_xor_sync(0xffffffff, logit, step);
    const float greater = fmaxf(greatest, logit);
    const float keep = expf(greatest - greater);
    const float weight = expf(logit - greater);
    for (int d = 0; d < kMine; ++d) out[d] = out[d] * keep + weight * __half2float(v[key * HEAD_DIM + 32 * d]);
    sum = sum * keep + weight;
    greatest = greater;
  }
  for (int d = 0; d < kMine; ++d) o[32 * d] = __float2half_rn(sum == 0 ? 0 : out[d] / sum);
  if (lse && lane == 0) lse[row] = sum == 0 ? minus_infinity : greatest + logf(sum);
}
