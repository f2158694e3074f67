#include "client/cpp/launch/runtime.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/code.h"
#include "client/cpp/launch/gpu.h"
#include "client/cpp/launch/kernel_cache.h"
#include "client/cpp/launch/scratch.h"

namespace attune::launch {
namespace {

constexpr size_t kMostPlaced = 1024;
constexpr size_t kMostShapes = 4096;  // of one Attention; the cache behind it has more

class DriverMemory : public ScratchAllocator {
 public:
  explicit DriverMemory(const Gpu& gpu) : gpu_(gpu) {}
  absl::StatusOr<Address> Allocate(size_t bytes, Stream /*stream*/) override {
    cuda::DevicePointer pointer = 0;
    const cuda::Result result = gpu_.driver().MemAlloc(&pointer, bytes);
    if (result != cuda::kSuccess) return gpu_.driver().Error("cuMemAlloc", result);
    return pointer;
  }
  void Free(Address address, size_t /*bytes*/, Stream /*stream*/) override { gpu_.driver().MemFree(address); }

 private:
  const Gpu& gpu_;
};

class NoAnswers : public Answers {
 public:
  absl::StatusOr<AnswerPtr> Ask(const Problem& /*problem*/, bool /*without_code*/) override {
    return absl::UnavailableError("neither a server nor a snapshot was given");
  }
  absl::StatusOr<AnswerPtr> Kept(const Problem& /*problem*/) override {
    return absl::NotFoundError("only answers that were loaded are known");
  }
};

// FromProto would take 0 as left out.
absl::Status CheckShape(const Shape& shape) {
  const std::pair<absl::string_view, int64_t> sizes[] = {
      {"batch", shape.batch}, {"seq_q", shape.seq_q}, {"seq_kv", shape.seq_kv}};
  for (const auto& [name, value] : sizes) {
    if (value < 1) return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, "; it must be at least 1"));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const RuntimeOptions& options) {
  const std::pair<absl::string_view, absl::Duration> durations[] = {{"revalidate", options.revalidate},
                                                                    {"hold", options.hold}};
  for (const auto& [name, value] : durations) {
    if (value >= absl::Milliseconds(1)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", absl::FormatDuration(value), "; it must be at least 1ms"));
  }
  return absl::OkStatus();
}

}  // namespace

struct Runtime::Impl {
  Impl(std::shared_ptr<const Gpu> the_gpu, const RuntimeOptions& options, std::unique_ptr<Answers> answers)
      : gpu(std::move(the_gpu)),
        driver_memory(std::make_unique<DriverMemory>(*gpu)),
        scratch(gpu, options.scratch_allocator == nullptr ? driver_memory.get() : options.scratch_allocator),
        code(std::make_shared<Code>(gpu)),
        cache(std::move(answers), code, {.revalidate = options.revalidate, .hold = options.hold}) {}

