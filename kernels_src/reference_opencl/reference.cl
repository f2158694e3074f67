// What variants are checked against: attention by its definition, one work-item a query row, three passes over the
// keys: maximum, sum, output. In fp32 throughout; with PLAIN=1 logits and probabilities are rounded to the problem's
// element type, as a computation in that type would. Sums are compensated (Kahan), so that the reference's own error
// stays far below the tolerance at any length.
//
// K and V of 8 bits are taken as element * scale, in fp32 or, with PLAIN=1, rounded to the problem's element type.
//
// Compile-time switches: MASK (0 none, 1 causal top-left, 2 bottom-right, 3 window), SOFTCAP and SINKS (0 or 1), and
// those of elements.h and sequence.h.
#if HEAD_DIM % 16
#define VEC 8
#else
#define VEC 16
#endif
#include "opencl/elements.h"
#include "opencl/sequence.h"

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

float sum_of(vec x) {
#if VEC == 16
  const float8 sums8 = x.lo + x.hi;
#else
  const float8 sums8 = x;
#endif
  const float4 sums4 = sums8.lo + sums8.hi;
  return (sums4.s0 + sums4.s1) + (sums4.s2 + sums4.s3);
}

#if KV_DTYPE
vec load_scaled(const global kv_element* p, float scale) {
  float elements[VEC];
  STORE_VEC(load_kv(p) * scale, elements);
  for (int i = 0; i < VEC; ++i) elements[i] = rounded(elements[i]);
  return LOAD_VEC(elements);
}
#else
#define load_scaled(p, scale) load_elements(p)
#endif

float logit(const vec* q_row, const global kv_element* k_row, float k_scale, float scale, float softcap) {
  vec sums = (vec)0.0f;
  for (int c = 0; c < CHUNKS; ++c) sums = fma(q_row[c], load_scaled(k_row + c * VEC, k_scale), sums);
  const float scaled = rounded(sum_of(sums) * scale);
#if SOFTCAP
  return rounded(softcap * tanh(scaled / softcap));
#else
  return scaled;
#endif
}

// Shapes and strides as in attention.cl; o is fp32 in Q's layout.
kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void reference(
    const global ushort* q, const global kv_element* k, const global kv_element* v, global float* o, global float* lse,
    const global float* sinks, const global int* q_bounds, const global int* kv_bounds, const global int* kv_lengths,
    const global int* page_table, int heads_q, int group, int seq_q, int seq_kv, int window, long q_batch_stride,
    long q_head_stride, long q_row_stride, long kv_batch_stride, long kv_head_stride, long kv_row_stride, float scale,
    float softcap, long rows, const global float* k_scales, const global float* v_scales, long k_scale_batch_stride,
    long k_scale_head_stride, long v_scale_batch_stride, long v_scale_head_stride) {
  const long all_row = get_global_id(0);
  if (all_row >= rows) return;
  const int row = all_row % seq_q;
  const int head = all_row / seq_q % heads_q;
  const int batch = all_row / seq_q / heads_q;
  const int batches = rows / seq_q / heads_q;
  const Queries queries = queries_of(batch, seq_q, q_bounds);
  const Keys keys = keys_of(batch, seq_kv, kv_bounds, kv_lengths, page_table);
  if (row >= queries.length) return;
  const long q_start = q_start_of(queries, head, q_batch_stride, q_head_stride, q_row_stride) + row * q_row_stride;
  const long kv_start = kv_start_of(keys, head / group, kv_batch_stride, kv_head_stride, kv_row_stride);
#if MASK
  const int end = clamp(row + (MASK == 1 ? 0 : keys.length - queries.length) + 1, 0, keys.length);
#else
  const int end = keys.length;
#endif
#if MASK == 3
  const int begin = max(row + keys.length - queries.length + 1 - window, 0);
#else
  const int begin = 0;
#endif

  const float k_scale = scale_of(k_scales, batch, head / group, k_scale_batch_stride, k_scale_head_stride);
  const float v_scale = scale_of(v_scales, batch, head / group, v_scale_batch_stride, v_scale_head_stride);

  vec q_row[CHUNKS];
  for (int c = 0; c < CHUNKS; ++c) q_row[c] = load_elements(q + q_start + c * VEC);

  float row_max = -INFINITY;
#if SINKS
  row_max = sinks[head];
#endif
  for (int j = begin; j < end; ++j) {
    const global kv_element* k_row = k + kv_start + key_row(keys, j) * kv_row_stride;
    row_max = fmax(row_max, logit(q_row, k_row, k_scale, scale, softcap));
  }
  const float base = row_max == -INFINITY ? 0.0f : row_max;  // -inf minus -inf is NaN

  float sum = 0.0f, sum_error = 0.0f;
#if SINKS
  sum = exp(sinks[head] - base);
#endif
  vec acc[CHUNKS], acc_error[CHUNKS];
  for (int c = 0; c < CHUNKS; ++c) acc_error[c] = (vec)0.0f;
  for (int j = begin; j < end; ++j) {
    const global kv_element* k_row = k + kv_start + key_row(keys, j) * kv_row_stride;
    const float weight = exp(logit(q_row, k_row, k_scale, scale, softcap) - base);
    const float term = weight - sum_error;
    const float next = sum + term;
    sum_error = (next - sum) - term;
    sum = next;
  }
  const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
  for (int c = 0; c < CHUNKS; ++c) acc[c] = (vec)(isnan(sum) ? sum : 0.0f);  // a sink's NaN, where no key is seen
  for (int j = begin; j < end; ++j) {
    const long offset = kv_start + key_row(keys, j) * kv_row_stride;
    const float weight = exp(logit(q_row, k + offset, k_scale, scale, softcap) - base);
    const float probability = rounded(weight * inverse);
    for (int c = 0; c < CHUNKS; ++c) {
      const vec term = probability * load_scaled(v + offset + c * VEC, v_scale) - acc_error[c];
      const vec next = acc[c] + term;
      acc_error[c] = (next - acc[c]) - term;
      acc[c] = next;
    }
  }
  for (int c = 0; c < CHUNKS; ++c) STORE_VEC(acc[c], o + q_start + c * VEC);
  if (lse) {
    lse[lse_start_of(queries, batches, head, heads_q, q_bounds) + row] =
        sum == 0.0f ? -INFINITY : row_max + log(sum);
  }
}
