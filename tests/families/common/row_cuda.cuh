// Attention of one query row by its definition, f16 with fp32 sums: the honest part of every CUDA family here. Needs no
// header of the toolkit.
#pragma once

__device__ inline float Element(const unsigned short* p, long long i) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(p[i]));
  return value;
}

__device__ inline unsigned short Rounded(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

struct Row {
  long long row, q_at, kv_at;
  int keys;
};

// out: HEAD_DIM floats. Returns the row's log-sum-exp.
__device__ inline float Attend(const unsigned short* q, const unsigned short* k, const unsigned short* v,
                               const Row& row, long long kv_row_stride, float* out) {
  const float infinity = __int_as_float(0x7f800000);
  float row_max = -infinity, sum = 0.0f;
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = 0.0f;
  for (int j = 0; j < row.keys; ++j) {
    const long long key = row.kv_at + j * kv_row_stride;
    float score = 0.0f;
    for (int d = 0; d < HEAD_DIM; ++d) score += Element(q, row.q_at + d) * Element(k, key + d);
    score *= rsqrtf(HEAD_DIM);
    const float new_max = fmaxf(row_max, score);
    const float rescale = expf(row_max - new_max), weight = expf(score - new_max);
    sum = sum * rescale + weight;
    for (int d = 0; d < HEAD_DIM; ++d) out[d] = out[d] * rescale + weight * Element(v, key + d);
    row_max = new_max;
  }
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = row.keys > 0 ? out[d] / sum : 0.0f;
  return row.keys > 0 ? row_max + logf(sum) : -infinity;
}

// Every family's kernel: a thread a row, the launch's arguments as the manifests have them.
#define ATTENTION_KERNEL                                                                                        \
  extern "C" __global__ void attention(                                                                         \
      unsigned short* q, unsigned short* k, unsigned short* v, unsigned short* o, float* lse, int* runs,        \
      int heads_q, int group, int seq_q, int seq_kv, int is_causal, int causal_offset, long long q_batch_stride, \
      long long q_head_stride, long long q_row_stride, long long kv_batch_stride, long long kv_head_stride,     \
      long long kv_row_stride, long long rows)

// Where this thread's row is; ends the threads past the last one.
#define ROW_OR_RETURN()                                                                                         \
  Row row;                                                                                                      \
  row.row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;                                      \
  if (row.row >= rows) return;                                                                                  \
  const int i = row.row % seq_q, head = row.row / seq_q % heads_q;                                              \
  const long long batch = row.row / seq_q / heads_q;                                                            \
  row.q_at = batch * q_batch_stride + head * q_head_stride + i * q_row_stride;                                  \
  row.kv_at = batch * kv_batch_stride + head / group * kv_head_stride;                                          \
  row.keys = is_causal ? max(0, min(i + causal_offset + 1, seq_kv)) : seq_kv;                                   \
  float out[HEAD_DIM]

#define ATTEND() Attend(q, k, v, row, kv_row_stride, out)

#define STORE(row_lse)                                                                                          \
  for (int d = 0; d < HEAD_DIM; ++d) o[row.q_at + d] = Rounded(out[d]);                                         \
  if (lse) lse[row.row] = row_lse
