// Work items: one tile of BLOCK_M query rows against one split of the keys, for one head of one batch.
#pragma once

struct WorkItem {
  int tile, split, head, batch;
};

// Neighbouring items share a head's K and V, so that these stay in L2. With a causal mask a head's last tiles, which
// see the most keys, come first: short ones then fill the gaps at the end.
__device__ inline WorkItem DecodeItem(int item, int tiles, int splits, int heads) {
  WorkItem work;
  work.tile = item % tiles;
  if (MASK) work.tile = tiles - 1 - work.tile;
  item /= tiles;
  work.split = item % splits;
  item /= splits;
  work.head = item % heads;
  work.batch = item / heads;
  return work;
}

// The key tiles [begin, end) of a work item: its share of those that the query tile sees at all. May be empty.
struct KeyTiles {
  int begin, end;
};

__device__ inline KeyTiles KeyTilesOf(const WorkItem& work, int splits, int seq_q, int seq_kv, int causal_offset) {
  long long visible = seq_kv;
  if (MASK) {
    const int last_row = min(seq_q - 1, work.tile * BLOCK_M + BLOCK_M - 1);
    visible = max(0ll, min(visible, static_cast<long long>(last_row) + causal_offset + 1));
  }
  const long long tiles = (visible + BLOCK_N - 1) / BLOCK_N;
  return {static_cast<int>(tiles * work.split / splits), static_cast<int>(tiles * (work.split + 1) / splits)};
}

// The next item of this CTA; false when there is none. Without a counter there are as many CTAs as items. A persistent
// one
// (`counter` not null) begins with one item a CTA and pops the others from the counter. Each CTA pops past the end
// exactly once, so the pop that is the last of all is known by its number: it sets the counter back to zero for the
// next launch. `slot` is a word of shared memory; on return the CTA's shared memory is free for the next item.
__device__ inline bool NextItem(int& item, int items, unsigned* counter, int* slot) {
  if (counter == nullptr) return false;
  if (threadIdx.x == 0) {
    const unsigned ticket = gridDim.x + atomicAdd(counter, 1u);
    if (ticket == static_cast<unsigned>(items) + gridDim.x - 1) atomicExch(counter, 0u);
    *slot = static_cast<int>(min(ticket, static_cast<unsigned>(items)));
  }
  __syncthreads();
  item = *slot;
  __syncthreads();
  return item < items;
}
