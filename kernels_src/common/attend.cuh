// The loop that all CUDA attention kernels share: work items, and for each the mainloop over its key tiles.
//
// `Compute` does the arithmetic:
//   Layout, kThreads                    how tiles lie in shared memory; threads of the CTA
//   Begin()                             O = 0, m = -inf, l = 0
//   Logits(q, k)                        S = Q K^T for a tile of keys
//   Softmax(first_key, first_row, ...)  P = 2^(S - m'), with m, l and the factor for O brought up to date
//   Accumulate(v)                       O = O * factor + P V
//   Finish(output)                      writes the tile's rows
//
// Between Logits and Accumulate a Compute orders its own shared memory; on entry of Logits all threads have finished
// the Accumulate before. CP_ASYNC_STAGES is how deep the copies of K and V run ahead:
//
//   0   K and V are loaded, then used. One buffer each.
//   1   one buffer each: V(n) arrives during Logits(n), K(n+1) during Softmax(n) and Accumulate(n)
//   2+  a circular buffer of that many (K, V) stages: tile n + STAGES - 1 arrives while tile n is used
#pragma once

#include "common/cp_async.cuh"
#include "common/element.cuh"
#include "common/kv_element.cuh"
#include "common/output.cuh"
#include "common/tile.cuh"
#include "common/work.cuh"

// Of a tensor, in elements, from one sequence, head and row to the next.
struct Strides {
  long long batch, head, row;
  __device__ long long Head(int sequence, int number) const { return sequence * batch + number * head; }
};

// The kernel's arguments.
struct Tensors {
  const Element* q;
  const KvElement* k;
  const KvElement* v;
  Element* o;
  float* lse;        // [batch][head][row], or null
  float* partial_o;  // scratch; null without splits
  float2* partial_ml;
  unsigned* counter;  // null: one CTA an item
  int items, tiles, splits, batch, heads, group, seq_q, seq_kv;
  int causal_offset;  // row i sees keys <= i + causal_offset
  float scale;        // log2(e) / sqrt(HEAD_DIM)
  Strides of_q, of_k, of_v, of_o;
#if KV_DTYPE
  const float *k_scales, *v_scales;
  Strides of_k_scales, of_v_scales;
#endif
};

// One past the last key that a query row sees; 0 when it sees none.
__device__ inline int VisibleEnd(int row, const Tensors& t) {
  if (!MASK) return t.seq_kv;
  const long long end = static_cast<long long>(row) + t.causal_offset + 1;
  return static_cast<int>(max(0ll, min(end, static_cast<long long>(t.seq_kv))));
}

constexpr int kBuffers = CP_ASYNC_STAGES > 1 ? CP_ASYNC_STAGES : 1;

template <class Compute>
class Mainloop {
 public:
  using Layout = typename Compute::Layout;
  static constexpr int kTileElements = Layout::Elements(BLOCK_N);

  __device__ Mainloop(Element* k_tiles, Element* v_tiles, const KvElement* k, const KvElement* v,
                      const Tensors& tensors)
      : k_tiles_(k_tiles),
        v_tiles_(v_tiles),
        k_(k),
        v_(v),
        of_k_(tensors.of_k.row),
        of_v_(tensors.of_v.row),
        seq_kv_(tensors.seq_kv) {}

  __device__ void Run(Compute& compute, const Element* q, KeyTiles tiles, int first_row, const Tensors& tensors) {
#if CP_ASYNC_STAGES == 0
    for (int n = tiles.begin; n < tiles.end; ++n) {
      __syncthreads();  // the tiles before are no longer in use
      LoadKeys(k_tiles_, n);
      LoadValues(v_tiles_, n);
      __syncthreads();
      compute.Logits(q, k_tiles_);
      compute.Softmax(n * BLOCK_N, first_row, tensors);
      compute.Accumulate(v_tiles_);
    }
#elif CP_ASYNC_STAGES == 1
    LoadKeys(k_tiles_, tiles.begin);
    CommitCopies();
    for (int n = tiles.begin; n < tiles.end; ++n) {
      LoadValues(v_tiles_, n);
      CommitCopies();
      WaitCopies<1>();
      __syncthreads();  // K(n) is here
      compute.Logits(q, k_tiles_);
      __syncthreads();  // K's buffer is free
      if (n + 1 < tiles.end) LoadKeys(k_tiles_, n + 1);
      CommitCopies();
      compute.Softmax(n * BLOCK_N, first_row, tensors);
      WaitCopies<1>();
      __syncthreads();  // V(n) is here
      compute.Accumulate(v_tiles_);
      __syncthreads();  // V's buffer is free
    }
#else
    // A group is committed for every tile, also for those past the end, so that the count of groups stays known.
    for (int ahead = 0; ahead < kBuffers - 1; ++ahead) LoadBoth(tiles.begin + ahead, ahead, tiles.end);
    int buffer = 0;
    for (int n = tiles.begin; n < tiles.end; ++n) {
      WaitCopies<kBuffers - 2>();
      __syncthreads();  // tile n is here, and the buffer of tile n - 1 is free
      LoadBoth(n + kBuffers - 1, buffer == 0 ? kBuffers - 1 : buffer - 1, tiles.end);
      compute.Logits(q, k_tiles_ + buffer * kTileElements);
      compute.Softmax(n * BLOCK_N, first_row, tensors);
      compute.Accumulate(v_tiles_ + buffer * kTileElements);
      buffer = buffer + 1 == kBuffers ? 0 : buffer + 1;
    }
#endif
  }

