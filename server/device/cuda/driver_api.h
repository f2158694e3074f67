// The part of the CUDA Driver API that attune calls, declared here so that no toolkit is needed to build it. Names,
// values and signatures are the driver's ABI, which is stable: abi_test.cc compares them with <cuda.h> where there is
// one.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_DRIVER_API_H_
#define ATTUNE_SERVER_DEVICE_CUDA_DRIVER_API_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/device/cuda/dynamic_library.h"

namespace attune::device::cuda {

using DeviceHandle = int;        // CUdevice
using DevicePointer = uint64_t;  // CUdeviceptr
using ContextHandle = void*;     // CUcontext
using ModuleHandle = void*;      // CUmodule
using FunctionHandle = void*;    // CUfunction
using StreamHandle = void*;      // CUstream
using EventHandle = void*;       // CUevent
using GraphHandle = void*;       // CUgraph
using GraphExecHandle = void*;   // CUgraphExec
struct DeviceUuid {
  char bytes[16];
};  // CUuuid

enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kInvalidSource = 300,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kPrimaryContextActive = 708,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kClockRateKhz = 13,
  kMultiprocessorCount = 16,
  kMemoryClockRateKhz = 36,
  kGlobalMemoryBusWidthBits = 37,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMaxBlocksPerMultiprocessor = 106,
  kReservedSharedMemoryPerBlock = 111,
};

enum FunctionAttribute : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionSharedSizeBytes = 1,
  kFunctionMaxDynamicSharedSizeBytes = 8,
  kFunctionNonPortableClusterSizeAllowed = 14,
};

// CUtensorMap. CUDA 13 aligns it to 128 bytes, CUDA 12 to 64.
struct alignas(128) EncodedTensorMap {
  uint64_t opaque[16] = {};
};

enum TensorMapDataType : int {
  kTensorMapUint8 = 0,
  kTensorMapFloat16 = 6,
  kTensorMapFloat32 = 7,
  kTensorMapBfloat16 = 9,
};
enum TensorMapInterleave : int { kInterleaveNone = 0 };
enum TensorMapSwizzle : int { kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3 };
enum TensorMapL2Promotion : int { kPromotionNone = 0, kPromotion64 = 1, kPromotion128 = 2, kPromotion256 = 3 };
enum TensorMapOutOfBounds : int { kOutOfBoundsZero = 0 };

enum LaunchAttributeId : int {
  kLaunchClusterDimension = 4,
  kLaunchProgrammaticStreamSerialization = 6,
};

// CUlaunchAttribute.
struct LaunchAttribute {
  LaunchAttributeId id = {};
  alignas(8) union {
    char pad[64];
    unsigned cluster[3];
    int programmatic_stream_serialization;
  } value = {};
};

// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

enum JitOption : int {
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferSizeBytes = 6,
};

enum CaptureMode : int { kCaptureThreadLocal = 1 };

inline constexpr unsigned kContextScheduleSpin = 1;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventRecordExternal = 1;  // in a capture: a node of the graph
inline constexpr unsigned kStreamWaitValueGreaterOrEqual = 0;
inline constexpr unsigned kHostAllocDeviceMapped = 2;

