#include "server/device/cuda/testing/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "server/device/cuda/testing/fake_kernels.h"

namespace attune::device::cuda::testing {
namespace {

constexpr auto kInvalidContext = static_cast<Result>(201);
constexpr auto kInvalidHandle = static_cast<Result>(400);
constexpr auto kCaptureUnsupported = static_cast<Result>(900);
constexpr int kRelaxed = 2;
constexpr size_t kAlignment = 256;
constexpr uintptr_t kFirstContext = 0x1000;

struct Function {
  std::string entry;
  std::vector<size_t> sizes;
  std::map<FunctionAttribute, int> attributes = {{kFunctionMaxThreadsPerBlock, 1024}};
};
struct Module {
  std::map<std::string, Function> functions;
};

// A launch or, with an empty entry, a memset.
struct Operation {
  Launched launched = {};
  DevicePointer address = 0;
  size_t bytes = 0;
  unsigned char value = 0;
};
struct UserObject {
  void* value;
  void (*destroy)(void*);
};
// What a graph and the executables made from it share.
struct GraphBody {
  ~GraphBody() {
    for (const UserObject& object : objects) object.destroy(object.value);
  }
  std::vector<Operation> operations;
  std::vector<UserObject> objects;
};
struct Graph {
  std::shared_ptr<GraphBody> body = std::make_shared<GraphBody>();
};
struct Capture {
  uint64_t id;
  Graph* graph;
};
struct Failure {
  Result result;
  int after;
};

struct State {
  std::mutex mutex;
  std::vector<Launched> launched;
  std::map<std::string, int> calls;
  std::map<std::string, Failure> failures;
  std::map<DevicePointer, size_t> allocations;
  std::vector<std::unique_ptr<Module>> modules;
  std::map<StreamHandle, Capture> captures;
  uint64_t next_capture = 1;
  int device_count = 1;
  bool maps_begin_with_address = true;
};
State& Fake() {
  static State state;
  return state;
}
thread_local std::vector<ContextHandle> contexts;
thread_local int capture_mode = 0;

// Counts the call; what it was told to fail with.
Result Enter(const char* symbol) {
  const std::lock_guard lock(Fake().mutex);
  ++Fake().calls[symbol];
  const auto it = Fake().failures.find(symbol);
  if (it == Fake().failures.end() || it->second.after-- > 0) return kSuccess;
  const Result result = it->second.result;
  Fake().failures.erase(it);
  return result;
}
// Of a function that may not be called in this thread while any stream is captured.
Result EnterOutsideCapture(const char* symbol) {
  if (const Result result = Enter(symbol); result != kSuccess) return result;
  const std::lock_guard lock(Fake().mutex);
  return Fake().captures.empty() || capture_mode == kRelaxed ? kSuccess : kCaptureUnsupported;
}
#define ATTUNE_ENTER(how, symbol) \
  if (const Result entered = how(symbol); entered != kSuccess) return entered

void Run(const Operation& operation) {
  if (operation.launched.entry.empty()) {
    std::memset(reinterpret_cast<void*>(operation.address), operation.value, operation.bytes);
    return;
  }
  RunFakeKernel(operation.launched.entry, operation.launched.parameters);
  Fake().launched.push_back(operation.launched);
}

// Runs it, or makes it a node of the graph that `stream` is captured into.
void Enqueue(StreamHandle stream, Operation operation) {
  const std::lock_guard lock(Fake().mutex);
  const auto it = Fake().captures.find(stream);
  if (it == Fake().captures.end()) return Run(operation);
  operation.launched.stream = nullptr;
  it->second.graph->body->operations.push_back(std::move(operation));
}

int AttributeOf(DeviceAttribute attribute) {
  switch (attribute) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kWarpSize:
      return 32;
    case kMultiprocessorCount:
      return 132;
    case kMaxThreadsPerMultiprocessor:
      return 2048;
    case kComputeCapabilityMajor:
      return 9;
    case kMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case kMaxRegistersPerMultiprocessor:
      return 65536;
    case kMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case kMaxBlocksPerMultiprocessor:
      return 32;
    case kReservedSharedMemoryPerBlock:
      return 1024;
    case kL2CacheSize:
      return 50 << 20;
    default:
      return 0;
  }
}

void Encode(EncodedTensorMap* map, DevicePointer address, uint32_t box) {
  std::fill(std::begin(map->opaque), std::end(map->opaque), ~uint64_t{0});
  const bool first = Fake().maps_begin_with_address;
  map->opaque[first ? 0 : 2] = address;
  std::memcpy(&map->opaque[1], &box, sizeof box);
}

}  // namespace

