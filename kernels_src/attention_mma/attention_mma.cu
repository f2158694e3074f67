// Attention forward on tensor cores by mma.sync, with instructions that every GPU from sm_80 on has, for K and V of 8
// bits (e4m3) from sm_89 on.
//
//   for each work item (tile of BLOCK_M queries, split of the keys, head, batch):
//     O = 0, m = -inf, l = 0                        a row each, in registers
//     for each tile of BLOCK_N keys in the split, last to first:
//       S  = Q K^T                                  keys that a row must not see: -inf
//       m' = max(m, max S)
//       P  = 2^(scale S - scale m')                 scale has log2(e) in it
//       l  = l 2^(scale (m - m')) + sum P
//       O  = O 2^(scale (m - m')) + P V             P is never in memory: S's registers are P V's operand
//     teams of warps reduce their (m, l, O); a head's sink is added to the first split's; then one split: O / l and LSE
//     are the result; more: they go to scratch, and the last CTA of a tile, or a second launch, reduces them
//
// Online softmax: M. Milakov, N. Gimelshein, arXiv 1805.02867; tiles: T. Dao, FlashAttention-2, arXiv 2307.08691.
//
//   shape.cuh         warps, teams, tiles            mainloop.cuh   the loop over keys and its copies
//   items.cuh         work items, which keys         gemm.cuh       Q K^T and P V
//   sequence.cuh      where a sequence's rows lie    operands.cuh   Q, K and V as mma wants them, from 8 bits too
//   shared_tile.cuh   tiles in shared memory         softmax.cuh    the rows' arithmetic between the two
//   instructions.cuh  PTX                            scale.cuh      what logits are multiplied by
//   convert.cuh       8-bit elements as fp16         wide_tile.cuh, converting_mainloop.cuh   once for the CTA
//                                                    merge.cuh, output.cuh, combine.cuh   the way out
//
// Shared memory, dynamic; merging and combining use it again from its begin on:
//
//   Q_REGISTERS 0   | Q | K buffers | V buffers |
//   Q_REGISTERS 1   | K buffers | V buffers but the last | the last, and before it is needed: Q |
//
// With KV_CONVERT the converted tiles, V's last, are behind the buffers.
#include "combine.cuh"
#include "converting_mainloop.cuh"

constexpr int kQueryBytes = BLOCK_M * QueryTile::kRowBytes;
constexpr int kKeyStages = Q_REGISTERS ? 0 : kQueryBytes;
constexpr int kValueStages = kKeyStages + K_STAGES * kBufferBytes;
#if KV_CONVERT
constexpr int kQueryTile = Q_REGISTERS ? kWideValues : 0;
#else
constexpr int kQueryTile = Q_REGISTERS ? kValueStages + (V_STAGES - 1) * kBufferBytes : 0;
#endif

// Queries of the item's tile by the whole CTA.
__device__ inline void IssueQueryCopy(unsigned tile, unsigned thread, const Item& item, const Arguments& t) {
  const int first_row = item.tile * BLOCK_M;
  using Copy = TileCopy<QueryTile, BLOCK_M, kThreads>;
  const Element* q = t.q + Copy::Chunk(thread) * kChunk;
  Copy::Start(
      tile, thread,
      [&](int row) { return q + RowOffset(item.sequence, QueryOf(item.head, first_row + row, t), t.of_q); },
      [&](int row) { return first_row + row < item.sequence.Rows(t); });
}

// True in every thread of the last CTA of a tile to get here, which then sees all that the others wrote before.
__device__ inline bool IsLastSplit(const Item& item, const Arguments& t, int* slot) {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned* tickets =
        t.tickets + (static_cast<long long>(item.sequence.batch) * t.heads + item.head) * t.tiles + item.tile;
    const bool last = TakeTicket(tickets) == static_cast<unsigned>(t.splits) - 1;
    if (last) *tickets = 0;  // for the next launch
    *slot = last;
  }
  __syncthreads();
  return *slot != 0;
}

