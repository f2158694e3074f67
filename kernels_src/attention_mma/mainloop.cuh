// The mainloop of a team over its tiles of keys, last tile first. K and V are prefetched into circular buffers of
// their own.
//
// Step i, with K = K_STAGES buffers for K and V = V_STAGES for V:
//
//   wait for K(i), and V(i) if both > 1       one barrier: all of step i - 1 is done, and its buffers are free
//   start V(i + V - 1), K(i + K - 1)          one group of copies each, empty past the last step
//   S = Q K(i)^T
//   if K or V is 1: wait for V(i), barrier    K = 1: K's only buffer is free; V = 1: V(i) is here
//   if K is 1: start K(i + 1)
//   softmax, O += P V(i)
//
// With two buffers each a step has a single barrier, and warps drift apart by almost a step: one's softmax then runs
// beside another's products. Groups complete in order, so what has arrived follows from how many are still pending.
// The first step begins as soon as Q and K(0) are there, which are copied before all else: V(0) is waited for apart.
// With WARP_SKIP a warp whose rows see none of the tile's keys only copies and waits.
#pragma once

#include "common/cp_async.cuh"
#include "gemm.cuh"

constexpr int kKeyPrefetch = K_STAGES > 1 ? K_STAGES - 1 : 1;  // steps that K is started ahead
constexpr int kValuePrefetch = V_STAGES - 1;
// Groups after K(i), and after V(i) where the one barrier waits for both, when step i begins.
constexpr int kAfterKey = K_STAGES == 1 ? 0 : 2 * (K_STAGES - 2);
constexpr int kAfterValue = 2 * (V_STAGES - 2) + 1;
constexpr bool kOneBarrier = K_STAGES > 1 && V_STAGES > 1;
constexpr int kPendingAtBegin = kOneBarrier && kAfterValue < kAfterKey ? kAfterValue : kAfterKey;
// Steps before the first, of two groups each; before them is the group of Q and K(0).
constexpr int kStepsAhead = kKeyPrefetch > kValuePrefetch ? kKeyPrefetch : kValuePrefetch;
constexpr int kPendingAtFirst = 2 * kStepsAhead;
constexpr bool kFirstValueApart = V_STAGES > 1;
constexpr int kBufferBytes = BLOCK_N * KeyTile::kRowBytes;

// Barrier among the warps of a team.
__device__ inline void SyncTeam(unsigned team) {
  if (WARPS_N == 1) {
    __syncthreads();
  } else if (WARPS_M == 1) {
    __syncwarp();
  } else {
    SyncBarrier(team + 1, kTeamThreads);  // 0 is __syncthreads'
  }
}

// Registers are O's and S's. Where these leave a thread few others, it keeps nothing of its copies' addresses: where K
// and V begin is in shared memory, the rest is computed anew for each tile.
constexpr int kTileRegisters = kRowBlocks * (kDim / 2 + kTeamKeys / 2 + (Q_REGISTERS ? kDim / 4 : 0));
constexpr int kMostRegisters = 65536 / (MIN_CTAS * kThreads) < 255 ? 65536 / (MIN_CTAS * kThreads) : 255;
constexpr bool kComputesAnew = kTileRegisters + 90 > kMostRegisters;

// Where an item's keys begin in K and V, of its head; with pages, where they would in page 0.
struct KeyBegins {
  const KvElement* k;
  const KvElement* v;
};

class Mainloop {
 public:
  // `k_stages` and `v_stages` are shared addresses. `kept` is the CTA's, free for all that it does with this item.
  __device__ Mainloop(unsigned k_stages, unsigned v_stages, const Item& item, const TileRange& tiles, unsigned team,
                      unsigned team_thread, KeyBegins* kept, const Arguments& t)
      : t_(t),
        sequence_(item.sequence),
        tiles_(tiles),
        k_stages_(k_stages + team * kTeamKeys * KeyTile::kRowBytes),
        v_stages_(v_stages + team * kTeamKeys * KeyTile::kRowBytes),
        team_(team),
        thread_(team_thread),
        begins_{Begin(t.k, t.of_k, item.head / t.group, item.sequence),
                Begin(t.v, t.of_v, item.head / t.group, item.sequence)},
        kept_(kept) {
    if (kComputesAnew) *kept = begins_;
  }

