#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/launch/attune_launch.h"
#include "client/cpp/launch/runtime.h"

// Before the runtime, which it must outlive.
struct attune_runtime {
  std::unique_ptr<attune::launch::ScratchAllocator> allocator;
  std::unique_ptr<attune::launch::Runtime> runtime;
};
struct attune_attention {
  std::unique_ptr<attune::launch::Attention> attention;
};
struct attune_plan {
  std::shared_ptr<const attune::launch::Plan> plan;
};

namespace attune::launch {
namespace {

static_assert(sizeof(attune_tensors) == sizeof(Tensors) && sizeof(attune_shape) == sizeof(Shape));

std::string& LastError() {
  thread_local std::string message;
  return message;
}

attune_status CodeOf(const absl::Status& status) {
  if (!status.ok()) LastError() = std::string(status.message());
  return static_cast<attune_status>(status.raw_code());
}

attune_status Caught(attune_status status, const char* what) {
  try {
    LastError() = what;
  } catch (const std::exception&) {
    LastError().clear();
  }
  return status;
}

// What `call` returns. No exception leaves it: not of an allocation, of a thread that cannot be started, or of the
// caller's own allocator.
template <typename Call>
attune_status Guarded(const Call& call) {
  try {
    return CodeOf(call());
  } catch (const std::bad_alloc&) {
    return Caught(ATTUNE_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& error) {
    return Caught(ATTUNE_INTERNAL, error.what());
  } catch (...) {
    return Caught(ATTUNE_INTERNAL, "an exception that is no std::exception");
  }
}

absl::Status Missing(absl::string_view argument) {
  return absl::InvalidArgumentError(absl::StrCat(argument, " is null"));
}

class CallersMemory : public ScratchAllocator {
 public:
  explicit CallersMemory(const attune_scratch_allocator& callers) : callers_(callers) {}
  absl::StatusOr<Address> Allocate(size_t bytes, Stream stream) override {
    const Address address = callers_.allocate(callers_.user, bytes, stream);
    if (address != 0) return address;
    return absl::ResourceExhaustedError("scratch_allocator.allocate returned 0");
  }
  void Free(Address address, size_t bytes, Stream stream) override {
    if (callers_.free != nullptr) callers_.free(callers_.user, address, bytes, stream);
  }

 private:
  const attune_scratch_allocator callers_;
};

const char* TextOr(const char* text) { return text == nullptr ? "" : text; }

absl::StatusOr<std::unique_ptr<attune_runtime>> OpenRuntime(const attune_runtime_options& options) {
  auto opened = std::make_unique<attune_runtime>();
  RuntimeOptions given;
  given.server = TextOr(options.server);
  given.snapshot = TextOr(options.snapshot);
  given.device = options.device;
  given.server_device = TextOr(options.server_device);
  if (options.accept_heuristic != 0) given.acceptable.push_back(v1::PROVENANCE_HEURISTIC);
  if (options.revalidate_ms != 0) given.revalidate = absl::Milliseconds(options.revalidate_ms);
  if (options.hold_ms != 0) given.hold = absl::Milliseconds(options.hold_ms);
  if (options.scratch_allocator.allocate != nullptr) {
    opened->allocator = std::make_unique<CallersMemory>(options.scratch_allocator);
    given.scratch_allocator = opened->allocator.get();
  }
  absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Open(std::move(given));
  if (!runtime.ok()) return runtime.status();
  opened->runtime = *std::move(runtime);
  return opened;
}

}  // namespace
}  // namespace attune::launch

using attune::launch::Guarded;
using attune::launch::Missing;
using attune::launch::Shape;
using attune::launch::Tensors;

const char* attune_error_message(void) { return attune::launch::LastError().c_str(); }

attune_status attune_runtime_open(const attune_runtime_options* options, attune_runtime** runtime) {
  return Guarded([&]() -> absl::Status {
    if (options == nullptr || runtime == nullptr) return Missing(options == nullptr ? "options" : "runtime");
    attune_runtime_options given = {};
    if (options->struct_size < sizeof given.struct_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("struct_size is ", options->struct_size, "; it must be sizeof(attune_runtime_options)"));
    }
    std::memcpy(&given, options, std::min(options->struct_size, sizeof given));
    auto opened = attune::launch::OpenRuntime(given);
    if (!opened.ok()) return opened.status();
    *runtime = opened->release();
    return absl::OkStatus();
  });
}
void attune_runtime_close(attune_runtime* runtime) { delete runtime; }

attune_status attune_runtime_load(attune_runtime* runtime, const void* answer, size_t bytes) {
  return Guarded([&]() -> absl::Status {
    if (runtime == nullptr || answer == nullptr) return Missing(runtime == nullptr ? "runtime" : "answer");
    attune::v1::GetBestResponse parsed;
    if (bytes > (size_t{1} << 30) || !parsed.ParseFromArray(answer, static_cast<int>(bytes))) {
      return absl::InvalidArgumentError(
          absl::StrCat("answer: ", bytes, " bytes that are no attune.v1.GetBestResponse"));
    }
    return runtime->runtime->Load(parsed);
  });
}

