// The functions that DriverApi wants and that nothing here calls: fake_cuda.cc defines the others, in their place.
#include "server/device/cuda/driver_api.h"

namespace attune::device::cuda::testing {

#define ATTUNE_UNUSED(member, symbol, parameters)                                    \
  extern "C" __attribute__((weak)) Result Unused##member parameters __asm__(symbol); \
  Result Unused##member parameters { return static_cast<Result>(801); }  // CUDA_ERROR_NOT_SUPPORTED
ATTUNE_CUDA_FUNCTIONS(ATTUNE_UNUSED)
#undef ATTUNE_UNUSED

}  // namespace attune::device::cuda::testing