__device__ inline void CombineTile(unsigned shared, const Item& item, const Arguments& t) {
  const int first_row = item.tile * BLOCK_M;
  const auto query_of = [&](int row) { return QueryOf(item.head, first_row + row, t); };
  CombineRows<kWarps>(
      t.partial_o, t.partial_ml, t.splits, static_cast<long long>(t.batch) * t.heads * t.Rows(),
      min(BLOCK_M, item.sequence.Rows(t) - first_row), shared,
      [&](int row) { return RowIndex(item.sequence, query_of(row), t); },
      [&](int row, const CombinedRow& combined) {
        const Query query = query_of(row);
        float* lse = t.lse == nullptr ? nullptr : t.lse + LseIndex(item.sequence, query, t);
        StoreCombined(combined, t.o + RowOffset(item.sequence, query, t.of_o), lse, threadIdx.x % 32);
      });
}

// A warp's coordinates: its lanes, its team, its rows.
struct WarpCoord {
  unsigned lane, team, team_warp;

  __device__ explicit WarpCoord(unsigned thread)
      : lane(thread % 32), team(Uniform(thread / kTeamThreads)), team_warp(Uniform(thread % kTeamThreads / 32)) {}

  __device__ int FirstRow(const Item& item) const { return item.tile * BLOCK_M + team_warp * kWarpRows; }
  __device__ int OwnBytes() const {
    return team_warp * kWarpRows * QueryTile::kRowBytes;
  }  // from a tile of queries to its rows
};

// The mainloop and what it needs; on return shared memory is free, and team 0 has the item's result.
__device__ inline void AttendKeys(unsigned shared, int index, RowSums& rows, Outputs& o, Scale& scale, KeyBegins* kept,
                                  const Arguments& t) {
  const Item item = ItemOf(index, t);
  const TileRange tiles = TilesOf(item, t);
  const unsigned thread = Opaque(threadIdx.x);
  const WarpCoord coord(thread);
  if (tiles.begin < tiles.end) {
    IssueQueryCopy(shared + kQueryTile, thread, item, t);  // part of the first group of copies
#if KV_CONVERT
    ConvertingMainloop mainloop(shared, item, tiles, coord.team, thread % kTeamThreads, kept, t);
#else
    Mainloop mainloop(shared + kKeyStages, shared + kValueStages, item, tiles, coord.team, thread % kTeamThreads, kept,
                      t);
#endif
    mainloop.Start();
    const float key_scale = KeyScale(item, t);
    Queries queries(shared + kQueryTile + coord.OwnBytes(), coord.lane);
    mainloop.WaitFirst();
    __syncthreads();  // Q is here for all teams
#if KV_DTYPE
    queries.Keep(scale, key_scale, coord.team);
#else
    queries.Keep();
#endif
    if (Q_REGISTERS) __syncthreads();  // its memory is V's
    mainloop.Run(queries, scale, rows, o, coord.FirstRow(item), coord.lane);
  }
  ReduceQuads(rows);
  if (Q_REGISTERS || WARPS_N > 1) __syncthreads();
}

__device__ inline void AttendItem(unsigned shared, int index, const Arguments& t, int* slot, KeyBegins* kept) {
  if (VARLEN && IsPastEnd(ItemOf(index, t), t)) return;
  RowSums rows;
  Outputs o;
  Clear(rows, o);
  Scale scale(t);
#if KV_CONVERT
  *slot = index;  // it has no register to stay in
  AttendKeys(shared, index, rows, o, scale, kept, t);
  index = *const_cast<volatile int*>(slot);
#else
  AttendKeys(shared, index, rows, o, scale, kept, t);
#endif

  // The item and the warp's coordinates are not kept in registers during the mainloop.
  const Item item = ItemOf(Opaque(index), t);
  const WarpCoord coord(Opaque(threadIdx.x));
  const int first_row = coord.FirstRow(item);
  const float value_scale = ValueScale(item, t);
  if (WARPS_N > 1) MergeTeams(shared, rows, o, coord.team, coord.team_warp, coord.lane, scale);
  if (SINKS && coord.team == 0 && item.split == 0) AddSinks(rows, o, scale, item, first_row, coord.lane, t);
  if (t.splits == 1) {
    if (coord.team == 0) {
      StoreOutputs(shared + coord.OwnBytes(), rows, o, value_scale, item, first_row, coord.lane, t);
      StoreLse(rows, scale, item, first_row, coord.lane, t);
    }
    return;
  }
  if (coord.team == 0) StorePartial(rows, o, scale, value_scale, item, first_row, coord.lane, t);
  if (t.tickets != nullptr && IsLastSplit(item, t, slot)) CombineTile(shared, item, t);
}

