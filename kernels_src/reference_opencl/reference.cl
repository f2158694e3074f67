// What variants are checked against: attention by its definition, one work-item a query row, three passes over the
// keys: maximum, sum, output. In fp32 throughout; with PLAIN=1 logits and probabilities are rounded to the problem's
// element type, as a computation in that type would. Sums are compensated (Kahan), so that the reference's own error
// stays far below the tolerance at any length.
#define VEC 16
#include "opencl/elements.h"

#if PLAIN
#if BF16
float rounded(float x) {
  const uint bits = as_uint(x);
  return isnan(x) ? x : as_float((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}
#else
float rounded(float x) {
  ushort element;
  vstore_half_rte(x, 0, (half*)&element);
  return vload_half(0, (const half*)&element);
}
#endif
#else
float rounded(float x) { return x; }
#endif

#define CHUNKS (HEAD_DIM / VEC)

float logit(const vec* q_row, const global ushort* k_row, float scale) {
  vec sums = (vec)0.0f;
  for (int c = 0; c < CHUNKS; ++c) sums = fma(q_row[c], load_elements(k_row + c * VEC), sums);
  const float8 sums8 = sums.lo + sums.hi;
  const float4 sums4 = sums8.lo + sums8.hi;
  return rounded(((sums4.s0 + sums4.s1) + (sums4.s2 + sums4.s3)) * scale);
}

// Shapes and strides as in attention.cl; o is fp32 in Q's layout.
kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reference(
    const global ushort* q, const global ushort* k, const global ushort* v, global float* o, global float* lse,
    int heads_q, int group, int seq_q, int seq_kv, int is_causal, int causal_offset, long q_batch_stride,
    long q_head_stride, long q_row_stride, long kv_batch_stride, long kv_head_stride, long kv_row_stride,
    float scale, long rows) {
  const long all_row = get_global_id(0);
  if (all_row >= rows) return;
  const int row = all_row % seq_q;
  const int head = all_row / seq_q % heads_q;
  const long batch = all_row / seq_q / heads_q;
  const long q_start = batch * q_batch_stride + head * q_head_stride + row * q_row_stride;
  const long kv_start = batch * kv_batch_stride + head / group * kv_head_stride;
  const int end = is_causal ? clamp(row + causal_offset + 1, 0, seq_kv) : seq_kv;

  vec q_row[CHUNKS];
  for (int c = 0; c < CHUNKS; ++c) q_row[c] = load_elements(q + q_start + c * VEC);

  float row_max = -INFINITY;
  for (int j = 0; j < end; ++j) row_max = fmax(row_max, logit(q_row, k + kv_start + j * kv_row_stride, scale));

  float sum = 0.0f, sum_error = 0.0f;
  vec acc[CHUNKS], acc_error[CHUNKS];
  for (int c = 0; c < CHUNKS; ++c) acc[c] = acc_error[c] = (vec)0.0f;
  for (int j = 0; j < end; ++j) {
    const float weight = exp(logit(q_row, k + kv_start + j * kv_row_stride, scale) - row_max);
    const float term = weight - sum_error;
    const float next = sum + term;
    sum_error = (next - sum) - term;
    sum = next;
  }
  const float inverse = end > 0 ? 1.0f / sum : 0.0f;
  for (int j = 0; j < end; ++j) {
    const float weight = exp(logit(q_row, k + kv_start + j * kv_row_stride, scale) - row_max);
    const float probability = rounded(weight * inverse);
    const global ushort* v_row = v + kv_start + j * kv_row_stride;
    for (int c = 0; c < CHUNKS; ++c) {
      const vec term = probability * load_elements(v_row + c * VEC) - acc_error[c];
      const vec next = acc[c] + term;
      acc_error[c] = (next - acc[c]) - term;
      acc[c] = next;
    }
  }
  for (int c = 0; c < CHUNKS; ++c) STORE_VEC(acc[c], o + q_start + c * VEC);
  if (lse) lse[all_row] = end > 0 ? row_max + log(sum) : -INFINITY;
}
