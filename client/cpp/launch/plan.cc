#include "client/cpp/launch/plan.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/launch/gpu.h"
#include "server/base/tensor_map.h"
#include "server/device/cuda/launch_check.h"
#include "server/device/cuda/tensor_map.h"

namespace attune::launch {
namespace {

using cuda::kSuccess;

// More than any kernel family has; a launch's are laid out on the stack.
constexpr size_t kMostScratch = 16;
constexpr size_t kMostParameters = 96;
constexpr size_t kMostMaps = 8;
constexpr size_t kScratchAlignment = 256;
constexpr Address kMapAlignment = 16;   // of a tensor that a map is of
constexpr Address kAnywhere = 1 << 20;  // that a map is encoded for before its tensor's address is known

// By BufferRole: the place among Tensors, -1 for none.
int TensorOf(v1::BufferRole role) {
  switch (role) {
    case v1::BUFFER_ROLE_Q:
      return 0;
    case v1::BUFFER_ROLE_K:
      return 1;
    case v1::BUFFER_ROLE_V:
      return 2;
    case v1::BUFFER_ROLE_O:
      return 3;
    case v1::BUFFER_ROLE_LSE:
      return 4;
    case v1::BUFFER_ROLE_SINKS:
      return 5;
    case v1::BUFFER_ROLE_Q_BOUNDS:
      return 6;
    case v1::BUFFER_ROLE_KV_BOUNDS:
      return 7;
    case v1::BUFFER_ROLE_KV_LENGTHS:
      return 8;
    case v1::BUFFER_ROLE_PAGE_TABLE:
      return 9;
    case v1::BUFFER_ROLE_K_SCALE:
      return 10;
    case v1::BUFFER_ROLE_V_SCALE:
      return 11;
    default:
      return -1;
  }
}

void Copy(const v1::Dim3& from, unsigned (&to)[3]) {
  to[0] = static_cast<unsigned>(from.x());
  to[1] = static_cast<unsigned>(from.y());
  to[2] = static_cast<unsigned>(from.z());
}

std::vector<cuda::LaunchAttribute> AttributesOf(const v1::KernelLaunch& launch) {
  std::vector<cuda::LaunchAttribute> attributes;
  if (launch.has_cluster()) {
    cuda::LaunchAttribute& attribute = attributes.emplace_back();
    attribute.id = cuda::kLaunchClusterDimension;
    Copy(launch.cluster(), attribute.value.cluster);
  }
  if (launch.overlaps_previous()) {
    cuda::LaunchAttribute& attribute = attributes.emplace_back();
    attribute.id = cuda::kLaunchProgrammaticStreamSerialization;
    attribute.value.programmatic_stream_serialization = 1;
  }
  return attributes;
}

// The number's bytes, in the low bytes of the result.
absl::StatusOr<uint64_t> NumberOf(const v1::KernelArg& arg) {
  switch (arg.value_case()) {
    case v1::KernelArg::kI32:
      return std::bit_cast<uint32_t>(arg.i32());
    case v1::KernelArg::kI64:
      return static_cast<uint64_t>(arg.i64());
    case v1::KernelArg::kF32:
      return std::bit_cast<uint32_t>(arg.f32());
    default:
      return absl::InvalidArgumentError("it has no value; it must be buffer, i32, i64, f32 or tensor_map");
  }
}

absl::Status CheckCount(absl::string_view what, size_t count, size_t most) {
  if (count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", count, "; at most ", most, " are allowed"));
}

// The answer as a plan keeps it: the code is in the driver.
AnswerPtr WithoutCode(const AnswerPtr& answer) {
  auto without = std::make_shared<v1::GetBestResponse>(*answer);
  without->clear_artifact();
  return without;
}

}  // namespace

// The addresses of one run: those of Tensors, then those of the recipe's scratch buffers.
struct Plan::Slots {
  Address of[kTensors + kMostScratch];
};

struct Plan::Map {
  cuda::EncodedTensorMap encoded;  // for kAnywhere
  Address offset = 0;              // from the buffer to the tensor, modulo 2^64
  int slot = -1;                   // of the buffer; -1: a map of nothing
  bool by_head = false;            // see Gpu::MapsBeginWithAddress
};

struct Plan::Launch {
  // Where the driver finds a parameter: a number is here for good, the others are the run's.
  struct Parameter {
    enum Kind : uint8_t { kNumber, kSlot, kMap } kind = kNumber;
    uint16_t index = 0;  // into numbers, Slots::of or maps
  };
  std::string entry;
  cuda::FunctionHandle function = nullptr;
  cuda::LaunchConfig config;  // without its stream
  std::vector<cuda::LaunchAttribute> attributes;
  std::vector<uint64_t> numbers;
  std::vector<Map> maps;
  std::vector<Parameter> parameters;
};

Plan::Plan(std::shared_ptr<const Gpu> gpu, AnswerPtr answer, const Problem& problem)
    : gpu_(std::move(gpu)), answer_(WithoutCode(answer)), problem_(problem), wanted_(TensorsOf(problem)) {}
Plan::~Plan() = default;

size_t Plan::launches() const { return launches_.size(); }

absl::StatusOr<PlanPtr> Plan::Make(std::shared_ptr<const Gpu> gpu, AnswerPtr answer, const Problem& problem,
                                   absl::Span<void* const> functions) {
  std::shared_ptr<Plan> plan(new Plan(std::move(gpu), answer, problem));
  const v1::LaunchRecipe& recipe = answer->recipe();
  if (recipe.launches().empty()) return absl::InvalidArgumentError("recipe: launches is empty; at least one is needed");
  if (recipe.launches(0).overlaps_previous()) {
    return absl::InvalidArgumentError(absl::StrCat("recipe: kernel ", recipe.launches(0).entry(),
                                                   ": overlaps_previous is true; a recipe's first launch must not "
                                                   "overlap"));
  }
  if (absl::Status status = plan->LayOutScratch(recipe); !status.ok()) return status;
  plan->launches_.reserve(functions.size());
  for (int i = 0; i < recipe.launches_size(); ++i) {
    if (absl::Status status = plan->AddLaunch(recipe.launches(i), functions[static_cast<size_t>(i)]); !status.ok()) {
      return status;
    }
  }
  return plan;
}

absl::Status Plan::LayOutScratch(const v1::LaunchRecipe& recipe) {
  const auto count = static_cast<size_t>(recipe.scratch_size());
  if (absl::Status status = CheckCount("recipe: scratch buffers", count, kMostScratch); !status.ok()) return status;
  for (const v1::ScratchBuffer& buffer : recipe.scratch()) {
    if (buffer.bytes() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("recipe: scratch ", buffer.name(), ": bytes is ", buffer.bytes(), "; it must be at least 0"));
    }
    const bool zeroed = buffer.zero_before_first_run();
    size_t& end = zeroed ? zeroed_bytes_ : other_bytes_;
    scratch_.push_back({zeroed, buffer.bytes() == 0, end});
    const auto bytes = static_cast<size_t>(buffer.bytes());
    end += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
  return absl::OkStatus();
}

absl::Status Plan::AddLaunch(const v1::KernelLaunch& launch, void* function) {
  const cuda::DriverApi& driver = gpu_->driver();
  if (absl::Status status = cuda::CheckDimensions(gpu_->info(), launch); !status.ok()) return status;
  Launch& made = launches_.emplace_back();
  made.entry = launch.entry();
  made.function = function;
  Copy(launch.grid(), made.config.grid);
  Copy(launch.block(), made.config.block);
  made.config.dynamic_shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes());
  made.attributes = AttributesOf(launch);
  made.config.attributes = made.attributes.data();
  made.config.attribute_count = static_cast<unsigned>(made.attributes.size());
  if (absl::Status status = cuda::MakeResident(driver, gpu_->info(), function, launch, made.config); !status.ok()) {
    return status;
  }
  if (absl::Status status = cuda::CheckParameters(driver, function, launch); !status.ok()) return status;
  for (const v1::KernelArg& arg : launch.args()) {
    if (absl::Status status = AddArgument(arg, made); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("recipe: kernel ", launch.entry(), ": argument ",
                                                      made.parameters.size(), ": ", status.message()));
    }
  }
  const std::string kernel = absl::StrCat("recipe: kernel ", launch.entry());
  absl::Status status = CheckCount(kernel + ": arguments", made.parameters.size(), kMostParameters);
  status.Update(CheckCount(kernel + ": tensor maps", made.maps.size(), kMostMaps));
  return status;
}

