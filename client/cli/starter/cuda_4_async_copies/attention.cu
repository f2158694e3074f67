// O = softmax(scale * Q K^T + mask) V. Step 4 of 4: asynchronous copies.
//
// As step 3, but that a tile is copied by cp.async while the one before it is computed, into two buffers in turn:
//
//   start K and V of the first tile
//   for each tile of this warp's keys:
//     start K and V of the next tile        into the buffers that the tile before has left
//     wait for K:  S = Q K^T, P             V may still be under way
//     wait for V:  O = O 2^(m - m') + P V
//
// Each tile is a group of copies, those of a tile that is not there an empty one: so the number of groups that may be
// pending is the same in every turn. A warp copies for itself alone, and no barrier of the CTA is needed.
// tile.cuh has the arithmetic, merge.cuh the way out. `visible`: row i sees the keys 0 .. i + visible.
#include "common/cp_async.cuh"
#include "merge.cuh"

// Starts the copy of KEYS rows of K or V, by one warp, and closes the group. Rows from `valid` on are zeros: their
// weight is 0, but 0 times a NaN is NaN.
__device__ inline void StartTile(__half* tile, const __half* from, int valid) {
  for (int i = threadIdx.x % 32; valid > 0 && i < KEYS * HEAD_DIM / 8; i += 32) {
    const int row = i / (HEAD_DIM / 8);
    const int column = i % (HEAD_DIM / 8) * 8;
    const bool there = row < valid;
    CopyAsync16(tile + row * kStride + column, there ? from + row * HEAD_DIM + column : from, there);
  }
  CommitCopies();
}

// Dynamic shared memory: a slice for each warp, two tiles of K and two of V; Merge's m and l.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const __half* q, const __half* k, const __half* v, __half* o, float* lse, int seq_q, int seq_kv,
              int group, int visible, float scale) {
  extern __shared__ __align__(16) unsigned char dynamic[];
  constexpr int kTile = KEYS * kStride;
  constexpr int kSliceBytes = (2 * KEYS > ROWS ? 2 * KEYS : ROWS) * kStride * 4;
  const int warp = threadIdx.x / 32;
  __half* const key_tiles = reinterpret_cast<__half*>(dynamic + warp * kSliceBytes);
  __half* const value_tiles = key_tiles + 2 * kTile;

  const int tiles = (seq_q + ROWS - 1) / ROWS;
  const int first_row = blockIdx.x % tiles * ROWS;
  const long long head = blockIdx.x / tiles;  // of all sequences
  k += head / group * seq_kv * HEAD_DIM;
  v += head / group * seq_kv * HEAD_DIM;
  const int end = min(seq_kv, min(first_row + ROWS, seq_q) + visible);  // of the last row, which sees most
  const auto start = [=](int first, int buffer) {
    StartTile(key_tiles + buffer * kTile, k + (long long)first * HEAD_DIM, end - first);
    StartTile(value_tiles + buffer * kTile, v + (long long)first * HEAD_DIM, end - first);
  };
  start(warp * KEYS, 0);

  Queries queries;
  Rows rows;
  Outputs out = {};
  Begin(queries, rows, q + head * seq_q * HEAD_DIM, first_row, seq_q, seq_kv, visible);
  int buffer = 0;
  for (int first = warp * KEYS; first < end; first += WARPS * KEYS, buffer ^= 1) {
    start(first + WARPS * KEYS, buffer ^ 1);
    Logits s;
    WaitCopies<3>();  // this V, the next K and V
    __syncwarp();     // every lane's copies are there
    QueryKey(s, queries, key_tiles + buffer * kTile);
    Softmax(s, rows, out, first, scale);
    WaitCopies<2>();
    __syncwarp();
    WeightValue(out, s, value_tiles + buffer * kTile);
    __syncwarp();  // the buffers may be written over
  }
  const long long row = head * seq_q + first_row;
  Merge<kSliceBytes>(dynamic, out, rows, o + row * HEAD_DIM, lse ? lse + row : nullptr, seq_q - first_row);
}