  const std::shared_ptr<const Gpu> gpu;
  const std::unique_ptr<ScratchAllocator> driver_memory;
  Scratch scratch;
  const std::shared_ptr<Code> code;
  KernelCache cache;
};

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() {
  const std::shared_ptr<const Gpu> gpu = impl_->gpu;
  const CurrentContext context(*gpu);  // memory is freed in it
  const RelaxedCapture relaxed(*gpu);  // maybe while another thread captures
  impl_.reset();
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Open(RuntimeOptions options) {
  absl::StatusOr<std::shared_ptr<const Gpu>> gpu = Gpu::Open(options.device);
  if (!gpu.ok()) return gpu.status();
  std::unique_ptr<Answers> answers;
  if (!options.server.empty() || !options.snapshot.empty()) {
    absl::StatusOr<std::unique_ptr<Answers>> opened = OpenAnswers({.server = options.server,
                                                                   .snapshot = options.snapshot,
                                                                   .device = options.server_device,
                                                                   .policy = options.policy,
                                                                   .acceptable = options.acceptable},
                                                                  (*gpu)->info());
    if (!opened.ok()) return opened.status();
    answers = *std::move(opened);
  }
  return Open(std::move(options), std::move(answers));
}

absl::StatusOr<std::unique_ptr<Runtime>> Runtime::Open(RuntimeOptions options, std::unique_ptr<Answers> answers) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const Gpu>> gpu = Gpu::Open(options.device);
  if (!gpu.ok()) return gpu.status();
  if (answers == nullptr) answers = std::make_unique<NoAnswers>();
  return std::unique_ptr<Runtime>(new Runtime(std::make_unique<Impl>(*std::move(gpu), options, std::move(answers))));
}

absl::StatusOr<std::unique_ptr<Attention>> Runtime::Prepare(const Problem& form) {
  // With lengths that any form may have, to have the rest checked.
  const absl::StatusOr<Problem> checked = FromProto(ToProto(ProblemOf(form, {.batch = 1, .seq_q = 1, .seq_kv = 2})));
  if (!checked.ok()) return checked.status();
  return std::unique_ptr<Attention>(new Attention(this, form));
}

absl::Status Runtime::Load(const v1::GetBestResponse& answer) {
  return impl_->cache.Pin(std::make_shared<const v1::GetBestResponse>(answer));
}
void Runtime::Refresh() { impl_->cache.Refresh(); }
bool Runtime::WaitUntilIdle(absl::Duration timeout) { return impl_->cache.Wait(timeout); }
const v1::Device& Runtime::device() const { return impl_->gpu->info(); }

absl::Status Runtime::Enqueue(const Plan& plan, const Tensors& tensors, Stream stream) {
  const CurrentContext context(*impl_->gpu);
  if (!context.status().ok()) return context.status();
  if (plan.scratch_bytes() == 0 && plan.launches() == 1) return plan.EnqueueInContext(tensors, stream, 0, 0);
  CaptureStatus capturing = kNotCapturing;
  if (plan.scratch_bytes() > 0) {
    const cuda::Result result = impl_->gpu->api().StreamIsCapturing(stream, &capturing);
    if (result != cuda::kSuccess) return impl_->gpu->driver().Error("cuStreamIsCapturing", result);
  }
  std::shared_ptr<Arena> of_capture;
  if (capturing != kNotCapturing) {
    absl::StatusOr<std::shared_ptr<Arena>> arena = impl_->scratch.OfCapture(stream);
    if (!arena.ok()) return arena.status();
    of_capture = *std::move(arena);
  }
  Arena& arena = of_capture != nullptr ? *of_capture : impl_->scratch.OfStream(stream);
  // Of another thread's launches on this stream none comes between these.
  const std::lock_guard lock(arena.mutex);
  if (absl::Status status = impl_->scratch.Reserve(arena, plan.zeroed_bytes(), plan.other_bytes(), stream);
      !status.ok()) {
    return status;
  }
  return plan.EnqueueInContext(tensors, stream, arena.zeroed.address, arena.other.address);
}

// The shapes that were asked for before.
struct Attention::Known {
  std::shared_mutex mutex;
  absl::flat_hash_map<Shape, KernelCache::EntryPtr> entries;
  struct Placed {
    PlanPtr of;  // the plan that it was made from
    PlanPtr plan;
  };
  absl::flat_hash_map<std::pair<Shape, Placement>, Placed> placed;

