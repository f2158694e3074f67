// O = softmax(scale * Q K^T + mask) V, one work-item a row of Q, softmax with a running maximum (Milakov and Gimelshein,
// "Online normalizer calculation for softmax"). Plain: no tiles, no vectors, no local memory. Steps to try, one at a
// time: vectors (vload_half8), several rows a work-item, tiles of K and V in local memory, the keys split over groups.
// `visible`: row i sees the keys 0 .. i + visible.
#pragma OPENCL FP_CONTRACT ON
__kernel void attention(__global const half* q, __global const half* k, __global const half* v, __global half* o,
                        __global float* lse, long rows, int seq_q, int seq_kv, int group, int visible, float scale) {
  const long row = get_global_id(0);
  if (row >= rows) return;
  const long head_kv = row / seq_q / group;
  const int last = min(seq_kv - 1, (int)(row % seq_q) + visible);
  q += row * HEAD_DIM;
  o += row * HEAD_DIM;
  k += head_kv * seq_kv * HEAD_DIM;
  v += head_kv * seq_kv * HEAD_DIM;

  float out[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = 0;
  float greatest = -INFINITY, sum = 0;
  for (long key = 0; key <= last; ++key) {
    float logit = 0;
    for (int d = 0; d < HEAD_DIM; ++d) logit += vload_half(d, q) * vload_half(key * HEAD_DIM + d, k);
    logit *= scale;
    const float greater = fmax(greatest, logit);
    const float keep = exp(greatest - greater);
    const float weight = exp(logit - greater);
    for (int d = 0; d < HEAD_DIM; ++d) out[d] = out[d] * keep + weight * vload_half(key * HEAD_DIM + d, v);
    sum = sum * keep + weight;
    greatest = greater;
  }
  for (int d = 0; d < HEAD_DIM; ++d) vstore_half_rte(sum == 0 ? 0 : out[d] / sum, d, o);
  if (lse) lse[row] = sum == 0 ? -INFINITY : greatest + log(sum);
}
