// A consumer: a warpgroup that computes 64 rows of each item, or with TEAMS 2 every other tile of them.
//
// With tiles of keys numbered in the order of the walk, OVERLAP 1:
//
//   S = Q K(0)^T, softmax                        and P = S rounded
//   for i = 1 ..:
//     start S = Q K(i)^T
//     start O += P V(i-1)
//     wait for S, softmax                        beside the product with V, which the other products leave time for
//     wait for O, rescale it, P = S rounded      only now: the product reads P until its end
//   O += P V(last)
//
// With OVERLAP 0 each tile's two products and its softmax follow each other, and S and P are not needed at once: only
// other consumers' products run beside the softmax.
//
// PINGPONG: consumers start a step's two products in turn. While one's are computed, the others are at their softmax.
// Without, the tensor cores alternate between the consumers' products as these happen to come.
#pragma once

#include "merge.cuh"
#include "output.cuh"

// S = Q K^T.
__device__ inline void StartLogits(Logits& s, Descriptor q, Descriptor k) {
#pragma unroll
  for (int d = 0; d < HEAD_DIM / 16; ++d) {
    const Descriptor from_q = After(q, ColumnBlockOffset(kConsumerRows, d));
    const Descriptor from_k = After(k, ColumnBlockOffset(BLOCK_N, d));
    if (d == 0) {
      Product<BLOCK_N>::Shared<false>(s, from_q, from_k);
    } else {
      Product<BLOCK_N>::Shared<true>(s, from_q, from_k);
    }
  }
}

// O += P V.
__device__ inline void StartOutputs(Outputs& o, const Weights& p, Descriptor v) {
#pragma unroll
  for (int j = 0; j < BLOCK_N / 16; ++j) {
    Product<kOutputColumns>::Registers(o, &p[4 * j], After(v, j * 16 * kPanelRowBytes));
  }
}

// Keeps the softmax ahead of the wait that follows: the assembler moves waits for products up as far as it can, but not
// over what may sleep, and whether to sleep depends here on all that the sums are made of, or on the last weight, which
// it computes last. `weights` are never negative.
__device__ inline void FinishBeforeWait(float weights) {
  if (__any_sync(0xffffffffu, weights < 0.0f)) asm volatile("nanosleep.u32 1;" ::: "memory");
}

class Consumer {
 public:
  __device__ Consumer(const SharedLayout& shared, int consumer, const Arguments& t)
      : shared_(shared),
        consumer_(consumer),
        rows_(TEAMS > 1 ? 0 : consumer),
        team_(TEAMS > 1 ? consumer : 0),
        lane_(threadIdx.x % 32),
        t_(t) {}

  __device__ void Run() {
    if (PINGPONG && consumer_ == CONSUMERS - 1) PassTurn();
    for (int index = NextItem(); index < t_.items; index = NextItem()) Attend(ItemOf(index, t_));
    if (PINGPONG && consumer_ == 0) TakeTurn();  // nobody is left waiting, no arrival pending
  }