absl::Status Plan::AddArgument(const v1::KernelArg& arg, Launch& launch) const {
  if (arg.has_tensor_map()) {
    launch.parameters.push_back({Launch::Parameter::kMap, static_cast<uint16_t>(launch.maps.size())});
    return AddMap(arg.tensor_map(), launch);
  }
  if (arg.has_buffer()) {
    const absl::StatusOr<int> slot = SlotOf(arg.buffer());
    if (!slot.ok()) return slot.status();
    launch.parameters.push_back({Launch::Parameter::kSlot, static_cast<uint16_t>(*slot)});
    return absl::OkStatus();
  }
  const absl::StatusOr<uint64_t> number = NumberOf(arg);
  if (!number.ok()) return number.status();
  launch.parameters.push_back({Launch::Parameter::kNumber, static_cast<uint16_t>(launch.numbers.size())});
  launch.numbers.push_back(*number);
  return absl::OkStatus();
}

absl::Status Plan::AddMap(const v1::TensorMap& map, Launch& launch) const {
  Map& made = launch.maps.emplace_back();
  if (!map.has_base()) return absl::OkStatus();
  const absl::StatusOr<int> slot = SlotOf(map.base());
  if (!slot.ok()) return slot.status();
  if (gpu_->api().TensorMapReplaceAddress == nullptr) {
    return absl::FailedPreconditionError("the NVIDIA driver is too old for tensor maps: no cuTensorMapReplaceAddress");
  }
  if (absl::Status status = CheckTensorMap(map); !status.ok()) return status;
  made.slot = *slot;
  made.offset = static_cast<Address>(map.base_offset());
  v1::TensorMap without_offset = map;
  without_offset.clear_base_offset();
  absl::StatusOr<cuda::EncodedTensorMap> encoded = cuda::Encode(gpu_->driver(), without_offset, kAnywhere);
  if (!encoded.ok()) return encoded.status();
  made.encoded = *encoded;
  made.by_head = gpu_->MapsBeginWithAddress();
  return absl::OkStatus();
}