// clang-format off
extern "C" __global__ void __launch_bounds__(kThreads, MIN_CTAS)
    attention_mma(const Element* q, const KvElement* k, const KvElement* v, Element* o, float* lse, float* partial_o,
                  float2* partial_ml, unsigned* counter, unsigned* tickets, int items, int tiles, int section,
                  int splits, int batch, int heads, int pack, int group, int seq_q, int seq_kv, int causal_offset,
                  int window, float scale, float cap_in, float cap, long long q_batch_stride, long long q_head_stride,
                  long long q_row_stride, long long k_batch_stride, long long k_head_stride, long long k_row_stride,
                  long long v_batch_stride, long long v_head_stride, long long v_row_stride, long long o_batch_stride,
                  long long o_head_stride, long long o_row_stride, const float* sinks, const int* q_bounds,
                  const int* kv_bounds, const int* kv_lengths, const int* page_table, int bottom_right,
                  const float* k_scale, const float* v_scale, long long k_scale_batch_stride,
                  long long k_scale_head_stride, long long v_scale_batch_stride, long long v_scale_head_stride) {
  const Strides of_q = StridesOf(q_batch_stride, q_head_stride, q_row_stride);
  const Strides of_k = StridesOf(k_batch_stride, k_head_stride, k_row_stride);
  const Strides of_v = StridesOf(v_batch_stride, v_head_stride, v_row_stride);
  const Strides of_o = StridesOf(o_batch_stride, o_head_stride, o_row_stride);
  const Arguments t = {
      q, k, v, o, lse, partial_o, partial_ml, counter, tickets, items, tiles, section, splits, batch, heads, pack,
      group, seq_q, seq_kv, causal_offset, window, scale, cap_in, cap, of_q, of_k, of_v, of_o, sinks, q_bounds, kv_bounds,
      kv_lengths, page_table, bottom_right, k_scale, v_scale, {k_scale_batch_stride, k_scale_head_stride},
      {v_scale_batch_stride, v_scale_head_stride}};
  // clang-format on
  extern __shared__ __align__(128) unsigned char dynamic[];
  __shared__ int last_slot, item_slot;
  __shared__ KeyBegins kept;
  const unsigned shared = SharedAddress(dynamic);
  int index = blockIdx.x;
  do {
    AttendItem(shared, Uniform(index), t, &last_slot, &kept);
    // NextItem's barriers order this item's use of shared memory and the next one's.
  } while (NextItem(index, t.items, t.counter, &item_slot));
}

constexpr int kCombineWarps = 8;

// `cta_rows` rows a CTA: fewer than warps when there are many splits, which the warps of a row then divide.
extern "C" __global__ void __launch_bounds__(kCombineWarps * 32)
    attention_mma_combine(const float* partial_o, const float2* partial_ml, Element* o, float* lse, int splits,
                          long long all_rows, int cta_rows, int heads, int seq_q, long long o_batch_stride,
                          long long o_head_stride, long long o_row_stride, const int* q_bounds, int batch) {
  __shared__ __align__(16) unsigned char parts[kCombineWarps * kCombineBytes];
  const long long first = static_cast<long long>(blockIdx.x) * cta_rows;
  const int rows = static_cast<int>(min(static_cast<long long>(cta_rows), all_rows - first));
  Arguments t = {};  // those that say where rows lie; no heads are packed here
  t.q_bounds = q_bounds, t.batch = batch, t.heads = heads, t.pack = 1, t.seq_q = seq_q;
  t.of_o = StridesOf(o_batch_stride, o_head_stride, o_row_stride);
  CombineRows<kCombineWarps>(
      partial_o, partial_ml, splits, all_rows, rows, SharedAddress(parts),
      [&](int row) {
        const long long number = first + row;
        const bool past_end = VARLEN && number % seq_q >= QueriesOf(number / seq_q / heads, t).seq_q;
        return past_end ? kNoRow : number;
      },
      [&](int row, const CombinedRow& combined) {
        const long long head = (first + row) / seq_q;
        const Query query = {static_cast<int>(head % heads), static_cast<int>((first + row) % seq_q)};
        const Sequence sequence = QueriesOf(head / heads, t);
        float* to_lse = lse == nullptr ? nullptr : lse + LseIndex(sequence, query, t);
        StoreCombined(combined, o + RowOffset(sequence, query, t.of_o), to_lse, threadIdx.x % 32);
      });
}