void Reset() {
  const std::lock_guard lock(Fake().mutex);
  Fake().launched.clear();
  Fake().calls.clear();
  Fake().failures.clear();
  for (const auto& [address, bytes] : Fake().allocations) std::free(reinterpret_cast<void*>(address));
  Fake().allocations.clear();
  Fake().modules.clear();
  Fake().captures.clear();
  Fake().device_count = 1;
  Fake().maps_begin_with_address = true;
}
std::vector<Launched> TakeLaunched() {
  const std::lock_guard lock(Fake().mutex);
  return std::exchange(Fake().launched, {});
}
int Calls(const std::string& symbol) {
  const std::lock_guard lock(Fake().mutex);
  return Fake().calls[symbol];
}
void Fail(const std::string& symbol, Result result, int after) {
  const std::lock_guard lock(Fake().mutex);
  Fake().failures[symbol] = {result, after};
}
void SetDeviceCount(int count) { Fake().device_count = count; }
void SetMapsBeginWithAddress(bool begin) { Fake().maps_begin_with_address = begin; }
std::vector<Allocation> Allocations() {
  const std::lock_guard lock(Fake().mutex);
  std::vector<Allocation> found;
  for (const auto& [address, bytes] : Fake().allocations) found.push_back({address, bytes});
  return found;
}
int64_t FunctionAttributeOf(const std::string& entry, FunctionAttribute attribute) {
  const std::lock_guard lock(Fake().mutex);
  for (const auto& module : Fake().modules) {
    if (module->functions.contains(entry)) return module->functions[entry].attributes[attribute];
  }
  return -1;
}
std::string EncodedAs(DevicePointer address, uint32_t box) {
  EncodedTensorMap map;
  Encode(&map, address, box);
  return std::string(reinterpret_cast<const char*>(&map), sizeof map);
}

extern "C" {

Result cuInit(unsigned) { return Enter("cuInit"); }
Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  *name = result == kOutOfMemory            ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kLaunchOutOfResources ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
          : result == kIllegalAddress       ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : result == kInvalidContext       ? "CUDA_ERROR_INVALID_CONTEXT"
                                            : "CUDA_ERROR_OF_A_TEST";
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = Fake().device_count;
  return Enter("cuDeviceGetCount");
}
Result cuDeviceGet(DeviceHandle* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
Result cuDeviceGetName(char* name, int length, DeviceHandle) {
  std::strncpy(name, kFakeModel, static_cast<size_t>(length));
  return kSuccess;
}
Result cuDeviceGetUuid_v2(DeviceUuid* uuid, DeviceHandle device) {
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[15] = static_cast<char>(device);
  return kSuccess;
}
Result cuDeviceTotalMem_v2(size_t* bytes, DeviceHandle) {
  *bytes = size_t{1} << 37;
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceHandle) {
  *value = AttributeOf(attribute);
  return kSuccess;
}

Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceHandle device) {
  *context = reinterpret_cast<ContextHandle>(kFirstContext + static_cast<uintptr_t>(device));
  return Enter("cuDevicePrimaryCtxRetain");
}
Result cuDevicePrimaryCtxRelease_v2(DeviceHandle) { return kSuccess; }
Result cuCtxGetCurrent(ContextHandle* context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
Result cuCtxSetCurrent(ContextHandle context) {
  if (!contexts.empty()) contexts.pop_back();
  if (context != nullptr) contexts.push_back(context);
  return kSuccess;
}
Result cuCtxPushCurrent_v2(ContextHandle context) {
  ATTUNE_ENTER(Enter, "cuCtxPushCurrent_v2");
  contexts.push_back(context);
  return kSuccess;
}
Result cuCtxPopCurrent_v2(ContextHandle* context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  ATTUNE_ENTER(EnterOutsideCapture, "cuMemAlloc_v2");
  if (contexts.empty()) return kInvalidContext;
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memset(memory, 0xa5, bytes);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  const std::lock_guard lock(Fake().mutex);
  Fake().allocations[*pointer] = bytes;
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer pointer) {
  ATTUNE_ENTER(EnterOutsideCapture, "cuMemFree_v2");
  const std::lock_guard lock(Fake().mutex);
  if (Fake().allocations.erase(pointer) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}
Result cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  ATTUNE_ENTER(Enter, "cuMemHostAlloc");
  *pointer = std::malloc(bytes);
  return kSuccess;
}
Result cuMemFreeHost(void* pointer) {
  std::free(pointer);
  return kSuccess;
}
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, StreamHandle) {
  ATTUNE_ENTER(Enter, "cuMemcpyHtoDAsync_v2");
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, StreamHandle) {
  ATTUNE_ENTER(Enter, "cuMemcpyDtoHAsync_v2");
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, StreamHandle stream) {
  ATTUNE_ENTER(Enter, "cuMemsetD8Async");
  Enqueue(stream, {.address = to, .bytes = bytes, .value = value});
  return kSuccess;
}

