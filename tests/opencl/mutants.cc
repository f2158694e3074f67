#include "tests/opencl/mutants.h"

namespace attune::testing {
namespace {

constexpr char kAttention[] = "attention.cl", kSequence[] = "sequence.h", kElements[] = "elements.h";

constexpr char kCausal[] = "b2.h4.kvh2.q70.kv130.d64.f16.causal-br.lse";
constexpr char kEmptyRows[] = "b1.h2.q70.kv35.d32.f16.causal-br.lse";
constexpr char kWindow[] = "b1.h2.q65.kv130.d64.f16.window40.lse";
constexpr char kSoftcap[] = "b1.h2.q37.kv70.d64.bf16.causal.softcap20.lse";
constexpr char kSinks[] = "b1.h4.kvh2.q70.kv70.d64.f16.sinks.bshd.lse";
constexpr char kVarlen[] = "b4.h2.q50.kv70.d32.f16.causal-br.varlen.lse";
constexpr char kPaged[] = "b4.h4.kvh2.q50.kv100.d64.f16.page16.lse";
constexpr char kDecode[] = "b1.h8.kvh2.q1.kv8192.d128.bf16";
constexpr char kDecodeSinks[] = "b1.h8.kvh2.q1.kv8192.d64.bf16.sinks";
constexpr char kDecodePaged[] = "b4.h8.kvh2.q1.kv2048.d64.bf16.page16";

#define ATTUNE_TILE "attention_opencl:BLOCK_M=16,BLOCK_N=32,THREADS=4,LANES=1,VEC=8,UNROLL=1"
constexpr char kWhole[] = ATTUNE_TILE ",LOCAL_KV=1,KV_SPLITS=1,PERSISTENT=0";
constexpr char kInPlace[] = ATTUNE_TILE ",LOCAL_KV=0,KV_SPLITS=1,PERSISTENT=0";
constexpr char kSplits[] = ATTUNE_TILE ",LOCAL_KV=1,KV_SPLITS=2,PERSISTENT=0";
constexpr char kManySplits[] = ATTUNE_TILE ",LOCAL_KV=1,KV_SPLITS=16,PERSISTENT=0";
constexpr char kPersistent[] = ATTUNE_TILE ",LOCAL_KV=1,KV_SPLITS=1,PERSISTENT=2";
#undef ATTUNE_TILE

}  // namespace

const std::vector<Mutant>& Mutants() {
  static const std::vector<Mutant> mutants = {
      // Masks.
      {"CausalHidesTheLastKey", kAttention, "row + causal_offset + 1, 0", "row + causal_offset, 0", kCausal, kWhole},
      {"CausalShowsOneKeyMore", kAttention, "row + causal_offset + 1, 0", "row + causal_offset + 2, 0", kCausal,
       kWhole},
      {"CausalAlignsTopLeft", kAttention, "mask == 1 ? 0 : keys.length - queries.length", "0", kCausal, kWhole},
      {"CausalAlignsByTheLongest", kAttention, "mask == 1 ? 0 : keys.length - queries.length", "20", kVarlen, kWhole},
      {"WindowIsOneWider", kAttention, "+ 1 - window", "- window", kWindow, kWhole},
      {"WindowIsOneNarrower", kAttention, "+ 1 - window", "+ 2 - window", kWindow, kWhole},
      {"WindowsFirstTileIsSkipped", kAttention, "keys, window) / BLOCK_N * BLOCK_N",
       "keys, window) / BLOCK_N * BLOCK_N + BLOCK_N", kWindow, kWhole},
      {"WindowsMaskLeavesOut", kAttention, ">= (ivec)begin", "> (ivec)begin", kWindow, kWhole},
      {"MaskTakesOneMore", kAttention, "COUNTING < (ivec)end", "COUNTING <= (ivec)end", kCausal, kWhole},
      {"LastKeyIsHidden", kAttention, ", 0, keys.length) : keys.length;", ", 0, keys.length) : keys.length - 1;",
       kDecode, kManySplits},
      {"TilesEndWithTheFirstRow", kAttention, "visible_end(q_row0 + BLOCK_M - 1, queries",
       "visible_end(q_row0, queries", kCausal, kWhole},
      {"MaskedTilesAreNaN", kAttention, "const float base = new_max == -INFINITY ? 0.0f : new_max;  // -inf",
       "const float base = new_max;  // -inf", kEmptyRows, kWhole},
      {"EmptyRowsAreNaN", kAttention, "return *row_sum == 0.0f ? 0.0f : rescale", "return rescale", kEmptyRows, kWhole},
      // Index.
      {"RowsPastTheEndAreWritten", kAttention, "if (row >= queries.length) break;", "if (row > queries.length) break;",
       kVarlen, kWhole},
      {"RowsPastTheLastAreWritten", kAttention, "if (row >= queries.length) break;", "if (row > queries.length) break;",
       kCausal, kWhole},
      {"HeadsShareTheFirstKeys", kAttention, "kv_start_of(keys, head / group", "kv_start_of(keys, 0", kCausal, kWhole},
      {"HeadsTakeTheNextGroup", kAttention, "kv_start_of(keys, head / group",
       "kv_start_of(keys, (head + 1) / group % 2", kCausal, kWhole},
      {"BatchIsIgnored", kSequence, "keys.batch * batch_stride", "0", kCausal, kWhole},
      {"LastDimensionIsLeftOut", kAttention, "for (int d = 0; d < HEAD_DIM; ++d) {\n        for (int c = 0; c < KEYS",
       "for (int d = 0; d < HEAD_DIM - 1; ++d) {\n        for (int c = 0; c < KEYS", kCausal, kWhole},
      {"LastVectorIsLeftOut", kAttention, "for (int d = 0; d < HEAD_DIM; d += VEC) {\n            const vec columns",
       "for (int d = 0; d < HEAD_DIM - VEC; d += VEC) {\n            const vec columns", kCausal, kInPlace},
      {"LastKeyOfATileHasNoValue", kAttention, "for (int j = 0; j < keys_here; ++j)",
       "for (int j = 0; j < keys_here - 1; ++j)", kCausal, kWhole},
      {"TailIsReadFromBehind", kAttention, "min(BLOCK_N, keys.length - key0)", "BLOCK_N", kCausal, kWhole},
      {"ScaleIsForgotten", kAttention, "STORE_VEC(loaded * (q_scale * k_scale)", "STORE_VEC(loaded", kCausal, kWhole},
      // Softmax.
      {"OutputIsNotRescaled", kAttention, "acc[r * CHUNKS + c] *= rescale[r];", ";", kCausal, kWhole},
      {"SumIsNotRescaled", kAttention, "vec sum = lane_sum[r] * rescale[r];", "vec sum = lane_sum[r];", kCausal,
       kWhole},
      {"MaximumIsNotTaken", kAttention, "const float new_max = fmax(row_max[r], tile_max[r]);",
       "const float new_max = 0.0f;", kCausal, kWhole},
      {"SoftcapIsForgotten", kAttention, "s = cap * tanh(s);", "s = cap * s;", kSoftcap, kWhole},
      {"LogSumExpIsInBase2", kAttention, "(row_max[r] + log2(row_sum[r])) * M_LN2_F", "row_max[r] + log2(row_sum[r])",
       kCausal, kWhole},
      {"LogSumExpIsAnothersHeads", kSequence, "(long)head * q_bounds[batches] + queries.first", "queries.first",
       kVarlen, kWhole},
      // Splits.
      {"LastKeysBelongToNoSplit", kAttention, "(seq_kv + BLOCK_N * kv_splits - 1) /", "seq_kv /", kCausal, kSplits},
      {"SplitsOverlapByATile", kAttention, "min((split + 1) * split_keys, last_visible)",
       "min((split + 1) * split_keys + 1, last_visible)", kDecode, kManySplits},
      {"SplitsBeginOneKeyEarly", kAttention, "max(split * split_keys, first_visible)",
       "max(split * split_keys - (split == 7), first_visible)", kDecode, kManySplits},
      {"SplitsEndATileEarly", kAttention, "min((split + 1) * split_keys, last_visible)",
       "min((split + 1) * split_keys - (split == 3 ? BLOCK_N : 0), last_visible)", kDecode, kManySplits},
      {"FirstSplitIsNotJoined", kAttention, "ROLLED for (int i = 0; i < kv_splits; ++i) {\n    const long slot",
       "ROLLED for (int i = 1; i < kv_splits; ++i) {\n    const long slot", kDecode, kManySplits},
      {"SplitsAreJoinedWithoutTheirMaximum", kAttention, "exp2(partial_ml[slot * 2] - base)",
       "exp2(partial_ml[slot * 2])", kCausal, kSplits},
      {"SplitsSlotsCountShortSequences", kAttention, "(long)head_and_batch * seq_q + row",
       "(long)head_and_batch * queries.length + row", kVarlen, kSplits},
      {"EmptySplitsAreNaN", kAttention, "const float base = row_max == -INFINITY ? 0.0f : row_max;",
       "const float base = row_max;", kEmptyRows, kSplits},
      // Sinks.
      {"SinkIsInBaseE", kAttention, "sinks[head] * M_LOG2E_F", "sinks[head]", kSinks, kWhole},
      {"SinkDoesNotRescaleTheSum", kAttention, "*row_sum = *row_sum * rescale + exp2(sink - base);",
       "*row_sum = *row_sum + exp2(sink - base);", kSinks, kWhole},
      {"SinkDoesNotRescaleTheOutput", kAttention, "0.0f : rescale / *row_sum", "0.0f : 1.0f / *row_sum", kSinks,
       kWhole},
      {"SinkIsNotInTheMaximum", kAttention, "  *row_max = new_max;\n", "", kSinks, kWhole},
      {"SinkIsForgottenBySplits", kAttention, "const float scale = finish_row(&row_max, &row_sum, sinks, head);",
       "const float scale = 1.0f / row_sum;", kDecodeSinks, kManySplits},
      {"EverySplitAddsTheSink", kAttention, "if (lane == 0) vstore2(",
       "row_sum[r] += exp2(sinks[head] * M_LOG2E_F - row_max[r]); if (lane == 0) vstore2(", kDecodeSinks, kManySplits},
      // Pages and sequences.
      {"PageChangesOneKeyEarly", kSequence, "keys.pages[key / PAGE_SIZE]", "keys.pages[(key + 1) / PAGE_SIZE]", kPaged,
       kWhole},
      {"PagesRowIsOffByOne", kSequence, "* PAGE_SIZE + key % PAGE_SIZE", "* PAGE_SIZE + (key + 1) % PAGE_SIZE", kPaged,
       kWhole},
      {"TablesRowIsRoundedDown", kSequence, "((seq_kv + PAGE_SIZE - 1) / PAGE_SIZE)", "(seq_kv / PAGE_SIZE)", kPaged,
       kWhole},
      {"TailOfAPageIsUnmasked", kSequence, "keys.length = kv_lengths[batch];",
       "keys.length = (kv_lengths[batch] + 15) / 16 * 16;", kDecodePaged, kManySplits},
      {"LengthIsRoundedDownToAPage", kSequence, "keys.length = kv_lengths[batch];",
       "keys.length = kv_lengths[batch] / 16 * 16;", kDecodePaged, kManySplits},
      {"LengthIsOneShort", kSequence, "keys.length = kv_lengths[batch];",
       "keys.length = max(kv_lengths[batch] - 1, 0);", kDecodePaged, kManySplits},
      {"OnePageIsReadTwice", kSequence, "keys.pages[key / PAGE_SIZE]",
       "keys.pages[key / PAGE_SIZE - (key / PAGE_SIZE == 9)]", kDecodePaged, kManySplits},
      {"SequenceTakesANeighboursKey", kSequence, "keys.length = kv_bounds[batch + 1] - keys.first;",
       "keys.length = min(kv_bounds[batch + 1] - keys.first + 1, seq_kv);", kVarlen, kWhole},
      {"SequenceTakesANeighboursQuery", kSequence, "queries.length = q_bounds[batch + 1] - queries.first;",
       "queries.length = q_bounds[batch + 1] - queries.first + 1;", kVarlen, kWhole},
      // Races, and state from run to run.
      {"NoBarrierAfterATilesLoad", kAttention, "barrier(CLK_LOCAL_MEM_FENCE);\n\n      vec s[ROWS * KEYS];",
       "vec s[ROWS * KEYS];", kCausal, kWhole},
      {"CounterIsLeftAsItIs", kAttention, "if (item == items + (int)get_num_groups(0) - 1) atomic_xchg(counter, 0);",
       "", kCausal, kPersistent},
      {"CounterIsResetTooEarly", kAttention, "items + (int)get_num_groups(0) - 1) atomic_xchg",
       "items + (int)get_num_groups(0) - 2) atomic_xchg", kCausal, kPersistent},
      {"CounterBeginsWithTheSecond", kAttention, "item = atomic_inc(counter);", "item = atomic_inc(counter) + 1;",
       kCausal, kPersistent},
      // What no result shows.
      {"QueriesPastTheEndAreRead", kAttention, "q_row0 + row < queries.length ?", "q_row0 + row <= queries.length ?",
       kCausal, kWhole,
       "the row is computed and never written: a read without effect (compute-sanitizer finds its like)"},
      {"NoBarrierBeforeTheNextTile", kAttention, "      TILE_BARRIER();\n    }\n", "    }\n", kCausal, kWhole,
       "PoCL puts a barrier of its own at the end of a loop that has one, and so the mutant is right there"},
      {"ResultIsTruncated", kElements, "_rte)(x", "_rtz)(x", kCausal, kWhole,
       "one rounding step is what the acceptance rule allows a result in the dtype"},
  };
  return mutants;
}

}  // namespace attune::testing
