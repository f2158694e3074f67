#include "server/device/cuda/launch_check.h"

#include <cstdint>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"

namespace attune::device::cuda {
namespace {

// Of every compute capability since 3.0 (CUDA C++ Programming Guide, table of technical specifications).
constexpr int64_t kMaxGrid[3] = {std::numeric_limits<int32_t>::max(), 65535, 65535};
constexpr int64_t kMaxBlock[3] = {1024, 1024, 64};
// Of compute capability 9.0; kernels must opt in above the portable size ("Thread Block Clusters").
constexpr int64_t kMaxCluster = 16;
constexpr int64_t kPortableCluster = 8;
constexpr int64_t kHopper = 90;

int64_t Volume(const v1::Dim3& dim3) { return dim3.x() * dim3.y() * dim3.z(); }

int64_t Threads(const v1::KernelLaunch& launch) { return Volume(launch.block()); }

absl::Status CheckDim3(const v1::KernelLaunch& launch, const char* what, const v1::Dim3& dim3,
                       const int64_t (&most)[3]) {
  const int64_t values[3] = {dim3.x(), dim3.y(), dim3.z()};
  for (int i = 0; i < 3; ++i) {
    const std::string field =
        absl::StrCat("kernel ", launch.entry(), ": ", what, ".", std::string(1, "xyz"[i]), " is ", values[i], "; ");
    if (values[i] < 1) return absl::InvalidArgumentError(absl::StrCat(field, "it must be at least 1"));
    if (values[i] > most[i])
      return absl::FailedPreconditionError(absl::StrCat(field, "at most ", most[i], " is possible"));
  }
  return absl::OkStatus();
}

absl::Status CheckCluster(const v1::KernelLaunch& launch) {
  constexpr int64_t kMost[3] = {kMaxCluster, kMaxCluster, kMaxCluster};
  if (absl::Status status = CheckDim3(launch, "cluster", launch.cluster(), kMost); !status.ok()) return status;
  const v1::Dim3& grid = launch.grid();
  const v1::Dim3& cluster = launch.cluster();
  if (grid.x() % cluster.x() != 0 || grid.y() % cluster.y() != 0 || grid.z() % cluster.z() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.entry(), ": cluster is ", cluster.x(), "x",
                                                   cluster.y(), "x", cluster.z(), "; it must divide the grid, ",
                                                   grid.x(), "x", grid.y(), "x", grid.z()));
  }
  if (Volume(cluster) > kMaxCluster) {
    return absl::FailedPreconditionError(absl::StrCat("kernel ", launch.entry(), ": a cluster of ", Volume(cluster),
                                                      " blocks; at most ", kMaxCluster, " are possible"));
  }
  return absl::OkStatus();
}

// What the device must be for the launch's cluster and its overlap.
absl::Status CheckCapability(const v1::Device& limits, const v1::KernelLaunch& launch) {
  const char* what = launch.has_cluster() ? "cluster" : launch.overlaps_previous() ? "overlaps_previous" : nullptr;
  if (what == nullptr || limits.compute_capability() >= kHopper) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("kernel ", launch.entry(), ": ", what,
                                                    " is given; the device's compute capability is ",
                                                    limits.compute_capability(), ", and it needs ", kHopper));
}

size_t SizeOf(const v1::KernelArg& arg) {
  switch (arg.value_case()) {
    case v1::KernelArg::kI32:
    case v1::KernelArg::kF32:
      return 4;
    case v1::KernelArg::kTensorMap:
      return sizeof(EncodedTensorMap);
    default:
      return 8;
  }
}

absl::Status MakeClusterResident(const DriverApi& api, FunctionHandle function, const v1::KernelLaunch& launch,
                                 const LaunchConfig& config) {
  if (Volume(launch.cluster()) > kPortableCluster) {
    ATTUNE_CUDA_CALL(api, FuncSetAttribute, function, kFunctionNonPortableClusterSizeAllowed, 1);
  }
  int resident = 0;
  ATTUNE_CUDA_CALL(api, OccupancyMaxActiveClusters, &resident, function, &config);
  if (resident > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("kernel ", launch.entry(), ": not even one cluster of ",
                                                    Volume(launch.cluster()), " blocks fits the device"));
}

}  // namespace