Result cuModuleLoadDataEx(ModuleHandle* handle, const void* image, unsigned, JitOption*, void**) {
  ATTUNE_ENTER(EnterOutsideCapture, "cuModuleLoadDataEx");
  if (contexts.empty()) return kInvalidContext;
  const std::string text = static_cast<const char*>(image);
  if (!text.starts_with(kFakeModule)) return kInvalidImage;
  auto module = std::make_unique<Module>();
  std::istringstream lines(text.substr(sizeof kFakeModule - 1));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Function function;
    words >> function.entry;
    for (size_t size = 0; words >> size;) function.sizes.push_back(size);
    module->functions[function.entry] = function;
  }
  const std::lock_guard lock(Fake().mutex);
  *handle = Fake().modules.emplace_back(std::move(module)).get();
  return kSuccess;
}
Result cuModuleUnload(ModuleHandle) { return Enter("cuModuleUnload"); }
Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  ATTUNE_ENTER(Enter, "cuModuleGetFunction");
  auto& functions = static_cast<Module*>(module)->functions;
  const auto it = functions.find(name);
  if (it == functions.end()) return kNotFound;
  *function = &it->second;
  return kSuccess;
}
Result cuFuncLoad(FunctionHandle) { return EnterOutsideCapture("cuFuncLoad"); }
Result cuFuncGetAttribute(int* value, FunctionAttribute attribute, FunctionHandle function) {
  ATTUNE_ENTER(Enter, "cuFuncGetAttribute");
  *value = static_cast<Function*>(function)->attributes[attribute];
  return kSuccess;
}
Result cuFuncSetAttribute(FunctionHandle function, FunctionAttribute attribute, int value) {
  ATTUNE_ENTER(Enter, "cuFuncSetAttribute");
  static_cast<Function*>(function)->attributes[attribute] = value;
  return kSuccess;
}
Result cuFuncGetParamInfo(FunctionHandle function, size_t index, size_t* offset, size_t* bytes) {
  const std::vector<size_t>& sizes = static_cast<Function*>(function)->sizes;
  if (index >= sizes.size()) return kInvalidValue;
  *offset = 0;
  *bytes = sizes[index];
  return kSuccess;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, FunctionHandle, int, size_t) {
  *blocks = 1;
  return Enter("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
Result cuOccupancyMaxActiveClusters(int* clusters, FunctionHandle, const LaunchConfig*) {
  *clusters = 1;
  return kSuccess;
}

Result cuTensorMapEncodeTiled(EncodedTensorMap* map, TensorMapDataType, uint32_t, DevicePointer address,
                              const uint64_t*, const uint64_t*, const uint32_t* box, const uint32_t*,
                              TensorMapInterleave, TensorMapSwizzle, TensorMapL2Promotion, TensorMapOutOfBounds) {
  ATTUNE_ENTER(Enter, "cuTensorMapEncodeTiled");
  if (address % 16 != 0) return kInvalidValue;
  Encode(map, address, *box);
  return kSuccess;
}
Result cuTensorMapReplaceAddress(EncodedTensorMap* map, DevicePointer address) {
  ATTUNE_ENTER(Enter, "cuTensorMapReplaceAddress");
  if (address % 16 != 0 || reinterpret_cast<uintptr_t>(map) % 64 != 0) return kInvalidValue;
  map->opaque[Fake().maps_begin_with_address ? 0 : 2] = address;
  return kSuccess;
}

Result cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle handle, void** parameters, void**) {
  ATTUNE_ENTER(Enter, "cuLaunchKernelEx");
  if (contexts.empty()) return kInvalidContext;
  const auto& function = *static_cast<Function*>(handle);
  Launched launched = {
      .entry = function.entry,
      .device = static_cast<DeviceHandle>(reinterpret_cast<uintptr_t>(contexts.back()) - kFirstContext),
      .dynamic_shared_bytes = config->dynamic_shared_bytes,
      .stream = config->stream};
  std::copy(std::begin(config->grid), std::end(config->grid), launched.grid);
  std::copy(std::begin(config->block), std::end(config->block), launched.block);
  for (size_t i = 0; i < function.sizes.size(); ++i) {
    launched.parameters.emplace_back(static_cast<const char*>(parameters[i]), function.sizes[i]);
  }
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kLaunchClusterDimension) {
      launched.has_cluster = true;
      std::copy(std::begin(attribute.value.cluster), std::end(attribute.value.cluster), launched.cluster);
    }
    if (attribute.id == kLaunchProgrammaticStreamSerialization) {
      launched.overlaps_previous = attribute.value.programmatic_stream_serialization != 0;
    }
  }
  Enqueue(config->stream, {.launched = std::move(launched)});
  return kSuccess;
}

