// Every 8-bit element, as kernels_src/opencl/elements.h decodes it.
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/verify/float8.h"
#include "tests/opencl/device_testing.h"

namespace attune::testing {
namespace {

// Of all 256.
std::vector<float> Decoded(Host& host, int kv_dtype, int vec) {
  const auto compiled =
      Compile(host, {"tests/opencl/kv_elements.cl", "kernels_src/opencl/elements.h"},
              {"-cl-std=CL1.2", absl::StrCat("-DKV_DTYPE=", kv_dtype), absl::StrCat("-DVEC=", vec)}, {"decode"});
  EXPECT_TRUE(compiled.ok() && compiled->verdict() == v1::VERDICT_OK) << compiled.status() << compiled->log();
  std::vector<uint8_t> elements(256);
  std::iota(elements.begin(), elements.end(), uint8_t{0});
  std::vector<float> values(256);
  device::Device& device = *host.device;
  const auto in = *device.Allocate(elements.size());
  const auto out = *device.Allocate(values.size() * sizeof(float));
  EXPECT_TRUE(device.Upload(*in, 0, absl::MakeConstSpan(reinterpret_cast<std::byte*>(elements.data()), 256)).ok());
  v1::LaunchRecipe recipe;
  v1::KernelLaunch& launch = *recipe.add_launches();
  launch.set_entry("decode");
  launch.mutable_grid()->set_x(256 / vec);
  launch.mutable_block()->set_x(1);
  launch.add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_K);
  launch.add_args()->mutable_buffer()->set_role(v1::BUFFER_ROLE_O);
  device::Bindings bindings;
  bindings.k = {in.get(), 0, 256};
  bindings.o = {out.get(), 0, 256 * sizeof(float)};
  const std::string& artifact = compiled->artifact();
  const auto module =
      *device.Load(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(artifact.data()), artifact.size()));
  const auto runnable = *device.Bind(*module, recipe, bindings);
  EXPECT_TRUE(runnable->Run().ok());
  EXPECT_TRUE(
      device.Download(*out, 0, absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), 256 * sizeof(float))).ok());
  return values;
}

TEST(OpenClKvElements, AreDecodedExactlyWithSubnormalsInfinitiesAndNaN) {
  const std::unique_ptr<Host> host = OpenHost();
  if (host == nullptr) GTEST_SKIP() << "this host has no OpenCL device (PoCL: package pocl-opencl-icd)";
  for (const auto& [kv_dtype, dtype] : {std::pair(1, v1::DTYPE_E4M3), std::pair(2, v1::DTYPE_E5M2)}) {
    for (const int vec : {1, 4, 8, 16}) {
      const std::vector<float> values = Decoded(*host, kv_dtype, vec);
      for (int element = 0; element < 256; ++element) {
        const float expected = verify::Float8ToFloat(dtype, static_cast<uint8_t>(element));
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(values[element])) << kv_dtype << " " << vec << " " << element;
        } else {
          EXPECT_EQ(values[element], expected) << kv_dtype << " " << vec << " " << element;
          EXPECT_EQ(std::signbit(values[element]), std::signbit(expected)) << kv_dtype << " " << vec << " " << element;
        }
      }
    }
  }
}

}  // namespace
}  // namespace attune::testing