// X(member, exported symbol, parameters)
#define ATTUNE_CUDA_FUNCTIONS(X)                                                                                      \
  X(Init, "cuInit", (unsigned flags))                                                                                 \
  X(DriverGetVersion, "cuDriverGetVersion", (int* version))                                                           \
  X(GetErrorName, "cuGetErrorName", (Result result, const char** name))                                               \
  X(DeviceGetCount, "cuDeviceGetCount", (int* count))                                                                 \
  X(DeviceGet, "cuDeviceGet", (DeviceHandle * device, int ordinal))                                                   \
  X(DeviceGetName, "cuDeviceGetName", (char* name, int length, DeviceHandle device))                                  \
  X(DeviceGetUuid, "cuDeviceGetUuid_v2", (DeviceUuid * uuid, DeviceHandle device))                                    \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, DeviceHandle device))                                     \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, DeviceAttribute attribute, DeviceHandle device))         \
  X(DevicePrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2", (DeviceHandle device, unsigned flags))                 \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (ContextHandle * context, DeviceHandle device))               \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (DeviceHandle device))                                   \
  X(CtxSetCurrent, "cuCtxSetCurrent", (ContextHandle context))                                                        \
  X(MemAlloc, "cuMemAlloc_v2", (DevicePointer * pointer, size_t bytes))                                               \
  X(MemFree, "cuMemFree_v2", (DevicePointer pointer))                                                                 \
  X(MemHostAlloc, "cuMemHostAlloc", (void** pointer, size_t bytes, unsigned flags))                                   \
  X(MemFreeHost, "cuMemFreeHost", (void* pointer))                                                                    \
  X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (DevicePointer * device, void* host, unsigned flags))    \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (DevicePointer to, const void* from, size_t bytes, StreamHandle stream)) \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void* to, DevicePointer from, size_t bytes, StreamHandle stream))       \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                                          \
    (DevicePointer to, DevicePointer from, size_t bytes, StreamHandle stream))                                        \
  X(MemsetD8Async, "cuMemsetD8Async", (DevicePointer to, unsigned char value, size_t bytes, StreamHandle stream))     \
  X(ModuleLoadDataEx, "cuModuleLoadDataEx",                                                                           \
    (ModuleHandle * module, const void* image, unsigned count, JitOption* options, void** values))                    \
  X(ModuleUnload, "cuModuleUnload", (ModuleHandle module))                                                            \
  X(ModuleGetFunction, "cuModuleGetFunction", (FunctionHandle * function, ModuleHandle module, const char* name))     \
  X(FuncGetAttribute, "cuFuncGetAttribute", (int* value, FunctionAttribute attribute, FunctionHandle function))       \
  X(FuncSetAttribute, "cuFuncSetAttribute", (FunctionHandle function, FunctionAttribute attribute, int value))        \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                         \
    (int* blocks, FunctionHandle function, int block_size, size_t dynamic_shared_bytes))                              \
  X(OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                                                       \
    (int* clusters, FunctionHandle function, const LaunchConfig* config))                                             \
  X(LaunchKernelEx, "cuLaunchKernelEx",                                                                               \
    (const LaunchConfig* config, FunctionHandle function, void** parameters, void** extra))                           \
  X(StreamCreate, "cuStreamCreate", (StreamHandle * stream, unsigned flags))                                          \
  X(StreamDestroy, "cuStreamDestroy_v2", (StreamHandle stream))                                                       \
  X(StreamSynchronize, "cuStreamSynchronize", (StreamHandle stream))                                                  \
  X(StreamWaitValue32, "cuStreamWaitValue32_v2",                                                                      \
    (StreamHandle stream, DevicePointer address, uint32_t value, unsigned flags))                                     \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2", (StreamHandle stream, CaptureMode mode))                           \
  X(StreamEndCapture, "cuStreamEndCapture", (StreamHandle stream, GraphHandle * graph))                               \
  X(EventCreate, "cuEventCreate", (EventHandle * event, unsigned flags))                                              \
  X(EventDestroy, "cuEventDestroy_v2", (EventHandle event))                                                           \
  X(EventRecord, "cuEventRecord", (EventHandle event, StreamHandle stream))                                           \
  X(EventRecordWithFlags, "cuEventRecordWithFlags", (EventHandle event, StreamHandle stream, unsigned flags))         \
  X(EventElapsedTime, "cuEventElapsedTime", (float* milliseconds, EventHandle start, EventHandle end))                \
  X(GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags",                                                         \
    (GraphExecHandle * executable, GraphHandle graph, unsigned long long flags))                                      \
  X(GraphUpload, "cuGraphUpload", (GraphExecHandle executable, StreamHandle stream))                                  \
  X(GraphLaunch, "cuGraphLaunch", (GraphExecHandle executable, StreamHandle stream))                                  \
  X(GraphExecDestroy, "cuGraphExecDestroy", (GraphExecHandle executable))                                             \
  X(GraphDestroy, "cuGraphDestroy", (GraphHandle graph))

class DriverApi {
 public:
  // Opens libcuda.so.1 and finds every function; initializes nothing. Unavailable with the reason.
  static absl::StatusOr<std::shared_ptr<const DriverApi>> Load();

  // The newest CUDA version that the driver supports: 13000 for 13.0.
  absl::StatusOr<int> Version() const;

  // "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" under the code that fits: Aborted for a fault of running code (the context
  // is then of no more use), ResourceExhausted without memory, InvalidArgument for code that is not for this device,
  // otherwise Internal.
  absl::Status Error(const char* call, Result result) const;

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a parameter list
#define ATTUNE_DECLARE(member, symbol, parameters) Result(*member) parameters = nullptr;
  ATTUNE_CUDA_FUNCTIONS(ATTUNE_DECLARE)
#undef ATTUNE_DECLARE
  // Since CUDA 12.4; null before.
  Result (*FuncGetParamInfo)(FunctionHandle function, size_t index, size_t* offset, size_t* bytes) = nullptr;
  // Since CUDA 12.0; null before. The address is a pointer in the driver's declaration.
  Result (*TensorMapEncodeTiled)(EncodedTensorMap* map, TensorMapDataType type, uint32_t rank, DevicePointer address,
                                 const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                                 const uint32_t* steps, TensorMapInterleave interleave, TensorMapSwizzle swizzle,
                                 TensorMapL2Promotion promotion, TensorMapOutOfBounds fill) = nullptr;

 private:
  explicit DriverApi(DynamicLibrary library) : library_(std::move(library)) {}
  DynamicLibrary library_;
};

// Calls a driver function and returns its error from the enclosing function.
#define ATTUNE_CUDA_CALL(api, Function, ...)                                                                       \
  if (const ::attune::device::cuda::Result attune_result = (api).Function(__VA_ARGS__); attune_result != kSuccess) \
  return (api).Error("cu" #Function, attune_result)

}  // namespace attune::device::cuda

#endif  // ATTUNE_SERVER_DEVICE_CUDA_DRIVER_API_H_