Result cuStreamCreate(StreamHandle* stream, unsigned) {
  ATTUNE_ENTER(Enter, "cuStreamCreate");
  *stream = new char;
  return kSuccess;
}
Result cuStreamDestroy_v2(StreamHandle stream) {
  delete static_cast<char*>(stream);
  return kSuccess;
}
Result cuStreamSynchronize(StreamHandle) { return EnterOutsideCapture("cuStreamSynchronize"); }
Result cuStreamIsCapturing(StreamHandle stream, int* status) {
  ATTUNE_ENTER(Enter, "cuStreamIsCapturing");
  const std::lock_guard lock(Fake().mutex);
  *status = Fake().captures.contains(stream) ? 1 : 0;
  return kSuccess;
}
Result cuStreamGetCaptureInfo_v2(StreamHandle stream, int* status, uint64_t* id, GraphHandle* graph, const void**,
                                 size_t*) {
  ATTUNE_ENTER(Enter, "cuStreamGetCaptureInfo_v2");
  const std::lock_guard lock(Fake().mutex);
  const auto it = Fake().captures.find(stream);
  *status = it == Fake().captures.end() ? 0 : 1;
  if (*status == 0) return kSuccess;
  *id = it->second.id;
  *graph = it->second.graph;
  return kSuccess;
}
Result cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}
Result cuStreamBeginCapture_v2(StreamHandle stream, CaptureMode) {
  ATTUNE_ENTER(Enter, "cuStreamBeginCapture_v2");
  const std::lock_guard lock(Fake().mutex);
  if (Fake().captures.contains(stream)) return kInvalidHandle;
  Fake().captures[stream] = {Fake().next_capture++, std::make_unique<Graph>().release()};
  return kSuccess;
}
Result cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  ATTUNE_ENTER(Enter, "cuStreamEndCapture");
  const std::lock_guard lock(Fake().mutex);
  const auto it = Fake().captures.find(stream);
  if (it == Fake().captures.end()) return kInvalidHandle;
  *graph = it->second.graph;
  Fake().captures.erase(it);
  return kSuccess;
}
Result cuUserObjectCreate(void** object, void* value, void (*destroy)(void*), unsigned, unsigned) {
  ATTUNE_ENTER(Enter, "cuUserObjectCreate");
  *object = std::make_unique<UserObject>(UserObject{value, destroy}).release();
  return kSuccess;
}
Result cuGraphRetainUserObject(GraphHandle graph, void* object, unsigned, unsigned) {
  ATTUNE_ENTER(Enter, "cuGraphRetainUserObject");
  const std::unique_ptr<UserObject> owned(static_cast<UserObject*>(object));
  static_cast<Graph*>(graph)->body->objects.push_back(*owned);
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExecHandle* executable, GraphHandle graph, unsigned long long) {
  ATTUNE_ENTER(Enter, "cuGraphInstantiateWithFlags");
  *executable = std::make_unique<Graph>(*static_cast<Graph*>(graph)).release();
  return kSuccess;
}
Result cuGraphUpload(GraphExecHandle, StreamHandle) { return kSuccess; }
Result cuGraphLaunch(GraphExecHandle executable, StreamHandle) {
  ATTUNE_ENTER(Enter, "cuGraphLaunch");
  const std::lock_guard lock(Fake().mutex);
  for (const Operation& operation : static_cast<Graph*>(executable)->body->operations) Run(operation);
  return kSuccess;
}
Result cuGraphExecDestroy(GraphExecHandle executable) {
  delete static_cast<Graph*>(executable);
  return kSuccess;
}
Result cuGraphDestroy(GraphHandle graph) {
  delete static_cast<Graph*>(graph);
  return kSuccess;
}

}  // extern "C"

}  // namespace attune::device::cuda::testing
