// Attention forward on Hopper: wgmma, tensor copies and warpgroups with roles of their own (sm_90a).
//
//   warpgroup 0, one thread or warp:               the other CONSUMERS warpgroups, 64 query rows each:
//     for each work item:                            for each work item:
//       hand its number out                            O = 0, m = -inf, l = 0        a row each, in registers
//       for each tile of BLOCK_N keys, last to first:  for each tile:
//         copy K, V (and Q once) into rings of           S  = Q K^T                    by wgmma, from shared memory
//         buffers, as soon as consumers have             m' = max(m, max S)
//         released them                                  P  = 2^(scale S - scale m')   scale has log2(e) in it
//                                                        l  = l 2^(scale (m - m')) + sum P
//                                                        O  = O 2^(scale (m - m')) + P V   P from registers
//                                                      write O / l and LSE, or (m, l, O) of a split of the keys
//
// J. Shah et al., FlashAttention-3, arXiv 2407.08608; lazy rescaling: T. Zaddouri et al., FlashAttention-4, arXiv
// 2603.05451; online softmax: M. Milakov, N. Gimelshein, arXiv 1805.02867.
//
//   shape.cuh         warpgroups, tiles, arguments     wgmma.cuh, descriptor.cuh    the matrix product
//   layout.cuh        shared memory                    producer.cuh, consumer.cuh   the two roles
//   barriers.cuh      mbarriers, rings                 softmax.cuh                  the rows' arithmetic
//   tensor_copy.cuh   copies of boxes                  merge.cuh                    two teams' results
//   sequence.cuh      where a sequence's rows lie      output.cuh, combine.cuh      the way out
//   items.cuh         work items, which keys
#include "combine.cuh"
#include "consumer.cuh"
#include "producer.cuh"

// The register file is dealt anew: PTX ISA, "setmaxnreg".
template <int kRegisters>
__device__ inline void LowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void RaiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Boxes of the maps: kPanel columns by 64 rows of q (PACK_GQA: by `pack` heads by 64 / pack rows), by PIECE rows of k
// and v.
// clang-format off
extern "C" __global__ void __launch_bounds__(kThreads, kMinCtas)
    attention_hopper(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                     const __grid_constant__ TensorMap v, Element* o, float* lse, float* partial_o,
                     float2* partial_ml, unsigned* counter, int items, int tiles, int section,
                     int splits, int batch, int heads, int pack, int group, int seq_q, int seq_kv, int causal_offset,
                     int window, float scale, float cap_in, float cap, long long o_batch_stride,
                     long long o_head_stride, long long o_row_stride, const float* sinks,
                     const int* q_bounds, const int* kv_bounds, const int* kv_lengths, const int* page_table,
                     int bottom_right) {
  const Arguments t = {
      o, lse, partial_o, partial_ml, counter, items, tiles, section, splits, batch, heads, pack, group, seq_q,
      seq_kv, causal_offset, window, scale, cap_in, cap, o_batch_stride, o_head_stride, o_row_stride, sinks, q_bounds,
      kv_bounds, kv_lengths, page_table, bottom_right};
  // clang-format on
  extern __shared__ __align__(1024) unsigned char dynamic[];
  const SharedLayout shared(SharedAddress(dynamic));
  if (threadIdx.x == 0) shared.InitBarriers();
  if (ONES) shared.FillOnes();
  __syncthreads();
  const int warpgroup = static_cast<int>(Uniform(threadIdx.x / kWarpgroup));
  if (warpgroup == 0) {
    LowerRegisters<kProducerRegisters>();
    if (threadIdx.x < kProducers) Producer(shared, q, k, v, t).Run();
  } else {
    RaiseRegisters<kConsumerRegisters>();
    Consumer(shared, warpgroup - 1, t).Run();
  }
}

constexpr int kCombineWarps = 8;

// A warp for each of `all_rows`. May start while the launch before it ends, and waits for that: PTX ISA,
// "griddepcontrol".
extern "C" __global__ void __launch_bounds__(kCombineWarps * 32)
    attention_hopper_combine(const float* partial_o, const float2* partial_ml, Element* o, float* lse, int splits,
                             long long all_rows, int batch, int heads, int seq_q, long long o_batch_stride,
                             long long o_head_stride, long long o_row_stride, const int* q_bounds) {
  const long long number = static_cast<long long>(blockIdx.x) * kCombineWarps + threadIdx.x / 32;
  if (number >= all_rows) return;
  Arguments t = {};  // those that say where rows lie; no heads are packed here
  t.q_bounds = q_bounds, t.batch = batch, t.heads = heads, t.pack = 1, t.seq_q = seq_q;
  t.o_batch_stride = o_batch_stride, t.o_head_stride = o_head_stride, t.o_row_stride = o_row_stride;
  const long long head = number / seq_q;
  const Query query = {static_cast<int>(head % heads), static_cast<int>(number % seq_q)};
  const Item item = {0, 0, query.head, QueriesOf(static_cast<int>(head / heads), q_bounds)};
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (query.row >= item.sequence.Queries(t)) return;
  CombineRow(partial_o, partial_ml, splits, number, all_rows, o + OutputOffset(item, query, t),
             lse == nullptr ? nullptr : lse + LseIndex(item, query, t), threadIdx.x % 32);
}
