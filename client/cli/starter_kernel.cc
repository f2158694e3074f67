#include "client/cli/starter_kernel.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace attune::cli {
namespace {

constexpr char kOpenClSource[] =
    R"cl(// O = softmax(scale * Q K^T + mask) V, one work-item a row of Q, softmax with a running maximum (Milakov and Gimelshein,
// "Online normalizer calculation for softmax"). Plain: no tiles, no vectors, no local memory. Steps to try, one at a
// time: vectors (vload_half8), several rows a work-item, tiles of K and V in local memory, the keys split over groups.
// `visible`: row i sees the keys 0 .. i + visible.
#pragma OPENCL FP_CONTRACT ON
__kernel void attention(__global const half* q, __global const half* k, __global const half* v, __global half* o,
                        __global float* lse, long rows, int seq_q, int seq_kv, int group, int visible, float scale) {
  const long row = get_global_id(0);
  if (row >= rows) return;
  const long head_kv = row / seq_q / group;
  const int last = min(seq_kv - 1, (int)(row % seq_q) + visible);
  q += row * HEAD_DIM;
  o += row * HEAD_DIM;
  k += head_kv * seq_kv * HEAD_DIM;
  v += head_kv * seq_kv * HEAD_DIM;

  float out[HEAD_DIM];
  for (int d = 0; d < HEAD_DIM; ++d) out[d] = 0;
  float greatest = -INFINITY, sum = 0;
  for (long key = 0; key <= last; ++key) {
    float logit = 0;
    for (int d = 0; d < HEAD_DIM; ++d) logit += vload_half(d, q) * vload_half(key * HEAD_DIM + d, k);
    logit *= scale;
    const float greater = fmax(greatest, logit);
    const float keep = exp(greatest - greater);
    const float weight = exp(logit - greater);
    for (int d = 0; d < HEAD_DIM; ++d) out[d] = out[d] * keep + weight * vload_half(key * HEAD_DIM + d, v);
    sum = sum * keep + weight;
    greatest = greater;
  }
  for (int d = 0; d < HEAD_DIM; ++d) vstore_half_rte(sum == 0 ? 0 : out[d] / sum, d, o);
  if (lse) lse[row] = sum == 0 ? -INFINITY : greatest + log(sum);
}
)cl";

constexpr char kCudaSource[] =
    R"cu(// O = softmax(scale * Q K^T + mask) V, one warp a row of Q, softmax with a running maximum (Milakov and Gimelshein,
// "Online normalizer calculation for softmax"). Plain: no tiles, no tensor cores, no shared memory. Steps to try, one at
// a time: the keys split over more CTAs until there are 4 an SM, tiles of K and V in shared memory, tensor cores
// (mma.sync), asynchronous copies (cp.async).
// `visible`: row i sees the keys 0 .. i + visible.
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention(const __half* q, const __half* k, const __half* v, __half* o, float* lse, long long rows, int seq_q,
              int seq_kv, int group, int visible, float scale) {
  constexpr int kMine = HEAD_DIM / 32;                       // columns of a lane
  const float minus_infinity = __int_as_float(0xff800000);  // NVRTC knows no INFINITY
  const long long row = (long long)blockIdx.x * WARPS + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  const long long head_kv = row / seq_q / group;
  const int last = min(seq_kv - 1, (int)(row % seq_q) + visible);
  q += row * HEAD_DIM + lane;
  o += row * HEAD_DIM + lane;
  k += head_kv * seq_kv * HEAD_DIM + lane;
  v += head_kv * seq_kv * HEAD_DIM + lane;

  float query[kMine], out[kMine];
  for (int d = 0; d < kMine; ++d) {
    query[d] = __half2float(q[32 * d]) * scale;
    out[d] = 0;
  }
  float greatest = minus_infinity, sum = 0;
  for (long long key = 0; key <= last; ++key) {
    float logit = 0;
    for (int d = 0; d < kMine; ++d) logit += query[d] * __half2float(k[key * HEAD_DIM + 32 * d]);
    for (int step = 16; step > 0; step /= 2) logit += __shfl_xor_sync(0xffffffff, logit, step);
    const float greater = fmaxf(greatest, logit);
    const float keep = expf(greatest - greater);
    const float weight = expf(logit - greater);
    for (int d = 0; d < kMine; ++d) out[d] = out[d] * keep + weight * __half2float(v[key * HEAD_DIM + 32 * d]);
    sum = sum * keep + weight;
    greatest = greater;
  }
  for (int d = 0; d < kMine; ++d) o[32 * d] = __float2half_rn(sum == 0 ? 0 : out[d] / sum);
  if (lse && lane == 0) lse[row] = sum == 0 ? minus_infinity : greatest + logf(sum);
}
)cu";

