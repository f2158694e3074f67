// Kernels that the fake driver can run.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TESTING_FAKE_KERNELS_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TESTING_FAKE_KERNELS_H_

#include <string>
#include <vector>

namespace attune::device::cuda::testing {

// Runs kernel `entry` with these parameters, each its bytes; nothing for a name that is not known.
//
// plain_paged (q, k, v, partial, counter, kv_lengths, page_table, batch, heads_q, heads_kv, head_dim, page_size,
// width):
//   attention of one bf16 query a sequence, over pages, in float, to fp32 `partial`; adds 1 to int32 `counter`.
// plain_combine (partial, counter, o, elements): `partial` to bf16 `o`, NaN unless `counter` is 1; zeroes `counter`.
void RunFakeKernel(const std::string& entry, const std::vector<std::string>& parameters);

}  // namespace attune::device::cuda::testing

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TESTING_FAKE_KERNELS_H_