 private:
  __device__ void LoadKeys(Element* tile, int n) { Load(tile, k_, of_k_, n); }
  __device__ void LoadValues(Element* tile, int n) { Load(tile, v_, of_v_, n); }
  __device__ void Load(Element* tile, const KvElement* from, long long row_stride, int n) {
    const int first = n * BLOCK_N;
    LoadTile<Layout, BLOCK_N, Compute::kThreads>(tile, from + first * row_stride, row_stride, seq_kv_ - first);
  }

#if CP_ASYNC_STAGES > 1
  __device__ void LoadBoth(int n, int buffer, int end) {
    if (n < end) {
      LoadKeys(k_tiles_ + buffer * kTileElements, n);
      LoadValues(v_tiles_ + buffer * kTileElements, n);
    }
    CommitCopies();
  }
#endif

  Element* k_tiles_;
  Element* v_tiles_;
  const KvElement* k_;
  const KvElement* v_;
  long long of_k_, of_v_;  // strides of rows
  int seq_kv_;
};

// `t` with the scale of K's head in that of the logits.
__device__ inline Tensors WithKeyScale(Tensors t, const WorkItem& work) {
#if KV_DTYPE
  t.scale *= t.k_scales[t.of_k_scales.Head(work.batch, work.head / t.group)];
#endif
  return t;
}

__device__ inline Output OutputOf(const Tensors& t, const WorkItem& work) {
  const int first_row = work.tile * BLOCK_M;
  const long long batch_head = static_cast<long long>(work.batch) * t.heads + work.head;
  Output output = {};
  output.rows = t.seq_q - first_row;
  if (t.splits > 1) {
    const long long row = (work.split * static_cast<long long>(t.batch) * t.heads + batch_head) * t.seq_q + first_row;
    output.partial_o = t.partial_o + row * HEAD_DIM;
    output.partial_ml = t.partial_ml + row;
  } else {
    output.o = t.o + t.of_o.Head(work.batch, work.head) + first_row * t.of_o.row;
    output.row_stride = t.of_o.row;
    if (t.lse != nullptr) output.lse = t.lse + batch_head * t.seq_q + first_row;
  }
#if KV_DTYPE
  output.value_scale = t.v_scales[t.of_v_scales.Head(work.batch, work.head / t.group)];
#endif
  return output;
}

// Every work item of this CTA. `tiles` is shared memory for Q, then K's buffers, then V's.
template <class Compute>
__device__ inline void Attend(Compute& compute, Element* tiles, const Tensors& t) {
  using Layout = typename Compute::Layout;
  __shared__ int slot;
  Element* q_tile = tiles;
  Element* k_tiles = q_tile + Layout::Elements(BLOCK_M);
  Element* v_tiles = k_tiles + kBuffers * Layout::Elements(BLOCK_N);

  int item = blockIdx.x;
  do {
    const WorkItem work = DecodeItem(item, t.tiles, t.splits, t.heads);
    const KeyTiles keys = KeyTilesOf(work, t.splits, t.seq_q, t.seq_kv, t.causal_offset);
    const int first_row = work.tile * BLOCK_M;

    compute.Begin();
    if (keys.begin < keys.end) {
      const Element* q = t.q + t.of_q.Head(work.batch, work.head);
      const KvElement* k = t.k + t.of_k.Head(work.batch, work.head / t.group);
      const KvElement* v = t.v + t.of_v.Head(work.batch, work.head / t.group);
      // Part of the first group of copies: it has arrived when the first K tile has.
      LoadTile<Layout, BLOCK_M, Compute::kThreads>(q_tile, q + first_row * t.of_q.row, t.of_q.row, t.seq_q - first_row);
      Mainloop<Compute>(k_tiles, v_tiles, k, v, t).Run(compute, q_tile, keys, first_row, WithKeyScale(t, work));
    }
    __syncthreads();
    compute.Finish(OutputOf(t, work));
    // Finish reads shared memory that the next item writes: NextItem's barriers order the two.
  } while (NextItem(item, t.items, t.counter, &slot));
}
