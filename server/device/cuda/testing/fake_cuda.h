// libcuda without a GPU: a shared library with the driver's own name and functions, whose device memory is the host's.
// It writes down what it is told, runs the kernels that it knows, captures graphs and replays them.
//
// A test that links it gets it from DriverApi::Load; any other program when it stands first on LD_LIBRARY_PATH.
//
// Modules are texts: the bytes "\x7f" "ELF fake\n", then for each kernel a line with its name and the bytes of each
// parameter ("combine 8 8 4"). A kernel runs when kernels.h knows its name; any other does nothing.
#ifndef ATTUNE_SERVER_DEVICE_CUDA_TESTING_FAKE_CUDA_H_
#define ATTUNE_SERVER_DEVICE_CUDA_TESTING_FAKE_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/device/cuda/driver_api.h"

namespace attune::device::cuda::testing {

// The UUID of device `ordinal` ends in its number; both devices are this model, of compute capability 9.0.
inline constexpr char kFakeModel[] = "Fake H200";
inline constexpr char kFakeModule[] =
    "\x7f"
    "ELF fake\n";

// One launch; parameters are read when it is launched or captured.
struct Launched {
  std::string entry = {};
  DeviceHandle device = 0;  // of the context
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned dynamic_shared_bytes = 0;
  StreamHandle stream = nullptr;             // null for a graph's
  std::vector<std::string> parameters = {};  // their bytes
  bool has_cluster = false;
  unsigned cluster[3] = {};
  bool overlaps_previous = false;
};

// Forgets all that was written down, every module, graph and allocation, and what was told below.
void Reset();

std::vector<Launched> TakeLaunched();  // and forgets them
// Of an exported name, "cuMemAlloc_v2".
int Calls(const std::string& symbol);
// The call after the next `after` ones of that name returns `result` and does nothing.
void Fail(const std::string& symbol, Result result, int after = 0);
void SetDeviceCount(int count);
// False: the first eight bytes of a tensor map are not its address.
void SetMapsBeginWithAddress(bool begin);

struct Allocation {
  DevicePointer address;
  size_t bytes;
};
std::vector<Allocation> Allocations();  // that are not freed
int64_t FunctionAttributeOf(const std::string& entry, FunctionAttribute attribute);

// What cuTensorMapEncodeTiled makes of a map whose box begins with `box`.
std::string EncodedAs(DevicePointer address, uint32_t box);

}  // namespace attune::device::cuda::testing

#endif  // ATTUNE_SERVER_DEVICE_CUDA_TESTING_FAKE_CUDA_H_