// Both kernels take the same arguments and compute the same problems.
constexpr char kProblemLimits[] =
    R"manifest(lets { name: "rows" expr: "batch * heads_q * seq_q" }

# What the kernel cannot compute, so that nobody asks it to.
problem_limits { expr: "is_bf16 == 0 && kv_dtype == 0" reason: "only f16 is implemented" }
problem_limits { expr: "is_bshd == 0" reason: "only the bhsd layout is implemented" }
problem_limits { expr: "mask <= 2 && softcap == 0" reason: "windows and softcap are not implemented" }
problem_limits { expr: "sinks == 0" reason: "sinks are not implemented" }
problem_limits { expr: "is_varlen == 0 && page_size == 0" reason: "sequences are all as long and not paged" }
)manifest";

constexpr char kArguments[] =
    R"manifest(  args { buffer: BUFFER_ROLE_Q }
  args { buffer: BUFFER_ROLE_K }
  args { buffer: BUFFER_ROLE_V }
  args { buffer: BUFFER_ROLE_O }
  args { buffer: BUFFER_ROLE_LSE }
  args { i64: "rows" }
  args { i32: "seq_q" }
  args { i32: "seq_kv" }
  args { i32: "group" }
  args { i32: "mask > 0 ? causal_offset : seq_kv" }
  args { f32: "1 / sqrt(head_dim)" }
}
)manifest";

constexpr char kOpenClManifest[] =
    R"manifest(# proto-file: proto/attune/family/v1/family.proto
# proto-message: attune.family.v1.KernelFamily
# What attune needs to know of the kernel beside it: docs/families.md has every field.
description: "One work-item a row, plain"
backend: BACKEND_OPENCL
sources: "attention.cl"
compile_options: "-cl-std=CL1.2"
deterministic: true

# Each value is another variant; the best of them is compared.
parameters {
  name: "THREADS" description: "rows of a work-group" binding: BINDING_LAUNCH_TIME
  values: [1, 4, 16] guess: 4
}

)manifest";

constexpr char kOpenClLaunch[] =
    R"manifest(problem_limits { expr: "head_dim <= 128" reason: "a row of O does not fit a work-item" }

defines { name: "HEAD_DIM" expr: "head_dim" }

launches {
  entry: "attention"
  main: true
  grid_x: "ceil_div(rows, THREADS)"
  block_x: "THREADS"
)manifest";

constexpr char kCudaManifest[] =
    R"manifest(# proto-file: proto/attune/family/v1/family.proto
# proto-message: attune.family.v1.KernelFamily
# What attune needs to know of the kernel beside it: docs/families.md has every field.
description: "One warp a row, plain"
backend: BACKEND_CUDA
sources: "attention.cu"
deterministic: true

# Each value is another variant; the best of them is compared.
parameters {
  name: "WARPS" description: "rows of a CTA" binding: BINDING_COMPILE_TIME
  values: [1, 4, 8] guess: 4
}

)manifest";

constexpr char kCudaLaunch[] =
    R"manifest(problem_limits { expr: "mod(head_dim, 32) == 0" reason: "lanes share the columns evenly" }

defines { name: "HEAD_DIM" expr: "head_dim" }

launches {
  entry: "attention"
  main: true
  grid_x: "ceil_div(rows, WARPS)"
  block_x: "32 * WARPS"
)manifest";

void Add(const std::string& path, std::string text, google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  v1::SourceFile& file = *files.Add();
  file.set_path(path);
  file.set_text(std::move(text));
}

}  // namespace

google::protobuf::RepeatedPtrField<v1::SourceFile> StarterKernel(absl::string_view backend) {
  google::protobuf::RepeatedPtrField<v1::SourceFile> files;
  if (backend == "cuda") {
    Add("family.textproto", absl::StrCat(kCudaManifest, kProblemLimits, kCudaLaunch, kArguments), files);
    Add("attention.cu", kCudaSource, files);
  } else {
    Add("family.textproto", absl::StrCat(kOpenClManifest, kProblemLimits, kOpenClLaunch, kArguments), files);
    Add("attention.cl", kOpenClSource, files);
  }
  return files;
}

}  // namespace attune::cli
