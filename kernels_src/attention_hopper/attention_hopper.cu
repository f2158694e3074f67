// Attention forward on Hopper: wgmma, tensor copies and warpgroups with roles of their own (sm_90a).
//
//   warpgroup 0, one thread:                       the other CONSUMERS warpgroups, 64 query rows each:
//     for each work item:                            for each work item:
//       hand its number out                            O = 0, m = -inf, l = 0        a row each, in registers
//       for each tile of BLOCK_N keys, last to first:  for each tile:
//         copy K, V (and Q once) into rings of           S  = Q K^T                    by wgmma, from shared memory
//         buffers, as soon as consumers have             m' = max(m, max S)
//         released them                                  P  = 2^(scale S - scale m')   scale has log2(e) in it
//                                                        l  = l 2^(scale (m - m')) + sum P
//                                                        O  = O 2^(scale (m - m')) + P V   P from registers
//                                                      write O / l and LSE
//
// J. Shah et al., FlashAttention-3, arXiv 2407.08608; lazy rescaling: T. Zaddouri et al., FlashAttention-4, arXiv
// 2603.05451; online softmax: M. Milakov, N. Gimelshein, arXiv 1805.02867.
//
//   shape.cuh         warpgroups, tiles, arguments     wgmma.cuh, descriptor.cuh    the matrix product
//   layout.cuh        shared memory                    producer.cuh, consumer.cuh   the two roles
//   barriers.cuh      mbarriers, rings                 softmax.cuh                  the rows' arithmetic
//   tensor_copy.cuh   copies of boxes                  output.cuh                   the way out
//   items.cuh         work items, which keys
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

// Boxes of the maps: kPanel columns by 64 rows of q, by BLOCK_N rows of k and v.
// clang-format off
extern "C" __global__ void __launch_bounds__(kThreads, kMinCtas)
    attention_hopper(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                     const __grid_constant__ TensorMap v, Element* o, float* lse, unsigned* counter, int items,
                     int tiles, int section, int batch, int heads, int group, int seq_q, int seq_kv,
                     int causal_offset, int window, float scale, float cap_in, float cap, long long o_batch_stride,
                     long long o_head_stride, long long o_row_stride, const float* sinks) {
  const Arguments t = {o, lse, counter, items, tiles, section, batch, heads, group, seq_q, seq_kv, causal_offset,
                       window, scale, cap_in, cap, o_batch_stride, o_head_stride, o_row_stride, sinks};
  // clang-format on
  extern __shared__ __align__(1024) unsigned char dynamic[];
  const SharedLayout shared(SharedAddress(dynamic));
  if (threadIdx.x == 0) shared.InitBarriers();
  __syncthreads();
  const int warpgroup = static_cast<int>(Uniform(threadIdx.x / kWarpgroup));
  if (warpgroup == 0) {
    LowerRegisters<kProducerRegisters>();
    if (threadIdx.x == 0) Producer(shared, q, k, v, t).Run();
  } else {
    RaiseRegisters<kConsumerRegisters>();
    Consumer(shared, warpgroup - 1, t).Run();
  }
}
