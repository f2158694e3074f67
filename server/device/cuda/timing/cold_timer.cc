#include "server/device/cuda/timing/cold_timer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

namespace attune::device::cuda {
namespace {

// Reading this many times L2 leaves nothing else in it.
constexpr size_t kFlushFactor = 2;
constexpr unsigned kThreads = 256;
constexpr unsigned kCtasPerSm = 8;

// Reads 16 bytes a thread and step, past L1 (PTX ISA, "Cache Operators": .cg). The buffer holds zeros, so that nothing
// is ever written; no compiler knows that.
constexpr char kRead[] = R"(
.version 6.4
.target sm_50
.address_size 64
.visible .entry attune_read(.param .u64 buffer, .param .u64 vectors)
{
  .reg .pred %p;
  .reg .b32 %cta, %threads, %thread, %ctas, %v<4>, %any;
  .reg .b64 %at, %step, %i, %own, %count;
  ld.param.u64 %at, [buffer];
  ld.param.u64 %count, [vectors];
  mov.u32 %cta, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %ctas, %nctaid.x;
  cvt.u64.u32 %own, %thread;
  mad.wide.u32 %i, %cta, %threads, %own;
  mul.wide.u32 %step, %ctas, %threads;
  mov.u32 %any, 0;
NEXT:
  setp.ge.u64 %p, %i, %count;
  @%p bra DONE;
  shl.b64 %own, %i, 4;
  add.u64 %own, %at, %own;
  ld.global.cg.v4.u32 {%v0, %v1, %v2, %v3}, [%own];
  or.b32 %v0, %v0, %v1;
  or.b32 %v2, %v2, %v3;
  or.b32 %any, %any, %v0;
  or.b32 %any, %any, %v2;
  add.u64 %i, %i, %step;
  bra NEXT;
DONE:
  setp.ne.u32 %p, %any, 0;
  @%p st.global.u32 [%at], %any;
  ret;
}
)";

// For MeasureResolution: pairs of events, with a little more between them from one to the next.
constexpr int kPairs = 64;
constexpr size_t kBytesMore = 64 << 10;
// cuEventElapsedTime's documented resolution, where the pairs show no step.
constexpr absl::Duration kDocumentedResolution = absl::Nanoseconds(500);
// Elapsed times are float milliseconds: what differs by less is one time.
constexpr double kSameMs = 1e-6;

}  // namespace

ColdTimer::ColdTimer(const DriverApi& api, StreamHandle stream, const v1::Device& info, WorkClock& clock)
    : api_(api),
      stream_(stream),
      bytes_(kFlushFactor * static_cast<size_t>(info.l2_bytes())),
      ctas_(kCtasPerSm * static_cast<unsigned>(std::max<int64_t>(info.compute_units(), 1))),
      clock_(clock) {}

absl::StatusOr<std::unique_ptr<ColdTimer>> ColdTimer::Create(const DriverApi& api, StreamHandle stream,
                                                             const v1::Device& info, WorkClock& clock) {
  std::unique_ptr<ColdTimer> timer(new ColdTimer(api, stream, info, clock));
  absl::StatusOr<std::unique_ptr<StreamGate>> gate = StreamGate::Create(api);
  if (!gate.ok()) return gate.status();
  timer->gate_ = *std::move(gate);
  for (Event* event : {&timer->start_, &timer->stop_}) {
    EventHandle handle = nullptr;
    ATTUNE_CUDA_CALL(api, EventCreate, &handle, kEventDefault);
    *event = Event(api, handle);
  }
  ModuleHandle module = nullptr;
  ATTUNE_CUDA_CALL(api, ModuleLoadDataEx, &module, kRead, 0, nullptr, nullptr);
  timer->module_ = LoadedModule(api, module);
  ATTUNE_CUDA_CALL(api, ModuleGetFunction, &timer->read_, module, "attune_read");
  DevicePointer buffer = 0;
  ATTUNE_CUDA_CALL(api, MemAlloc, &buffer, timer->bytes_);
  timer->buffer_ = Memory(api, buffer);
  ATTUNE_CUDA_CALL(api, MemsetD8Async, buffer, 0, timer->bytes_, stream);
  if (absl::Status status = timer->MeasureResolution(); !status.ok()) return status;
  return timer;
}

absl::Status ColdTimer::Read(size_t bytes) {
  DevicePointer buffer = buffer_.get();
  uint64_t vectors = bytes / 16;
  void* parameters[] = {&buffer, &vectors};
  LaunchConfig config;
  config.grid[0] = ctas_;
  config.block[0] = kThreads;
  config.stream = stream_;
  ATTUNE_CUDA_CALL(api_, LaunchKernelEx, &config, read_, parameters, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<double> ColdTimer::Elapsed() const {
  ATTUNE_CUDA_CALL(api_, StreamSynchronize, stream_);
  float milliseconds = 0;
  ATTUNE_CUDA_CALL(api_, EventElapsedTime, &milliseconds, start_.get(), stop_.get());
  return milliseconds;
}

absl::Status ColdTimer::MeasureResolution() {
  std::set<double> seen;
  for (int i = 0; i < kPairs; ++i) {
    ATTUNE_CUDA_CALL(api_, EventRecord, start_.get(), stream_);
    if (absl::Status status = Read(std::min(bytes_, static_cast<size_t>(i) * kBytesMore)); !status.ok()) return status;
    ATTUNE_CUDA_CALL(api_, EventRecord, stop_.get(), stream_);
    const absl::StatusOr<double> milliseconds = Elapsed();
    if (!milliseconds.ok()) return milliseconds.status();
    seen.insert(*milliseconds);
  }
  double step = 0;
  for (auto at = seen.begin(), next = std::next(at); next != seen.end(); ++at, ++next) {
    const double apart = *next - *at;
    if (apart > kSameMs && (step == 0 || apart < step)) step = apart;
  }
  resolution_ = step > 0 ? std::min(absl::Milliseconds(step), kDocumentedResolution) : kDocumentedResolution;
  return absl::OkStatus();
}

absl::StatusOr<double> ColdTimer::Time(CudaRunnable& runnable) {
  absl::StatusOr<StreamGate::Closed> closed = gate_->Close(stream_);
  if (!closed.ok()) return closed.status();
  if (absl::Status status = Read(bytes_); !status.ok()) return status;
  ATTUNE_CUDA_CALL(api_, EventRecord, start_.get(), stream_);
  if (absl::Status status = runnable.Enqueue(); !status.ok()) return status;
  ATTUNE_CUDA_CALL(api_, EventRecord, stop_.get(), stream_);
  closed->Open();
  const absl::StatusOr<double> milliseconds = Elapsed();
  if (!milliseconds.ok()) return milliseconds.status();
  clock_.Add(absl::Milliseconds(*milliseconds));
  return *milliseconds / 1e3;
}

}  // namespace attune::device::cuda