attune_status attune_runtime_refresh(attune_runtime* runtime) {
  return Guarded([&]() -> absl::Status {
    if (runtime == nullptr) return Missing("runtime");
    runtime->runtime->Refresh();
    return absl::OkStatus();
  });
}

attune_status attune_attention_open(attune_runtime* runtime, const char* form, attune_attention** attention) {
  return Guarded([&]() -> absl::Status {
    if (runtime == nullptr || form == nullptr || attention == nullptr) {
      return Missing(runtime == nullptr ? "runtime" : form == nullptr ? "form" : "attention");
    }
    absl::StatusOr<attune::Problem> parsed = attune::ParseProblem(form);
    if (!parsed.ok()) return parsed.status();
    // With equal lengths both causal alignments are one problem; the calls' lengths differ.
    if (absl::StrContains(form, ".causal-br")) parsed->mask = attune::v1::MASK_CAUSAL_BOTTOM_RIGHT;
    auto prepared = runtime->runtime->Prepare(*parsed);
    if (!prepared.ok()) return prepared.status();
    *attention = std::make_unique<attune_attention>(attune_attention{*std::move(prepared)}).release();
    return absl::OkStatus();
  });
}
void attune_attention_close(attune_attention* attention) { delete attention; }

attune_status attune_warm(attune_attention* attention, const attune_shape* shapes, size_t count, int64_t timeout_ms) {
  return Guarded([&]() -> absl::Status {
    if (attention == nullptr || (shapes == nullptr && count > 0)) {
      return Missing(attention == nullptr ? "attention" : "shapes");
    }
    std::vector<Shape> wanted;
    wanted.reserve(count);
    for (size_t i = 0; i < count; ++i) wanted.push_back(std::bit_cast<Shape>(shapes[i]));
    return attention->attention->Warm(wanted, absl::Milliseconds(timeout_ms));
  });
}

attune_status attune_run(attune_attention* attention, void* stream, const attune_tensors* tensors,
                         const attune_shape* shape) {
  return Guarded([&]() -> absl::Status {
    if (attention == nullptr || tensors == nullptr || shape == nullptr) {
      return Missing(attention == nullptr ? "attention" : tensors == nullptr ? "tensors" : "shape");
    }
    return attention->attention->Run(stream, std::bit_cast<Tensors>(*tensors), std::bit_cast<Shape>(*shape));
  });
}

attune_status attune_run_placed(attune_attention* attention, void* stream, const attune_tensors* tensors,
                                const attune_shape* shape, const attune_placement* placement) {
  return Guarded([&]() -> absl::Status {
    if (placement == nullptr) return Missing("placement");
    if (attention == nullptr || tensors == nullptr || shape == nullptr) {
      return Missing(attention == nullptr ? "attention" : tensors == nullptr ? "tensors" : "shape");
    }
    return attention->attention->RunPlaced(stream, std::bit_cast<Tensors>(*tensors), std::bit_cast<Shape>(*shape),
                                           std::bit_cast<attune::launch::Placement>(*placement));
  });
}

attune_status attune_plan_open(attune_attention* attention, const attune_shape* shape, attune_plan** plan) {
  return Guarded([&]() -> absl::Status {
    if (attention == nullptr || shape == nullptr || plan == nullptr) {
      return Missing(attention == nullptr ? "attention" : shape == nullptr ? "shape" : "plan");
    }
    auto found = attention->attention->Find(std::bit_cast<Shape>(*shape));
    if (!found.ok()) return found.status();
    *plan = std::make_unique<attune_plan>(attune_plan{*std::move(found)}).release();
    return absl::OkStatus();
  });
}
void attune_plan_close(attune_plan* plan) { delete plan; }

attune_status attune_plan_scratch(const attune_plan* plan, size_t* scratch_bytes, size_t* zeroed_bytes) {
  return Guarded([&]() -> absl::Status {
    if (plan == nullptr || scratch_bytes == nullptr || zeroed_bytes == nullptr) {
      return Missing(plan == nullptr ? "plan" : scratch_bytes == nullptr ? "scratch_bytes" : "zeroed_bytes");
    }
    *scratch_bytes = plan->plan->scratch_bytes();
    *zeroed_bytes = plan->plan->zeroed_bytes();
    return absl::OkStatus();
  });
}

attune_status attune_plan_enqueue(const attune_plan* plan, void* stream, const attune_tensors* tensors,
                                  uint64_t scratch) {
  return Guarded([&]() -> absl::Status {
    if (plan == nullptr || tensors == nullptr) return Missing(plan == nullptr ? "plan" : "tensors");
    return plan->plan->Enqueue(std::bit_cast<Tensors>(*tensors), stream, scratch);
  });
}
