#include <algorithm>

#include "server/space/space.h"

namespace attune::space {
namespace {

// CUDA's allocation granularities, compute capability 8.0 and later (CUDA Occupancy Calculator, "GPU Data").
constexpr int64_t kRegistersPerWarpUnit = 256;
constexpr int64_t kWarpsPerRegisterFile = 4;  // an SM has four, each serves its own warps
constexpr int64_t kSharedUnit = 128;

int64_t AlignUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t ResidentCtas(int64_t warps, const v1::Resources& resources, const v1::Device& device) {
  int64_t resident = device.max_blocks_per_sm();
  resident = std::min(resident, device.max_warps_per_sm() / warps);
  if (resources.registers() > 0) {
    const int64_t a_warp = AlignUp(resources.registers() * device.warp_size(), kRegistersPerWarpUnit);
    const int64_t by_file = device.registers_per_sm() / kWarpsPerRegisterFile / a_warp;
    resident = std::min(resident, by_file * kWarpsPerRegisterFile / warps);
  }
  const int64_t shared = AlignUp(resources.shared_bytes() + device.reserved_shared_bytes_per_block(), kSharedUnit);
  if (resources.shared_bytes() > device.shared_bytes_per_block()) return 0;
  if (shared > 0) resident = std::min(resident, device.shared_bytes_per_sm() / shared);
  return resident;
}

}  // namespace

v1::Geometry GeometryOf(const v1::LaunchRecipe& recipe, const v1::Resources& resources, const v1::Device& device) {
  v1::Geometry geometry;
  const v1::KernelLaunch& main = recipe.launches(recipe.main_launch());
  const int64_t threads = main.block().x() * main.block().y() * main.block().z();
  geometry.set_ctas(main.grid().x() * main.grid().y() * main.grid().z());
  geometry.set_threads_per_cta(threads);
  geometry.set_sm_count(device.compute_units());
  if (device.backend() != v1::BACKEND_CUDA) {
    geometry.set_ctas_per_sm(1);
    geometry.set_occupancy(1);
  } else {
    const int64_t warps = std::max<int64_t>(1, (threads + device.warp_size() - 1) / device.warp_size());
    geometry.set_ctas_per_sm(ResidentCtas(warps, resources, device));
    geometry.set_occupancy(static_cast<double>(geometry.ctas_per_sm() * warps) /
                           static_cast<double>(device.max_warps_per_sm()));
  }
  const int64_t at_once = geometry.ctas_per_sm() * geometry.sm_count();
  if (at_once > 0) geometry.set_waves(static_cast<double>(geometry.ctas()) / static_cast<double>(at_once));
  return geometry;
}

}  // namespace attune::space
