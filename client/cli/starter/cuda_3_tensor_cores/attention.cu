// O = softmax(scale * Q K^T + mask) V. Step 3 of 4: tensor cores.
//
// A CTA has a tile of ROWS queries; its WARPS warps deal the keys among them, in tiles of KEYS (Dao, "FlashAttention-2:
// Faster Attention with Better Parallelism and Work Partitioning"):
//
//   for each tile of this warp's keys:      K and V of the tile to shared memory
//     S  = Q K^T                            mma: 16 rows x 8 keys x 16 columns an instruction
//     m' = max(m, scale max S)              of each row; keys that it does not see are -inf
//     P  = 2^(scale S - m')                 `scale` has log2(e) in it
//     l  = l 2^(m - m') + sum P
//     O  = O 2^(m - m') + P V               mma; P is in the registers where S was
//   then the warps' (m, l, O) are merged, as those of step 2's groups
//
// What changes beside mma: a key that was read serves ROWS queries, not one. tile.cuh has the arithmetic, merge.cuh the
// way out, instructions.cuh the PTX. `visible`: row i sees the keys 0 .. i + visible.
#include "merge.cuh"

// KEYS rows of K or V, by one warp. Rows from `valid` on are zeros: their weight is 0, but 0 times a NaN is NaN.
__device__ inline void LoadTile(__half* tile, const __half* from, int valid) {
  for (int i = threadIdx.x % 32; i < KEYS * HEAD_DIM / 8; i += 32) {
    const int row = i / (HEAD_DIM / 8);
    const int column = i % (HEAD_DIM / 8) * 8;
    uint4 eight = {0, 0, 0, 0};
    if (row < valid) eight = *reinterpret_cast<const uint4*>(from + row * HEAD_DIM + column);
    *reinterpret_cast<uint4*>(tile + row * kStride + column) = eight;
  }
}

// Dynamic shared memory: a slice for each warp, a tile of K and one of V; Merge's m and l.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const __half* q, const __half* k, const __half* v, __half* o, float* lse, int seq_q, int seq_kv,
              int group, int visible, float scale) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  constexpr int kSliceBytes = (KEYS > ROWS ? KEYS : ROWS) * kStride * 4;
  const int warp = threadIdx.x / 32;
  __half* const key_tile = reinterpret_cast<__half*>(dynamic + warp * kSliceBytes);
  __half* const value_tile = key_tile + KEYS * kStride;

  const int tiles = (seq_q + ROWS - 1) / ROWS;
  const int first_row = blockIdx.x % tiles * ROWS;
  const long long head = blockIdx.x / tiles;  // of all sequences
  k += head / group * seq_kv * HEAD_DIM;
  v += head / group * seq_kv * HEAD_DIM;

  Queries queries;
  Rows rows;
  Outputs out = {};
  Begin(queries, rows, q + head * seq_q * HEAD_DIM, first_row, seq_q, seq_kv, visible);
  const int end = min(seq_kv, min(first_row + ROWS, seq_q) + visible);  // of the last row, which sees most
  for (int first = warp * KEYS; first < end; first += WARPS * KEYS) {
    LoadTile(key_tile, k + (long long)first * HEAD_DIM, end - first);
    LoadTile(value_tile, v + (long long)first * HEAD_DIM, end - first);
    __syncwarp();
    Logits s;
    QueryKey(s, queries, key_tile);
    Softmax(s, rows, out, first, scale);
    WeightValue(out, s, value_tile);
    __syncwarp();  // the tiles may be written over
  }
  const long long row = head * seq_q + first_row;
  Merge<kSliceBytes>(dynamic, out, rows, o + row * HEAD_DIM, lse ? lse + row : nullptr, seq_q - first_row);
}
