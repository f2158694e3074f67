// Attention of one query row a thread, with K through tensor maps: what a recipe can say of maps, clusters and launches
// that overlap is used here, and wrong results say that a launcher does not pass it on.
//
//   attention  a block has ROWS rows of one head; boxes of KEYS keys of K land in shared memory, one after the other:
//              thread 0 copies, all wait at the barrier, read, and meet before the next. O goes to `partial` in fp32.
//   store_rows writes O in fp16. It may start before `attention` has ended, and waits for it.
#include "common/bulk_copy_cuda.cuh"
#include "common/row_cuda.cuh"

constexpr int kRowBytes = 2 * HEAD_DIM;
static_assert(kRowBytes == 128, "a row of K is one span of the widest swizzle");
static_assert(SWIZZLE == 0 || SWIZZLE == kRowBytes, "not swizzled, or over a whole row");

// Where column d of the box's row j is. Swizzled, the row's 16-byte chunk c is at c ^ (j % 8).
__device__ inline int At(int j, int d) {
  const int chunk = d / 8;
  return (kRowBytes * j + 16 * (SWIZZLE != 0 ? chunk ^ (j % 8) : chunk)) / 2 + d % 8;
}

__device__ inline unsigned ClusterSize() {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
  return size;
}

extern "C" __global__ void __launch_bounds__(ROWS)
    attention(const __grid_constant__ TensorMap k_map, const unsigned short* q, const unsigned short* v, float* partial,
              float* lse, int heads_q, int group, int seq_q, int seq_kv, int is_causal, int causal_offset,
              long long q_batch_stride, long long q_head_stride, long long q_row_stride, long long kv_batch_stride,
              long long kv_head_stride, long long kv_row_stride, int cluster) {
  __shared__ __align__(1024) unsigned short box[KEYS * HEAD_DIM];
  __shared__ __align__(8) unsigned long long landed;
  const float infinity = __int_as_float(0x7f800000);
  const int row = blockIdx.x * ROWS + threadIdx.x, head = blockIdx.y, batch = blockIdx.z;
  const long long q_at = batch * q_batch_stride + head * q_head_stride + row * q_row_stride;
  const long long v_at = batch * kv_batch_stride + head / group * kv_head_stride;
  const int keys = row >= seq_q ? 0 : is_causal ? max(0, min(row + causal_offset + 1, seq_kv)) : seq_kv;

  if (threadIdx.x == 0) InitBarrier(&landed);
  __syncthreads();
  float row_max = -infinity, sum = 0.0f, out[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = 0.0f;
  for (int first = 0, phase = 0; first < seq_kv; first += KEYS, phase ^= 1) {
    if (threadIdx.x == 0) {
      ExpectBytes(&landed, sizeof box);
      CopyBox(box, k_map, 0, first, head / group, batch, &landed);
    }
    WaitForBarrier(&landed, phase);
    for (int j = 0; j < min(KEYS, keys - first); ++j) {
      float score = 0.0f;
      for (int d = 0; d < HEAD_DIM; ++d) score += Element(q, q_at + d) * Element(box, At(j, d));
      score *= rsqrtf(HEAD_DIM);
      const float new_max = fmaxf(row_max, score);
      const float rescale = expf(row_max - new_max), weight = expf(score - new_max);
      const long long value = v_at + (first + j) * kv_row_stride;
      sum = sum * rescale + weight;
      for (int d = 0; d < HEAD_DIM; ++d) out[d] = out[d] * rescale + weight * Element(v, value + d);
      row_max = new_max;
    }
    __syncthreads();  // the next box overwrites this one
  }
  asm volatile("griddepcontrol.launch_dependents;");
  if (row >= seq_q) return;
  const long long at = (static_cast<long long>(batch) * heads_q + head) * seq_q + row;
  const float scale = ClusterSize() != cluster ? __int_as_float(0x7fffffff) : sum > 0.0f ? 1.0f / sum : 0.0f;
  for (int d = 0; d < HEAD_DIM; ++d) partial[at * HEAD_DIM + d] = out[d] * scale;
  if (lse) lse[at] = sum > 0.0f ? row_max + logf(sum) : -infinity;
}

extern "C" __global__ void store_rows(const float* partial, unsigned short* o, int heads_q, int seq_q,
                                      long long batch_stride, long long head_stride, long long row_stride,
                                      long long rows) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= rows) return;
  const long long to =
      at / seq_q / heads_q * batch_stride + at / seq_q % heads_q * head_stride + at % seq_q * row_stride;
  for (int d = 0; d < HEAD_DIM; ++d) o[to + d] = Rounded(partial[at * HEAD_DIM + d]);
}