absl::Status CheckDimensions(const v1::Device& limits, const v1::KernelLaunch& launch) {
  if (absl::Status status = CheckDim3(launch, "grid", launch.grid(), kMaxGrid); !status.ok()) return status;
  if (absl::Status status = CheckDim3(launch, "block", launch.block(), kMaxBlock); !status.ok()) return status;
  if (Threads(launch) > limits.max_threads_per_block()) {
    return absl::FailedPreconditionError(absl::StrCat("kernel ", launch.entry(), ": ", Threads(launch),
                                                      " threads a block; the device has at most ",
                                                      limits.max_threads_per_block()));
  }
  if (launch.has_cluster()) {
    if (absl::Status status = CheckCluster(launch); !status.ok()) return status;
  }
  return CheckCapability(limits, launch);
}

absl::Status MakeResident(const DriverApi& api, const v1::Device& limits, FunctionHandle function,
                          const v1::KernelLaunch& launch, const LaunchConfig& config) {
  int max_threads = 0, static_shared = 0, dynamic_allowed = 0;
  ATTUNE_CUDA_CALL(api, FuncGetAttribute, &max_threads, kFunctionMaxThreadsPerBlock, function);
  ATTUNE_CUDA_CALL(api, FuncGetAttribute, &static_shared, kFunctionSharedSizeBytes, function);
  ATTUNE_CUDA_CALL(api, FuncGetAttribute, &dynamic_allowed, kFunctionMaxDynamicSharedSizeBytes, function);
  if (Threads(launch) > max_threads) {
    return absl::FailedPreconditionError(absl::StrCat("kernel ", launch.entry(), ": ", Threads(launch),
                                                      " threads a block; as compiled it has registers for ",
                                                      max_threads));
  }
  const int64_t dynamic = launch.dynamic_shared_bytes();
  if (dynamic < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", launch.entry(), ": dynamic_shared_bytes is ", dynamic, "; it must be at least 0"));
  }
  if (dynamic > limits.shared_bytes_per_block() - static_shared) {
    return absl::FailedPreconditionError(absl::StrCat("kernel ", launch.entry(), ": ", static_shared + dynamic,
                                                      " bytes of shared memory a block; the device has ",
                                                      limits.shared_bytes_per_block()));
  }
  // Only ever raised: other recipes may be bound to the same function.
  if (dynamic > dynamic_allowed) {
    ATTUNE_CUDA_CALL(api, FuncSetAttribute, function, kFunctionMaxDynamicSharedSizeBytes, static_cast<int>(dynamic));
  }
  int resident = 0;
  ATTUNE_CUDA_CALL(api, OccupancyMaxActiveBlocksPerMultiprocessor, &resident, function,
                   static_cast<int>(Threads(launch)), static_cast<size_t>(dynamic));
  if (resident == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel ", launch.entry(), ": not even one block fits a multiprocessor with ", Threads(launch),
                     " threads and ", static_shared + dynamic, " bytes of shared memory"));
  }
  return launch.has_cluster() ? MakeClusterResident(api, function, launch, config) : absl::OkStatus();
}

absl::Status CheckParameters(const DriverApi& api, FunctionHandle function, const v1::KernelLaunch& launch) {
  if (api.FuncGetParamInfo == nullptr) return absl::OkStatus();
  size_t count = 0, offset = 0, bytes = 0;
  for (; api.FuncGetParamInfo(function, count, &offset, &bytes) == kSuccess; ++count) {
    if (count >= static_cast<size_t>(launch.args_size())) continue;
    const size_t given = SizeOf(launch.args(static_cast<int>(count)));
    if (given != bytes) {
      return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.entry(), ": argument ", count, " has ", given,
                                                     " bytes; the kernel's parameter has ", bytes));
    }
  }
  if (count != static_cast<size_t>(launch.args_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", launch.entry(), ": ", launch.args_size(), " arguments; the kernel takes ", count));
  }
  return absl::OkStatus();
}

}  // namespace attune::device::cuda