 private:
  __device__ int NextItem() {
    const Ring ring = shared_.Items();
    Wait(ring.Full(item_.slot), item_.parity);
    int index = 0;
    if (lane_ == 0) {  // who releases the slot: racecheck knows no other lane's reads to be over then
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(index) : "r"(shared_.ItemNumber(item_.slot)) : "memory");
    }
    Release(ring, item_.slot);
    item_.Advance(kItemSlots);
    return static_cast<int>(Uniform(index));
  }

  // This warp has read the slot.
  __device__ void Release(const Ring& ring, int slot) const {
    __syncwarp();
    if (lane_ == 0) Arrive(ring.Empty(slot));
  }
  __device__ void ReleaseQuery() {
    Release(shared_.Queries(rows_), 0);
    query_parity_ ^= 1;
  }
  __device__ void ReleaseKey() {
    Release(shared_.Keys(), key_.slot);
    key_.Advance(STAGES);
  }
  // What logits are made of; Q with the item's last.
  __device__ void ReleaseLogitOperands(bool last) {
    ReleaseKey();
    if (last) ReleaseQuery();
  }
  __device__ void ReleaseValue() {
    Release(shared_.Values(), value_.slot);
    value_.Advance(STAGES);
  }

  __device__ void TakeTurn() const { SyncNamed(1 + consumer_, 2 * kWarpgroup); }
  __device__ void PassTurn() const {
    ArriveNamed(1 + (consumer_ == CONSUMERS - 1 ? 0 : consumer_ + 1), 2 * kWarpgroup);
  }

  __device__ void WaitQuery() const { Wait(shared_.Queries(rows_).Full(0), query_parity_); }
  __device__ void WaitKey() const { Wait(shared_.Keys().Full(key_.slot), key_.parity); }
  __device__ void WaitValue() const { Wait(shared_.Values().Full(value_.slot), value_.parity); }

  // Of tiles that are not for this consumer. Both pass on once the copy is there, so that slots are released in turn.
  __device__ void SkipKeys(int tiles) {
    for (; tiles > 0; --tiles) {
      WaitKey();
      ReleaseKey();
    }
  }
  __device__ void SkipValues(int tiles) {
    for (; tiles > 0; --tiles) {
      WaitValue();
      ReleaseValue();
    }
  }
  // Consumers have as many turns as each other: one less than the item has tiles.
  __device__ void SkipTurns(int tiles) {
    for (; tiles > 0; --tiles) {
      if (PINGPONG) TakeTurn();
      if (PINGPONG) PassTurn();
      SkipKeys(1);
      SkipValues(1);
    }
  }
  __device__ void SkipItem(int tiles) {
    WaitQuery();
    ReleaseQuery();
    SkipKeys(1);
    SkipValues(1);
    SkipTurns(tiles - 1);
  }

  // Both start a group of products.
  __device__ void StartLogits(Logits& s) const {
    WaitKey();
    FenceProducts();
    ::StartLogits(s, RowsDescriptor(shared_.Query(rows_)), RowsDescriptor(shared_.Key(key_.slot)));
    CommitProducts();
  }
  __device__ void StartOutputs(Outputs& o, const Weights& p) const {
    WaitValue();
    FenceProducts();
    ::StartOutputs(o, p, ColumnsDescriptor(shared_.Value(value_.slot)));
    CommitProducts();
  }

  // From logits to weights.
  __device__ Rescale Softmax(Logits& s, RowSums& rows, const Item& item, int tile, int row,
                             const TileRange& whole) const {
    if (SOFTCAP) Cap(s, t_);
    if (tile >= whole.end || (MASK == 2 && tile < whole.begin)) Mask(s, item, row, tile * BLOCK_N, lane_, t_);
    const Rescale rescale = RaiseMaxima(s, rows, Scale());
    Exponentiate(s, rows, Scale());
    Pin(s);
    FinishBeforeWait(ONES ? s[BLOCK_N / 2 - 1] : rows.sum[0] + rows.sum[1]);
    return rescale;
  }

  // The range has a tile for the team. A team skips the others' tiles of K ahead of its own, and so those of V.
  __device__ void Mainloop(Outputs& o, RowSums& rows, const Item& item, const TileRange& tiles, int row,
                           const TileRange& whole) {
    Logits s;
    Weights p;
    WaitQuery();
    int tile = tiles.end - 1 - team_;
#if OVERLAP
    int others = team_;  // ahead of the next tile of V
    if (TEAMS > 1) SkipKeys(others);
    StartLogits(s);
    WaitProducts<0>();
    Pin(s);
    ReleaseLogitOperands(tile - TEAMS < tiles.begin);
    Softmax(s, rows, item, tile, row, whole);
    Round(s, p);
#pragma unroll 1
    for (tile -= TEAMS; tile >= tiles.begin; tile -= TEAMS) {
      if (TEAMS > 1) SkipKeys(TEAMS - 1);
      if (PINGPONG) TakeTurn();
      StartLogits(s);
      if (TEAMS > 1) SkipValues(others);
      others = TEAMS - 1;
      StartOutputs(o, p);
      if (PINGPONG) PassTurn();
      WaitProducts<1>();
      Pin(s);
      ReleaseLogitOperands(tile - TEAMS < tiles.begin);
      const Rescale rescale = Softmax(s, rows, item, tile, row, whole);
      WaitProducts<0>();
      Pin(o);
      Pin(p);
      ReleaseValue();
      ApplyRescale(o, rescale);
      Round(s, p);
    }
    if (TEAMS > 1) SkipValues(others);
    StartOutputs(o, p);
    WaitProducts<0>();
    Pin(o);
    ReleaseValue();
    if (TEAMS > 1) SkipKeys(tile + TEAMS - tiles.begin);
    if (TEAMS > 1) SkipValues(tile + TEAMS - tiles.begin);
#else
#pragma unroll 1
    for (; tile >= tiles.begin; --tile) {
      StartLogits(s);
      WaitProducts<0>();
      Pin(s);
      ReleaseLogitOperands(tile == tiles.begin);
      ApplyRescale(o, Softmax(s, rows, item, tile, row, whole));
      Round(s, p);
      StartOutputs(o, p);
      WaitProducts<0>();
      Pin(o);
      ReleaseValue();
    }
#endif
  }

  __device__ void Attend(const Item& item) {
    Outputs o;
#pragma unroll
    for (int i = 0; i < kOutputColumns / 2; ++i) o[i] = 0.0f;
    RowSums rows = {{MinusInfinity(), MinusInfinity()}, {0.0f, 0.0f}};
    const int first_row = item.tile * kBlockM + rows_ * kConsumerRows;
    const int row = first_row + static_cast<int>(threadIdx.x % kWarpgroup / 32 * 16 + lane_ / 4);
    const TileRange all = TilesOf(item, t_);
    TileRange own = TilesSeen(first_row, kConsumerRows, item, t_);
    if (SPLIT) own = {max(own.begin, all.begin), min(own.end, all.end)};
    if (own.begin + team_ < own.end) {
      SkipTurns(all.end - own.end);
      Mainloop(o, rows, item, own, row, WholeTilesOf(first_row, item, t_));
      SkipTurns(own.begin - all.begin);
    } else if (all.begin < all.end) {
      SkipItem(all.end - all.begin);
    }
    ReduceQuads(rows, o);
    if (TEAMS > 1) MergeTeams(shared_.Merge(), team_, rows, o, Scale());
    if (TEAMS > 1 && team_ > 0) return;
    if (SINKS && item.split == 0) AddSinks(o, rows, item, row);
    if (!SPLIT) {
      StoreOutputs(o, rows, item, row, lane_, t_);
      StoreLse(rows, item, row, lane_, Scale(), t_);
      return;
    }
    StorePartial(o, rows, item, row, lane_, Scale(), t_);
  }

  __device__ void AddSinks(Outputs& o, RowSums& rows, const Item& item, int row) const {
    const float sinks[2] = {t_.sinks[QueryOf(item.head, row, t_).head], t_.sinks[QueryOf(item.head, row + 8, t_).head]};
    ::AddSinks(rows, o, sinks, Scale());
  }

  __device__ float Scale() const { return SOFTCAP ? 1.0f : t_.scale; }

  const SharedLayout shared_;
  const int consumer_;
  const int rows_, team_;  // which of the CTA's row groups, which of their teams
  const unsigned lane_;
  const Arguments& t_;
  Place item_, key_, value_;
  unsigned query_parity_ = 0;
};