absl::StatusOr<int> Plan::SlotOf(const v1::KernelArg::Buffer& buffer) const {
  if (buffer.role() == v1::BUFFER_ROLE_SCRATCH) {
    if (buffer.scratch() >= 0 && static_cast<size_t>(buffer.scratch()) < scratch_.size()) {
      return kTensors + buffer.scratch();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("scratch is ", buffer.scratch(), "; the recipe has ", scratch_.size(), " scratch buffers"));
  }
  const int tensor = TensorOf(buffer.role());
  if (tensor >= 0) return tensor;
  return absl::InvalidArgumentError(absl::StrCat("role is ", buffer.role(), "; allowed: Q to V_SCALE"));
}

absl::Status Plan::Enqueue(const Tensors& tensors, Stream stream, Address scratch) const {
  if (scratch_bytes() > 0 && (scratch == 0 || scratch % kScratchAlignment != 0)) {
    return absl::InvalidArgumentError(absl::StrCat("scratch is 0x", absl::Hex(scratch), "; it must be the address of ",
                                                   scratch_bytes(), " bytes, a multiple of ", kScratchAlignment));
  }
  const CurrentContext context(*gpu_);
  if (!context.status().ok()) return context.status();
  return EnqueueInContext(tensors, stream, scratch, scratch + zeroed_bytes_);
}

absl::Status Plan::EnqueueInContext(const Tensors& tensors, Stream stream, Address zeroed, Address other) const {
  if (absl::Status status = CheckTensors(tensors, wanted_); !status.ok()) return status;
  Slots slots;
  std::memcpy(slots.of, &tensors, sizeof tensors);
  for (size_t i = 0; i < scratch_.size(); ++i) {
    const ScratchPlace& place = scratch_[i];
    slots.of[kTensors + i] = place.is_empty ? 0 : (place.zeroed ? zeroed : other) + place.offset;
  }
  for (const Launch& launch : launches_) {
    const absl::Status status = EnqueueLaunch(launch, slots, stream);
    if (status.ok()) continue;
    // An earlier launch may have left other than zeros.
    if (&launch != launches_.data() && zeroed_bytes_ > 0) {
      gpu_->driver().MemsetD8Async(zeroed, 0, zeroed_bytes_, stream);
    }
    return status;
  }
  return absl::OkStatus();
}

absl::Status Plan::Show(const Map& map, Address buffer, std::byte* place) const {
  if (buffer == 0) {
    std::memset(place, 0, sizeof map.encoded);
    return absl::OkStatus();
  }
  std::memcpy(place, &map.encoded, sizeof map.encoded);
  const Address address = buffer + map.offset;
  if (map.by_head && address % kMapAlignment == 0) {
    std::memcpy(place, &address, sizeof address);
    return absl::OkStatus();
  }
  const cuda::Result result =
      gpu_->api().TensorMapReplaceAddress(reinterpret_cast<cuda::EncodedTensorMap*>(place), address);
  return result == kSuccess ? absl::OkStatus() : gpu_->driver().Error("cuTensorMapReplaceAddress", result);
}

absl::Status Plan::EnqueueLaunch(const Launch& launch, const Slots& slots, Stream stream) const {
  // Not initialized: most launches have none.
  alignas(cuda::EncodedTensorMap) std::byte maps[kMostMaps][sizeof(cuda::EncodedTensorMap)];
  for (size_t i = 0; i < launch.maps.size(); ++i) {
    const Map& map = launch.maps[i];
    if (absl::Status status = Show(map, map.slot < 0 ? 0 : slots.of[map.slot], maps[i]); !status.ok()) return status;
  }
  void* parameters[kMostParameters];
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    const auto [kind, index] = launch.parameters[i];
    // The driver takes the parameters as void**, and only reads them.
    parameters[i] = kind == Launch::Parameter::kNumber ? const_cast<uint64_t*>(&launch.numbers[index])
                    : kind == Launch::Parameter::kSlot ? const_cast<Address*>(&slots.of[index])
                                                       : static_cast<void*>(maps[index]);
  }
  cuda::LaunchConfig config = launch.config;
  config.stream = stream;
  const cuda::Result result = gpu_->driver().LaunchKernelEx(&config, launch.function, parameters, nullptr);
  if (result == kSuccess) return absl::OkStatus();
  const absl::Status error = gpu_->driver().Error("cuLaunchKernelEx", result);
  return absl::Status(error.code(), absl::StrCat(error.message(), " (kernel ", launch.entry, " of ",
                                                 answer_->variant().text(), " for ", ToText(problem_), ")"));
}

}  // namespace attune::launch
