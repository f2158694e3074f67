// The declarations in *_api.h against the toolkit's own headers, on hosts that have them.
#include "gtest/gtest.h"
#include "server/device/cuda/driver_api.h"
#include "server/device/cuda/nvml_api.h"
#include "server/device/cuda/nvrtc_api.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif
#if __has_include(<nvml.h>)
#include <nvml.h>
#endif

namespace attune::device::cuda {
namespace {

#ifdef CUDA_VERSION
TEST(Abi, TypesAreAsWideAsTheDrivers) {
  static_assert(sizeof(DeviceHandle) == sizeof(CUdevice) && sizeof(DevicePointer) == sizeof(CUdeviceptr));
  static_assert(sizeof(ContextHandle) == sizeof(CUcontext) && sizeof(DeviceUuid) == sizeof(CUuuid));
  static_assert(sizeof(Result) == sizeof(CUresult) && sizeof(DeviceAttribute) == sizeof(CUdevice_attribute));
  static_assert(sizeof(JitOption) == sizeof(CUjit_option) && sizeof(CaptureMode) == sizeof(CUstreamCaptureMode));
  static_assert(sizeof(FunctionAttribute) == sizeof(CUfunction_attribute));
  static_assert(sizeof(EncodedTensorMap) == sizeof(CUtensorMap) && alignof(EncodedTensorMap) >= alignof(CUtensorMap));
  static_assert(sizeof(TensorMapDataType) == sizeof(CUtensorMapDataType));
  static_assert(sizeof(TensorMapInterleave) == sizeof(CUtensorMapInterleave));
  static_assert(sizeof(TensorMapSwizzle) == sizeof(CUtensorMapSwizzle));
  static_assert(sizeof(TensorMapL2Promotion) == sizeof(CUtensorMapL2promotion));
  static_assert(sizeof(TensorMapOutOfBounds) == sizeof(CUtensorMapFloatOOBfill));
}

TEST(Abi, LaunchesHaveTheDriversLayout) {
  static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig) && sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
  static_assert(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
  static_assert(offsetof(LaunchConfig, dynamic_shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
  static_assert(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  static_assert(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
  static_assert(offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
  static_assert(+kLaunchClusterDimension == +CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  static_assert(+kLaunchProgrammaticStreamSerialization == +CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}

TEST(Abi, TensorMapsAreTheDrivers) {
  static_assert(+kTensorMapUint8 == +CU_TENSOR_MAP_DATA_TYPE_UINT8);
  static_assert(+kTensorMapFloat16 == +CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  static_assert(+kTensorMapFloat32 == +CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  static_assert(+kTensorMapBfloat16 == +CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  static_assert(+kInterleaveNone == +CU_TENSOR_MAP_INTERLEAVE_NONE && +kSwizzleNone == +CU_TENSOR_MAP_SWIZZLE_NONE);
  static_assert(+kSwizzle32 == +CU_TENSOR_MAP_SWIZZLE_32B && +kSwizzle64 == +CU_TENSOR_MAP_SWIZZLE_64B);
  static_assert(+kSwizzle128 == +CU_TENSOR_MAP_SWIZZLE_128B && +kPromotionNone == +CU_TENSOR_MAP_L2_PROMOTION_NONE);
  static_assert(+kPromotion64 == +CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
  static_assert(+kPromotion128 == +CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  static_assert(+kPromotion256 == +CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  static_assert(+kOutOfBoundsZero == +CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

TEST(Abi, ResultsAreTheDrivers) {
  static_assert(+kSuccess == +CUDA_SUCCESS && +kInvalidValue == +CUDA_ERROR_INVALID_VALUE);
  static_assert(+kOutOfMemory == +CUDA_ERROR_OUT_OF_MEMORY && +kInvalidImage == +CUDA_ERROR_INVALID_IMAGE);
  static_assert(+kNoBinaryForGpu == +CUDA_ERROR_NO_BINARY_FOR_GPU);
  static_assert(+kEccUncorrectable == +CUDA_ERROR_ECC_UNCORRECTABLE && +kInvalidPtx == +CUDA_ERROR_INVALID_PTX);
  static_assert(+kUnsupportedPtxVersion == +CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  static_assert(+kInvalidSource == +CUDA_ERROR_INVALID_SOURCE && +kNotFound == +CUDA_ERROR_NOT_FOUND);
  static_assert(+kIllegalAddress == +CUDA_ERROR_ILLEGAL_ADDRESS && +kLaunchTimeout == +CUDA_ERROR_LAUNCH_TIMEOUT);
  static_assert(+kLaunchOutOfResources == +CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES && +kAssert == +CUDA_ERROR_ASSERT);
  static_assert(+kPrimaryContextActive == +CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
  static_assert(+kHardwareStackError == +CUDA_ERROR_HARDWARE_STACK_ERROR);
  static_assert(+kIllegalInstruction == +CUDA_ERROR_ILLEGAL_INSTRUCTION);
  static_assert(+kMisalignedAddress == +CUDA_ERROR_MISALIGNED_ADDRESS && +kInvalidPc == +CUDA_ERROR_INVALID_PC);
  static_assert(+kInvalidAddressSpace == +CUDA_ERROR_INVALID_ADDRESS_SPACE);
  static_assert(+kLaunchFailed == +CUDA_ERROR_LAUNCH_FAILED);
}

TEST(Abi, AttributesAreTheDrivers) {
  static_assert(+kMaxThreadsPerBlock == +CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  static_assert(+kWarpSize == +CU_DEVICE_ATTRIBUTE_WARP_SIZE && +kClockRateKhz == +CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  static_assert(+kMultiprocessorCount == +CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  static_assert(+kMemoryClockRateKhz == +CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  static_assert(+kGlobalMemoryBusWidthBits == +CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  static_assert(+kL2CacheSize == +CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  static_assert(+kMaxThreadsPerMultiprocessor == +CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  static_assert(+kComputeCapabilityMajor == +CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  static_assert(+kComputeCapabilityMinor == +CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  static_assert(+kMaxSharedMemoryPerMultiprocessor == +CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  static_assert(+kMaxRegistersPerMultiprocessor == +CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  static_assert(+kMaxSharedMemoryPerBlockOptin == +CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  static_assert(+kMaxBlocksPerMultiprocessor == +CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  static_assert(+kReservedSharedMemoryPerBlock == +CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  static_assert(+kFunctionMaxThreadsPerBlock == +CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  static_assert(+kFunctionSharedSizeBytes == +CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  static_assert(+kFunctionMaxDynamicSharedSizeBytes == +CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  static_assert(+kFunctionNonPortableClusterSizeAllowed == +CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
}

TEST(Abi, FlagsAreTheDrivers) {
  static_assert(+kJitErrorLogBuffer == +CU_JIT_ERROR_LOG_BUFFER);
  static_assert(+kJitErrorLogBufferSizeBytes == +CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  static_assert(+kCaptureThreadLocal == +CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  static_assert(+kContextScheduleSpin == +CU_CTX_SCHED_SPIN && +kStreamNonBlocking == +CU_STREAM_NON_BLOCKING);
  static_assert(+kEventDefault == +CU_EVENT_DEFAULT && +kEventRecordExternal == +CU_EVENT_RECORD_EXTERNAL);
  static_assert(+kStreamWaitValueGreaterOrEqual == +CU_STREAM_WAIT_VALUE_GEQ);
  static_assert(+kHostAllocDeviceMapped == +CU_MEMHOSTALLOC_DEVICEMAP);
}
#endif

#if __has_include(<nvrtc.h>)
TEST(Abi, NvrtcIsNvrtc) {
  static_assert(sizeof(NvrtcProgram) == sizeof(nvrtcProgram) && sizeof(NvrtcResult) == sizeof(nvrtcResult));
  static_assert(+kNvrtcSuccess == +NVRTC_SUCCESS && +kNvrtcCompilation == +NVRTC_ERROR_COMPILATION);
  static_assert(+kNvrtcInvalidOption == +NVRTC_ERROR_INVALID_OPTION);
}
#endif

#if __has_include(<nvml.h>)
TEST(Abi, NvmlIsNvml) {
  static_assert(sizeof(NvmlProcessInfo) == sizeof(nvmlProcessInfo_t) && sizeof(NvmlDevice) == sizeof(nvmlDevice_t));
  static_assert(sizeof(NvmlProcessUtilization) == sizeof(nvmlProcessUtilizationSample_t));
  static_assert(+kNvmlSuccess == +NVML_SUCCESS && +kNvmlInsufficientSize == +NVML_ERROR_INSUFFICIENT_SIZE);
  static_assert(+kNvmlClockSm == +NVML_CLOCK_SM && +kNvmlClockMemory == +NVML_CLOCK_MEM);
  static_assert(+kNvmlTemperatureGpu == +NVML_TEMPERATURE_GPU);
}
#endif

TEST(Abi, ProcessInfoHasNvmlsLayout) {
  EXPECT_EQ(sizeof(NvmlProcessInfo), 24u);
  EXPECT_EQ(offsetof(NvmlProcessInfo, used_gpu_memory), 8u);
}

TEST(Abi, ProcessUtilizationHasNvmlsLayout) {
  EXPECT_EQ(sizeof(NvmlProcessUtilization), 32u);
  EXPECT_EQ(offsetof(NvmlProcessUtilization, sm_percent), 16u);
}

}  // namespace
}  // namespace attune::device::cuda
