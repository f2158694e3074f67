#include "server/device/cuda/check/cuda_inspector.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/cuda/runnable.h"

namespace attune::device::cuda {
namespace {

// As many as check_kernels.cu has in Ranges: parameters of a kernel are at most 4 KiB.
constexpr size_t kRanges = 128;
constexpr size_t kTableElements = 1 << 16;
constexpr unsigned kThreads = 256;
// A few waves of any device, over all rows of a grid; each thread takes every so many-th item.
constexpr uint64_t kMostBlocks = 2048;
constexpr uint64_t kLeastBlocksOfARow = 32;
constexpr uint64_t kItemsOfAThread = 4;

struct Range {
  DevicePointer address;
  uint64_t bytes;
};

// check_kernels.cu's Tally and Drawing.
struct DeviceTally {
  uint64_t seen, wrong;
  uint32_t max_error, max_reference;
};
struct DeviceDrawing {
  uint64_t key, row, other, rows, surely;
};
constexpr size_t kTallyWords = sizeof(DeviceTally) / sizeof(uint64_t);

DevicePointer AddressOf(const BufferView& view) {
  return static_cast<const CudaBuffer&>(*view.buffer).address() + view.offset;
}

absl::Status CheckInside(const BufferView& view) {
  if (view.buffer != nullptr && view.offset <= view.buffer->size() && view.size <= view.buffer->size() - view.offset) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat(view.size, " bytes at offset ", view.offset, "; the buffer has ",
                                            view.buffer == nullptr ? 0 : view.buffer->size()));
}

float FloatOf(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

absl::StatusOr<std::string> CompileCheckKernels(Compiler& compiler, const std::string& target) {
  worker::v1::CompileRequest request;
  request.set_target(target);
  worker::v1::SourceFile* source = request.add_sources();
  source->set_path("check_kernels.cu");
  source->set_text(kCheckKernels);
  absl::StatusOr<worker::v1::CompileResponse> response = compiler.Compile(request);
  if (!response.ok()) return response.status();
  if (response->verdict() != v1::VERDICT_OK) {
    return absl::InternalError(absl::StrCat("check_kernels.cu does not compile: ", response->log()));
  }
  return response->artifact();
}

absl::StatusOr<std::unique_ptr<CudaInspector>> CudaInspector::Create(const DriverApi& api, StreamHandle stream,
                                                                     const std::string& artifact, WorkClock& clock) {
  std::unique_ptr<CudaInspector> inspector(new CudaInspector(api, stream, clock));
  ModuleHandle module = nullptr;
  ATTUNE_CUDA_CALL(api, ModuleLoadDataEx, &module, artifact.c_str(), 0, nullptr, nullptr);
  inspector->module_ = LoadedModule(api, module);
  ATTUNE_CUDA_CALL(api, ModuleGetFunction, &inspector->digest_, module, "attune_digest");
  ATTUNE_CUDA_CALL(api, ModuleGetFunction, &inspector->compare_, module, "attune_compare");
  ATTUNE_CUDA_CALL(api, ModuleGetFunction, &inspector->draw_, module, "attune_draw");
  DevicePointer pointer = 0;
  ATTUNE_CUDA_CALL(api, MemAlloc, &pointer, kRanges * sizeof(uint64_t));
  inspector->answers_ = Memory(api, pointer);
  ATTUNE_CUDA_CALL(api, MemAlloc, &pointer, kTableElements * sizeof(uint16_t));
  inspector->table_ = Memory(api, pointer);
  void* staging = nullptr;
  ATTUNE_CUDA_CALL(api, MemHostAlloc, &staging, kRanges * sizeof(uint64_t), kHostAllocDeviceMapped);
  inspector->staging_ = HostMemory(api, staging);
  return inspector;
}

absl::Status CudaInspector::Launch(FunctionHandle function, uint64_t items, unsigned rows,
                                   absl::Span<void* const> parameters) {
  LaunchConfig config;
  const uint64_t blocks = (items + kThreads * kItemsOfAThread - 1) / (kThreads * kItemsOfAThread);
  const uint64_t most = std::max(kMostBlocks / rows, kLeastBlocksOfARow);
  config.grid[0] = static_cast<unsigned>(std::clamp<uint64_t>(blocks, 1, most));
  config.grid[1] = rows;
  config.block[0] = kThreads;
  config.stream = stream_;
  if (absl::Status status = clock_.Begin(); !status.ok()) return status;
  // The driver only reads them.
  ATTUNE_CUDA_CALL(api_, LaunchKernelEx, &config, function, const_cast<void**>(parameters.data()), nullptr);
  return absl::OkStatus();
}

absl::Status CudaInspector::SendNonces(size_t count) {
  nonces_.resize(count);
  for (uint64_t& nonce : nonces_) nonce = random_();
  std::memcpy(staging_.get(), nonces_.data(), count * sizeof(uint64_t));
  ATTUNE_CUDA_CALL(api_, MemcpyHtoDAsync, answers_.get(), staging_.get(), count * sizeof(uint64_t), stream_);
  return absl::OkStatus();
}

absl::Status CudaInspector::ReceiveAnswers(size_t count) {
  ATTUNE_CUDA_CALL(api_, MemcpyDtoHAsync, staging_.get(), answers_.get(), count * sizeof(uint64_t), stream_);
  return clock_.EndAndWait();
}

absl::StatusOr<std::vector<uint64_t>> CudaInspector::Digests(absl::Span<const BufferView> ranges, uint64_t key) {
  std::vector<uint64_t> digests(ranges.size());
  for (size_t done = 0; done < ranges.size(); done += kRanges) {
    const size_t count = std::min(kRanges, ranges.size() - done);
    absl::Status status = DigestsOfSome(ranges.subspan(done, count), key, absl::MakeSpan(digests).subspan(done, count));
    if (!status.ok()) return status;
  }
  return digests;
}

absl::Status CudaInspector::DigestsOfSome(absl::Span<const BufferView> ranges, uint64_t key,
                                          absl::Span<uint64_t> digests) {
  Range device_ranges[kRanges] = {};
  uint64_t longest = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size == 0) continue;
    if (absl::Status status = CheckInside(ranges[i]); !status.ok()) return status;
    device_ranges[i] = {AddressOf(ranges[i]), ranges[i].size};
    longest = std::max<uint64_t>(longest, ranges[i].size);
  }
  if (absl::Status status = SendNonces(ranges.size()); !status.ok()) return status;
  DevicePointer answers = answers_.get();
  void* parameters[] = {device_ranges, &key, &answers};
  absl::Status status = Launch(digest_, longest / sizeof(uint64_t), static_cast<unsigned>(ranges.size()), parameters);
  if (status.ok()) status = ReceiveAnswers(ranges.size());
  if (!status.ok()) return status;
  const auto* received = static_cast<const uint64_t*>(staging_.get());
  for (size_t i = 0; i < ranges.size(); ++i) digests[i] = received[i] - nonces_[i];
  return absl::OkStatus();
}