  // The shape's, asked for if it is due.
  absl::StatusOr<KernelCache::EntryPtr> EntryOf(KernelCache& cache, const Problem& form, const Shape& shape);
};

Attention::Attention(Runtime* runtime, const Problem& form)
    : runtime_(runtime), form_(form), known_(std::make_unique<Known>()) {}
Attention::~Attention() = default;

absl::Status Attention::Run(Stream stream, const Tensors& tensors, const Shape& shape) {
  const absl::StatusOr<PlanPtr> plan = Find(shape);
  if (!plan.ok()) return plan.status();
  return runtime_->Enqueue(**plan, tensors, stream);
}

absl::StatusOr<PlanPtr> Attention::Find(const Shape& shape) {
  {
    const std::shared_lock lock(known_->mutex);
    if (const auto it = known_->entries.find(shape); it != known_->entries.end()) {
      absl::StatusOr<PlanPtr> plan = it->second->Get();
      if (plan.ok()) return plan;
    }
  }
  const absl::StatusOr<KernelCache::EntryPtr> entry = known_->EntryOf(runtime_->impl_->cache, form_, shape);
  return entry.ok() ? (*entry)->Get() : entry.status();
}

absl::StatusOr<KernelCache::EntryPtr> Attention::Known::EntryOf(KernelCache& cache, const Problem& form,
                                                                const Shape& shape) {
  KernelCache::EntryPtr entry;
  {
    const std::shared_lock lock(mutex);
    const auto it = entries.find(shape);
    if (it != entries.end() && !it->second->is_dropped()) entry = it->second;
  }
  if (entry != nullptr) {
    cache.AskIfDue(entry);
    return entry;
  }
  if (absl::Status status = CheckShape(shape); !status.ok()) return status;
  const absl::StatusOr<Problem> problem = FromProto(ToProto(ProblemOf(form, shape)));
  if (!problem.ok()) return problem.status();
  entry = cache.Find(*problem);
  const std::lock_guard lock(mutex);
  if (entries.size() > kMostShapes) entries.clear();
  entries[shape] = entry;
  return entry;
}

absl::Status Attention::RunPlaced(Stream stream, const Tensors& tensors, const Shape& shape,
                                  const Placement& placement) {
  const absl::StatusOr<PlanPtr> plan = FindPlaced(shape, placement);
  if (!plan.ok()) return plan.status();
  return runtime_->Enqueue(**plan, tensors, stream);
}

absl::StatusOr<PlanPtr> Attention::FindPlaced(const Shape& shape, const Placement& placement) {
  absl::StatusOr<PlanPtr> plan = Find(shape);
  if (!plan.ok()) return plan.status();
  const std::pair key(shape, placement);
  {
    const std::shared_lock lock(known_->mutex);
    const auto it = known_->placed.find(key);
    if (it != known_->placed.end() && it->second.of == *plan) return it->second.plan;
  }
  auto answer = std::make_shared<v1::GetBestResponse>((*plan)->answer());
  absl::StatusOr<v1::LaunchRecipe> recipe = PlacedRecipe(answer->recipe(), (*plan)->problem(), placement);
  if (!recipe.ok()) return recipe.status();
  *answer->mutable_recipe() = *std::move(recipe);
  absl::StatusOr<PlanPtr> placed = runtime_->impl_->code->PlanOf(answer, (*plan)->problem());
  if (!placed.ok()) return placed.status();
  const std::lock_guard lock(known_->mutex);
  if (known_->placed.size() >= kMostPlaced) known_->placed.clear();
  known_->placed[key] = {*plan, *placed};
  return placed;
}

absl::Status Attention::Warm(absl::Span<const Shape> shapes, absl::Duration timeout) {
  KernelCache& cache = runtime_->impl_->cache;
  std::vector<KernelCache::EntryPtr> entries;
  for (const Shape& shape : shapes) {
    absl::StatusOr<KernelCache::EntryPtr> entry = known_->EntryOf(cache, form_, shape);
    if (entry.ok()) entries.push_back(*std::move(entry));  // otherwise Find says why
  }
  if (!cache.WaitFor(entries, timeout)) {
    return absl::DeadlineExceededError(absl::StrCat("the kernels of ", shapes.size(), " shapes were not all found in ",
                                                    absl::FormatDuration(timeout)));
  }
  for (const Shape& shape : shapes) {
    if (absl::StatusOr<PlanPtr> plan = Find(shape); !plan.ok()) return plan.status();
  }
  return absl::OkStatus();
}

}  // namespace attune::launch
