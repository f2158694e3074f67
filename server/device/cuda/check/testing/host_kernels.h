// check_kernels.cu compiled for the host, where a grid has one thread for each blockIdx.y. For one source of a program.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_CHECK_TESTING_HOST_KERNELS_H_
#define ATTUNE_SERVER_DEVICE_CUDA_CHECK_TESTING_HOST_KERNELS_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace attune::device::cuda::host_kernels {

struct Index {
  unsigned x, y, z;
};
inline Index blockIdx = {0, 0, 0};
inline constexpr Index threadIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
inline float __uint_as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t __float_as_uint(float value) { return std::bit_cast<uint32_t>(value); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
// The other lanes have nothing.
template <typename T>
T __shfl_down_sync(unsigned, T, int) {
  return 0;
}
// NOLINTEND(bugprone-reserved-identifier)
template <typename T>
void atomicAdd(T* to, T value) {
  *to += value;
}
template <typename T>
void atomicMax(T* to, T value) {
  *to = value > *to ? value : *to;
}
inline float fabsf(float value) { return std::fabs(value); }

#define __global__
#define __device__
#define __forceinline__ inline
#include "server/device/cuda/check/check_kernels.cu"
#undef __global__
#undef __device__
#undef __forceinline__

}  // namespace attune::device::cuda::host_kernels

#endif  // ATTUNE_SERVER_DEVICE_CUDA_CHECK_TESTING_HOST_KERNELS_H_
