// What a launch of attention is given.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_TENSORS_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_TENSORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/attune/problem.h"

namespace attune::launch {

using Address = uint64_t;  // CUdeviceptr: of device memory
using Stream = void*;      // CUstream, which is cudaStream_t

// The sizes of a problem that change from call to call. With varlen and pages the lengths are the longest that a
// sequence may be (docs/problems.md): those of the sequences are read by the kernel, from memory.
struct Shape {
  int64_t batch = 1;
  int64_t seq_q = 1;
  int64_t seq_kv = 1;

  friend bool operator==(const Shape&, const Shape&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Shape& s) {
    return H::combine(std::move(h), s.batch, s.seq_q, s.seq_kv);
  }
};

// `form` at `shape`.
Problem ProblemOf(const Problem& form, const Shape& shape);

// Device addresses, 0 for what the problem has not. Shapes and types are in docs/problems.md; q, k, v and o lie as the
// problem's layout says, without gaps, at multiples of 16 bytes, the others at multiples of 4.
struct Tensors {
  Address q = 0;
  Address k = 0;
  Address v = 0;
  Address o = 0;    // written
  Address lse = 0;  // written
  Address sinks = 0;
  Address cu_seqlens_q = 0;
  Address cu_seqlens_k = 0;
  Address seqused_k = 0;
  Address block_table = 0;
  Address k_scale = 0;
  Address v_scale = 0;
};

inline constexpr int kTensors = 12;
// In the order of Tensors.
inline constexpr absl::string_view kTensorNames[kTensors] = {
    "q",         "k",           "v",       "o",      "lse", "sinks", "cu_seqlens_q", "cu_seqlens_k",
    "seqused_k", "block_table", "k_scale", "v_scale"};

// Which tensors a problem has: bit i for kTensorNames[i].
unsigned TensorsOf(const Problem& problem);

// InvalidArgument names the first tensor that is missing, that the problem has not, or that is not aligned.
absl::Status CheckTensors(const Tensors& tensors, unsigned wanted);

}  // namespace attune::launch

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_TENSORS_H_
