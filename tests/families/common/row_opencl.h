// Attention of one query row by its definition, f16 with fp32 sums: the honest part of every OpenCL family here.
#ifndef ATTUNE_TESTS_FAMILIES_ROW_OPENCL_H_
#define ATTUNE_TESTS_FAMILIES_ROW_OPENCL_H_

float element(const global half* p, long i) { return vload_half(i, p); }

float logit(const global half* q, const global half* k, long q_at, long k_at) {
  float sum = 0.0f;
  for (int d = 0; d < HEAD_DIM; ++d) sum += element(q, q_at + d) * element(k, k_at + d);
  return sum * rsqrt((float)HEAD_DIM);
}

// out: HEAD_DIM floats. Returns the row's log-sum-exp. A row sees `keys` keys, which start at kv_at.
float attend(const global half* q, const global half* k, const global half* v, long q_at, long kv_at,
             long kv_row_stride, int keys, float* out) {
  float row_max = -INFINITY, sum = 0.0f;
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = 0.0f;
  for (int j = 0; j < keys; ++j) {
    const float score = logit(q, k, q_at, kv_at + j * kv_row_stride);
    const float new_max = fmax(row_max, score);
    const float rescale = exp(row_max - new_max), weight = exp(score - new_max);
    sum = sum * rescale + weight;
    for (int d = 0; d < HEAD_DIM; ++d) out[d] = out[d] * rescale + weight * element(v, kv_at + j * kv_row_stride + d);
    row_max = new_max;
  }
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = keys > 0 ? out[d] / sum : 0.0f;
  return keys > 0 ? row_max + log(sum) : -INFINITY;
}

#ifndef THREADS
#define THREADS 16
#endif

// Every family's kernel: a work-item a row, the launch's arguments as the manifests have them.
#define ATTENTION_KERNEL                                                                                    \
  kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention(                               \
      global half* q, global half* k, global half* v, global half* o, global float* lse, global int* runs,  \
      int heads_q, int group, int seq_q, int seq_kv, int is_causal, int causal_offset, long q_batch_stride, \
      long q_head_stride, long q_row_stride, long kv_batch_stride, long kv_head_stride, long kv_row_stride, long rows)

// Where this work-item's row is; ends the work-items past the last one.
#define ROW_OR_RETURN()                                                                               \
  const long row = get_global_id(0);                                                                  \
  if (row >= rows) return;                                                                            \
  const int i = row % seq_q, head = row / seq_q % heads_q;                                            \
  const long q_at = row / seq_q / heads_q * q_batch_stride + head * q_head_stride + i * q_row_stride; \
  const long kv_at = row / seq_q / heads_q * kv_batch_stride + head / group * kv_head_stride;         \
  const int keys = is_causal ? clamp(i + causal_offset + 1, 0, seq_kv) : seq_kv;                      \
  float out[HEAD_DIM]

#define ATTEND() attend(q, k, v, q_at, kv_at, kv_row_stride, keys, out)

#define STORE(row_lse)                                                     \
  for (int d = 0; d < HEAD_DIM; ++d) vstore_half_rte(out[d], q_at + d, o); \
  if (lse) lse[row] = row_lse

#endif  // ATTUNE_TESTS_FAMILIES_ROW_OPENCL_H_
