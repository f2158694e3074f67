// Compiles a source of this repository and runs it on the first OpenCL device, its buffers between red zones.
#ifndef ATTUNE_TESTS_OPENCL_DEVICE_TESTING_H_
#define ATTUNE_TESTS_OPENCL_DEVICE_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/device.h"
#include "tests/opencl/attention_testing.h"

namespace attune::testing {

// The first OpenCL device with its compiler; null when this host has none.
struct Host {
  std::unique_ptr<device::Backend> backend;
  std::unique_ptr<device::Device> device;
  std::unique_ptr<device::Compiler> compiler;
};
std::unique_ptr<Host> OpenHost();

// `paths` below the repository's root; the first is compiled. Options as given.
absl::StatusOr<worker::v1::CompileResponse> Compile(Host& host, const std::vector<std::string>& paths,
                                                    const std::vector<std::string>& options,
                                                    const std::vector<std::string>& entries);

// What a run left in memory.
struct Outputs {
  std::vector<uint16_t> o;   // o_bytes / 2
  std::vector<float> o_f32;  // the same bytes as fp32
  std::vector<float> lse;
  bool red_zones_intact = false;
  bool inputs_unchanged = false;
};

struct RunOptions {
  int o_element_bytes = 2;
  int runs = 1;
  bool fresh_output = true;  // O is filled before every run, not only before the first
  std::byte output{0xff};    // with what: NaN
};

// Loads, binds and runs. Outputs start out as NaNs, and red zones hold NaNs, so that what is read outside shows.
absl::StatusOr<Outputs> RunAttention(device::Device& device, const std::string& artifact,
                                     const v1::LaunchRecipe& recipe, const Problem& problem, const Tensors& tensors,
                                     const RunOptions& options = {});

}  // namespace attune::testing

#endif  // ATTUNE_TESTS_OPENCL_DEVICE_TESTING_H_