  // The copies of the steps before the first, in the order that the counts of pending groups rest on.
  __device__ void Start() {
    IssueKeyCopy(tiles_.end - 1, 0);
    CommitCopies();
#pragma unroll
    for (int step = -kStepsAhead; step < 0; ++step) {
      const int tile = tiles_.end - 1 - step;
      if (step + kValuePrefetch >= 0) IssueValueCopy(tile - kValuePrefetch, (step + kValuePrefetch) % V_STAGES);
      CommitCopies();
      if (step + kKeyPrefetch >= 1) IssueKeyCopy(tile - kKeyPrefetch, (step + kKeyPrefetch) % K_STAGES);
      CommitCopies();
    }
  }

  // For this thread's copies of Q and K(0).
  __device__ void WaitFirst() { WaitCopies<kPendingAtFirst>(); }

#if !KV_CONVERT
  // Once Q and K(0) are there for all. `first_row` is the warp's.
  __device__ void Run(const Queries& queries, const Scale& scale, RowSums& rows, Outputs& o, int first_row,
                      unsigned lane) {
    const LaneAddress<KeyTile> keys = KeyAddress(k_stages_, lane);
    const LaneAddress<KeyTile> values = RowsFirst<KeyTile>(v_stages_, lane);
    int k_buffer = 0;
    int other_buffer = 0;
#pragma unroll 1
    for (int tile = tiles_.end - 1; tile >= tiles_.begin; --tile) {
      const int v_buffer = K_STAGES == V_STAGES ? k_buffer : other_buffer;
      const bool first = tile == tiles_.end - 1;
      if (!first) {
        WaitCopies<kPendingAtBegin>();
        SyncTeam(team_);
      }
      IssueValueCopy(tile - kValuePrefetch, Before(v_buffer, V_STAGES));
      CommitCopies();
      if (K_STAGES > 1) {
        IssueKeyCopy(tile - kKeyPrefetch, Before(k_buffer, K_STAGES));
        CommitCopies();
      }
      Logits s;
      bool seen = true, masked = false;  // alike in a warp
      if (WARP_SKIP) LookAtKeys(first_row, tile, seen, masked);
      // In both branches below: behind them S would live through the branch, in many more registers.
      const auto receive = [&] {
        if (kFirstValueApart && first) WaitCopies<kAfterValue + (K_STAGES > 1 ? 2 : 1)>();
        if (V_STAGES == 1) WaitCopies<K_STAGES == 1 ? 0 : 1>();
        if (!kOneBarrier || first) SyncTeam(team_);
        if (K_STAGES == 1) {
          IssueKeyCopy(tile - 1, 0);
          CommitCopies();
        }
      };
      if (seen) {
        QueryKey(s, queries, keys.Plus(k_buffer * kBufferBytes), rows);
        receive();
        if (SOFTCAP) Cap(s, scale, t_);
        if (WARP_SKIP ? masked : tile >= tiles_.whole_end || (MASK == 2 && tile < tiles_.whole_begin)) {
          Mask(s, first_row, tile * BLOCK_N + team_ * kTeamKeys, lane, sequence_, t_);
        }
        RaiseMaxima(s, rows, o, scale);
        WeightValue(o, s, rows, values.Plus(v_buffer * kBufferBytes), scale);
      } else {
        receive();
      }
      k_buffer = After(k_buffer, K_STAGES);
      other_buffer = After(other_buffer, V_STAGES);
    }
  }

#endif

 protected:
  using Copy = TileCopy<KeyTile, kTeamKeys, kTeamThreads>;
  static constexpr bool kLookUpRows = PAGE_SIZE % kTeamKeys != 0;  // a team's keys may lie in several pages

