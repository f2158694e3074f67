// The producer: one thread that hands out work items and starts every copy; with pages a warp, of which each thread
// looks a page up and starts the copies of one piece of a tile.
//
// Consumers walk over the tiles of keys that any row of the item sees, from the last to the first, and need K a step
// before V (consumer.cuh), so copies start in the order K(0) Q K(1) V(0) K(2) V(1) ... V(n-1). The producer runs ahead
// of the consumers as far as the rings reach, over the end of an item into the next.
#pragma once

#include "items.cuh"
#include "layout.cuh"
#include "tensor_copy.cuh"

constexpr int kPieces = BLOCK_N / PIECE;
constexpr int kProducers = PAGE_SIZE ? 32 : 1;
static_assert(kPieces <= 32, "a thread a piece");

class Producer {
 public:
  __device__ Producer(const SharedLayout& shared, const TensorMap& q, const TensorMap& k, const TensorMap& v,
                      const Arguments& t)
      : shared_(shared), q_(q), k_(k), v_(v), t_(t) {}

  // By the first kProducers threads.
  __device__ void Run() {
    Prefetch(q_);
    Prefetch(k_);
    Prefetch(v_);
    int index = blockIdx.x;
    while (index < t_.items) {
      const int next = NextIndex(index);
      HandOut(index);
      LoadItem(ItemOf(index, t_));
      index = next;
    }
    HandOut(index);  // past the end: consumers leave
  }

 private:
  __device__ static bool IsFirst() { return kProducers == 1 || threadIdx.x == 0; }

  // A persistent grid takes items in turn, or pops them from the counter: then each CTA pops past the end exactly once,
  // so the pop that is the last of all is known by its number and sets the counter back to zero for the next launch.
  __device__ int NextIndex(int index) const {
    if (t_.counter == nullptr) return index + static_cast<int>(gridDim.x);
    int next = IsFirst() ? Pop() : 0;
    if (kProducers > 1) next = static_cast<int>(Uniform(next));
    return next;
  }
  __device__ int Pop() const {
    const unsigned ticket = gridDim.x + atomicAdd(t_.counter, 1u);
    if (ticket == static_cast<unsigned>(t_.items) + gridDim.x - 1) atomicExch(t_.counter, 0u);
    return static_cast<int>(min(ticket, static_cast<unsigned>(t_.items)));
  }

  __device__ void HandOut(int index) {
    const Ring ring = shared_.Items();
    Wait(ring.Empty(item_.slot), item_.parity ^ 1);
    if (IsFirst()) {
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared_.ItemNumber(item_.slot)), "r"(index) : "memory");
      Arrive(ring.Full(item_.slot));
    }
    item_.Advance(kItemSlots);
  }

  __device__ void LoadItem(const Item& item) {
    const TileRange tiles = TilesOf(item, t_);
    if (tiles.begin == tiles.end) return;
    IssueKeyCopy(item, tiles.end - 1);
    IssueQueryCopy(item);
    for (int tile = tiles.end - 1; tile > tiles.begin; --tile) {
      IssueKeyCopy(item, tile - 1);
      IssueValueCopy(item, tile);
    }
    IssueValueCopy(item, tiles.begin);
  }

  __device__ void IssueQueryCopy(const Item& item) {
#pragma unroll
    for (int rows = 0; rows < kRowGroups; ++rows) {
      const Ring ring = shared_.Queries(rows);
      Wait(ring.Empty(0), query_parity_ ^ 1);
      // 64 rows are whole groups of packed heads.
      const Query first = QueryOf(item.head, item.tile * kBlockM + rows * kConsumerRows, t_);
      const Box box = VARLEN ? RaggedBox(QuerySlice(item.sequence, first.row, t_), first.head)
                             : Box{first.row, first.head, item.sequence.batch, 0};
      if (!IsFirst()) continue;
      ArriveExpecting(ring.Full(0), kQueryBytes);
      IssueRowsCopy<PACK_GQA>(shared_.Query(rows), q_, kConsumerRows, box, ring.Full(0));
    }
    query_parity_ ^= 1;
  }

  __device__ void IssueKeyCopy(const Item& item, int tile) {
    IssueTileCopy(shared_.Keys(), shared_.Key(key_.slot), key_, k_, item, tile);
  }
  __device__ void IssueValueCopy(const Item& item, int tile) {
    IssueTileCopy(shared_.Values(), shared_.Value(value_.slot), value_, v_, item, tile);
  }
  __device__ void IssueTileCopy(const Ring& ring, unsigned to, Place& place, const TensorMap& map, const Item& item,
                                int tile) {
    const int piece = kProducers > 1 ? static_cast<int>(threadIdx.x) : 0;
    const Box box = piece < kPieces ? BoxOf(item, tile * BLOCK_N + piece * PIECE) : Box{};
    const unsigned full = ring.Full(place.slot);
    Wait(ring.Empty(place.slot), place.parity ^ 1);
    if (IsFirst()) ArriveExpecting(full, kTileBytes);
    if (piece < kPieces) IssueRowsCopy<false>(to + piece * PIECE * kPanelRowBytes, map, BLOCK_N, box, full);
    place.Advance(STAGES);
  }

  // Of the keys from `key` on.
  __device__ Box BoxOf(const Item& item, int key) const {
    const int head = item.head / t_.group;
    if (kOwnLengths) return RaggedBox(KeySlice(item.sequence, key, t_), head);
    return {key, head, item.sequence.batch, 0};
  }

  const SharedLayout shared_;
  const TensorMap& q_;
  const TensorMap& k_;
  const TensorMap& v_;
  const Arguments& t_;
  Place item_, key_, value_;
  unsigned query_parity_ = 0;
};
