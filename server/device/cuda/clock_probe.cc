#include "server/device/cuda/clock_probe.h"

#include <cstdint>

#include "absl/status/status.h"

namespace attune::device::cuda {
namespace {

// %globaltimer counts nanoseconds in steps of up to a microsecond or so (PTX ISA, "Special Registers: %globaltimer"):
// so the probe starts at a step, and ends at one at least 10 us later.
constexpr char kProbe[] = R"(
.version 6.4
.target sm_50
.address_size 64
.visible .entry attune_clock_probe(.param .u64 counts)
{
  .reg .pred %p;
  .reg .b64 %out, %t<4>, %c<3>;
  ld.param.u64 %out, [counts];
  mov.u64 %t0, %globaltimer;
WAIT_FOR_STEP:
  mov.u64 %t1, %globaltimer;
  setp.eq.u64 %p, %t1, %t0;
  @%p bra WAIT_FOR_STEP;
  mov.u64 %c0, %clock64;
COUNT:
  mov.u64 %t2, %globaltimer;
  sub.u64 %t3, %t2, %t1;
  setp.lt.u64 %p, %t3, 10000;
  @%p bra COUNT;
  mov.u64 %c1, %clock64;
  sub.u64 %c2, %c1, %c0;
  st.global.u64 [%out], %c2;
  st.global.u64 [%out+8], %t3;
  ret;
}
)";

}  // namespace

absl::StatusOr<std::unique_ptr<ClockProbe>> ClockProbe::Create(const DriverApi& api, StreamHandle stream) {
  std::unique_ptr<ClockProbe> probe(new ClockProbe(api, stream));
  ModuleHandle module = nullptr;
  ATTUNE_CUDA_CALL(api, ModuleLoadDataEx, &module, kProbe, 0, nullptr, nullptr);
  probe->module_ = LoadedModule(api, module);
  ATTUNE_CUDA_CALL(api, ModuleGetFunction, &probe->function_, module, "attune_clock_probe");
  void* counts = nullptr;
  ATTUNE_CUDA_CALL(api, MemHostAlloc, &counts, 2 * sizeof(uint64_t), kHostAllocDeviceMapped);
  probe->counts_ = HostMemory(api, counts);
  ATTUNE_CUDA_CALL(api, MemHostGetDevicePointer, &probe->counts_address_, counts, 0);
  return probe;
}

absl::StatusOr<int> ClockProbe::Read() {
  void* parameters[] = {&counts_address_};
  LaunchConfig config;
  config.stream = stream_;
  ATTUNE_CUDA_CALL(api_, LaunchKernelEx, &config, function_, parameters, nullptr);
  ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
  const auto* counts = static_cast<const uint64_t*>(counts_.get());
  if (counts[1] == 0) return absl::InternalError("the global timer stands still");
  return static_cast<int>(1000 * counts[0] / counts[1]);
}

}  // namespace attune::device::cuda