absl::StatusOr<Inspector::Tally> CudaInspector::Compare(const BufferView& out, Element type,
                                                        const BufferView& reference, float absolute, float relative) {
  uint64_t elements = reference.size / sizeof(float);
  const size_t element = type == Element::kF32 ? sizeof(float) : sizeof(uint16_t);
  if (out.size != elements * element) {
    return absl::InvalidArgumentError(
        absl::StrCat("the output has ", out.size / element, " elements, the reference ", elements));
  }
  for (const BufferView* view : {&out, &reference}) {
    if (absl::Status status = CheckInside(*view); !status.ok()) return status;
  }
  if (absl::Status status = SendNonces(kTallyWords); !status.ok()) return status;
  // The largest of all begin at 0.
  constexpr size_t kSums = 2 * sizeof(uint64_t);
  ATTUNE_CUDA_CALL(api_, MemsetD8Async, answers_.get() + kSums, 0, sizeof(DeviceTally) - kSums, stream_);
  DevicePointer out_address = AddressOf(out), reference_address = AddressOf(reference), answers = answers_.get();
  int type_number = static_cast<int>(type);
  void* parameters[] = {&out_address, &type_number, &reference_address, &elements, &absolute, &relative, &answers};
  absl::Status status = Launch(compare_, elements / 4, 1, parameters);
  if (status.ok()) status = ReceiveAnswers(kTallyWords);
  if (!status.ok()) return status;
  DeviceTally received;
  std::memcpy(&received, staging_.get(), sizeof received);
  if (received.seen - nonces_[0] != elements) {
    return absl::InternalError(
        absl::StrCat("the device says that it has compared ", received.seen - nonces_[0], " elements of ", elements));
  }
  Tally tally;
  tally.wrong = static_cast<int64_t>(received.wrong - nonces_[1]);
  tally.max_error = FloatOf(received.max_error);
  tally.max_reference = FloatOf(received.max_reference);
  return tally;
}

absl::Status CudaInspector::Draw(const BufferView& to, const Drawing& drawing) {
  if (absl::Status status = CheckInside(to); !status.ok()) return status;
  if (drawing.table.size() != kTableElements || drawing.row % 4 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a table of ", drawing.table.size(), " elements and rows of ",
                                                   drawing.row, "; they must be ", kTableElements,
                                                   " and a multiple of 4"));
  }
  ATTUNE_CUDA_CALL(api_, MemcpyHtoDAsync, table_.get(), drawing.table.data(), kTableElements * sizeof(uint16_t),
                   stream_);
  DevicePointer address = AddressOf(to), table = table_.get();
  uint64_t elements = to.size / sizeof(uint16_t);
  DeviceDrawing device_drawing = {drawing.key, static_cast<uint64_t>(drawing.row), drawing.other, drawing.rows,
                                  drawing.surely};
  void* parameters[] = {&address, &elements, &table, &device_drawing};
  if (absl::Status status = Launch(draw_, elements / 4, 1, parameters); !status.ok()) return status;
  // The table is the caller's.
  return clock_.EndAndWait();
}

absl::Status CudaInspector::Copy(const BufferView& to, const BufferView& from) {
  if (to.size == 0) return absl::OkStatus();
  for (const BufferView* view : {&to, &from}) {
    if (absl::Status status = CheckInside(*view); !status.ok()) return status;
  }
  if (from.size < to.size) {
    return absl::InvalidArgumentError(absl::StrCat("copy of ", to.size, " bytes from a range of ", from.size));
  }
  ATTUNE_CUDA_CALL(api_, MemcpyDtoDAsync, AddressOf(to), AddressOf(from), to.size, stream_);
  return absl::OkStatus();
}

}  // namespace attune::device::cuda