  __device__ static int After(int buffer, int buffers) { return buffer + 1 == buffers ? 0 : buffer + 1; }
  __device__ static int Before(int buffer, int buffers) { return buffer == 0 ? buffers - 1 : buffer - 1; }

  // Of the warp's rows and the team's keys of a tile: whether any row sees one, and whether any does not see all.
  __device__ void LookAtKeys(int first_row, int tile, bool& seen, bool& masked) const {
    if (tile < tiles_.whole_end && (MASK < 2 || tile >= tiles_.whole_begin)) return;
    const int first_key = tile * BLOCK_N + static_cast<int>(team_) * kTeamKeys;
    const Keys first = KeysOf(first_row / t_.Pack(), sequence_, t_);
    const Keys last = KeysOf((first_row + kWarpRows - 1) / t_.Pack(), sequence_, t_);
    seen = first_key < last.end && first_key + kTeamKeys > first.begin;
    masked = first_key + kTeamKeys > first.end || first_key < last.begin;
  }

  __device__ void IssueKeyCopy(int tile, int buffer) {
    if (tile >= tiles_.begin) IssueTileCopy(k_stages_ + buffer * kBufferBytes, KeysBegin(), t_.of_k, tile);
  }
  __device__ void IssueValueCopy(int tile, int buffer) {
    if (tile >= tiles_.begin) IssueTileCopy(v_stages_ + buffer * kBufferBytes, ValuesBegin(), t_.of_v, tile);
  }

  // Another thread may write the same before, and none anything else before all have passed a barrier.
  __device__ const KvElement* KeysBegin() const { return kComputesAnew ? Kept(&kept_->k) : begins_.k; }
  __device__ const KvElement* ValuesBegin() const { return kComputesAnew ? Kept(&kept_->v) : begins_.v; }
  __device__ static const KvElement* Kept(const KvElement* const* shared) {
    return *const_cast<const KvElement* const volatile*>(shared);
  }

  __device__ static const KvElement* Begin(const KvElement* tensor, const Strides& strides, int head,
                                           const Sequence& sequence) {
    const KvElement* begin = tensor + static_cast<long long>(head) * strides.head;
    if (PAGE_SIZE) return begin;
    if (VARLEN) return begin + static_cast<long long>(sequence.first_key) * strides.row;
    return begin + sequence.batch * strides.batch;
  }

  __device__ void IssueTileCopy(unsigned buffer, const KvElement* begin, const Strides& strides, int tile) {
    const int first = tile * BLOCK_N + static_cast<int>(team_) * kTeamKeys;
    const int valid = sequence_.seq_kv - first;
    const KvElement* from = begin + Copy::Chunk(thread_) * KeyTile::kChunkElements;
    const int row_stride = Opaque(strides.row);
    if (kLookUpRows) {  // none behind the last key
      Copy::Start(
          buffer, thread_,
          [=](int row) { return row < valid ? from + PageOffset(sequence_, first + row, strides) : from; },
          [=](int row) { return row < valid; });
      return;
    }
    // One look-up for all rows: with more rows to a pass of copies than the team has keys, a thread_'s own may lie in a
    // page that the table does not have.
    if (PAGE_SIZE && valid > 0) from += PageOffset(sequence_, first, strides);
    const int row = static_cast<int>(Copy::Row(thread_)) + (PAGE_SIZE ? 0 : first);
    from += static_cast<long long>(row) * row_stride;
    if (valid >= kTeamKeys) {
      Copy::StartFull(buffer, thread_, from, row_stride);
    } else {  // the last tile of the sequence, which the loop begins with; 0 * NaN is NaN, so rows past it are zeros
      Copy::Start(
          buffer, thread_,
          [=](int row) {
            return from + static_cast<long long>(row - static_cast<int>(Copy::Row(thread_))) * row_stride;
          },
          [=](int row) { return row < valid; });
    }
  }

  const Arguments& t_;
  const Sequence sequence_;
  const TileRange tiles_;
  unsigned k_stages_, v_stages_;
  unsigned team_, thread_;
  const KeyBegins begins_;
  KeyBegins* const kept_;  // in shared memory
};
