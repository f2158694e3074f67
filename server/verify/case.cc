#include "server/verify/case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/verify/row_map.h"

namespace attune::verify {
namespace {

// Above this the host takes longer than the check is worth.
constexpr double kMaxHostFlops = 2e8;
// Of the largest tiles.
constexpr int64_t kTileRows = 128;
constexpr size_t kMostZone = 1 << 20;
// fp32 against fp64, on values up to a few units.
constexpr double kReferenceTolerance = 2e-4;

// An input by its name in messages, and where a kernel finds it.
struct InputPart {
  const char* name;
  absl::Span<const std::byte> bytes;
};
constexpr device::BufferView device::Bindings::*kInputViews[] = {
    &device::Bindings::q,          &device::Bindings::k,          &device::Bindings::v,
    &device::Bindings::sinks,      &device::Bindings::q_bounds,   &device::Bindings::kv_bounds,
    &device::Bindings::kv_lengths, &device::Bindings::page_table, &device::Bindings::k_scale,
    &device::Bindings::v_scale};

std::array<InputPart, std::size(kInputViews)> InputParts(const Tensors& inputs) {
  return {{{"Q", AsBytes(inputs.q)},
           {"K", inputs.k.empty() ? AsBytes(inputs.k_codes) : AsBytes(inputs.k)},
           {"V", inputs.v.empty() ? AsBytes(inputs.v_codes) : AsBytes(inputs.v)},
           {"the sinks", AsBytes(inputs.sinks)},
           {"the query bounds", AsBytes(inputs.q_bounds)},
           {"the key bounds", AsBytes(inputs.kv_bounds)},
           {"the key lengths", AsBytes(inputs.kv_lengths)},
           {"the page table", AsBytes(inputs.page_table)},
           {"K's scales", AsBytes(inputs.k_scales)},
           {"V's scales", AsBytes(inputs.v_scales)}}};
}

absl::StatusOr<LoadedCandidate> LoadReference(device::Device& device, absl::string_view name,
                                              const worker::v1::ReferenceKernel& kernel) {
  if (kernel.artifact().empty() || kernel.recipe().launches().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("prepare: the ", name, " reference has no artifact or no launch"));
  }
  ModuleCache modules(device, 1);
  return LoadedCandidate::Create(device, modules, kernel.artifact(), kernel.recipe());
}

std::vector<float> AsFloats(absl::Span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

bool Near(float value, float expected) {
  return value == expected || std::fabs(value - expected) <= kReferenceTolerance * (1 + std::fabs(expected));
}

absl::Status Agree(absl::string_view what, Distribution distribution, const std::vector<float>& values,
                   const std::vector<float>& expected) {
  const auto [value, wanted] = std::mismatch(values.begin(), values.end(), expected.begin(), Near);
  if (value == values.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat(
      "the reference kernel disagrees with fp64 on the host: inputs '%s', %s element %d is %g, on the host %g",
      Name(distribution), what, value - values.begin(), *value, *wanted));
}

}  // namespace

device::Bindings InputBuffers::bindings() const {
  device::Bindings bindings;
  for (size_t i = 0; i < parts.size(); ++i) bindings.*kInputViews[i] = parts[i].view();
  return bindings;
}

size_t ZoneBytes(const Problem& problem) {
  // Rows lie a row of all heads apart where heads are inside of rows.
  const bool heads_inside = problem.layout == v1::LAYOUT_BSHD || problem.page_size > 0;
  const int64_t row_bytes = problem.head_dim * DTypeBytes(problem.dtype) * (heads_inside ? problem.heads_q : 1);
  const int64_t bytes = std::max(kTileRows, problem.page_size) * row_bytes;
  return std::clamp((static_cast<size_t>(bytes) + 255) / 256 * 256, GuardedBuffer::kLeastZone, kMostZone);
}

absl::StatusOr<InputBuffers> UploadInputs(device::Device& device, const Problem& problem, const Tensors& inputs) {
  InputBuffers buffers;
  for (const auto& [name, bytes] : InputParts(inputs)) {
    // Only Q, K and V have rows.
    const size_t zone = buffers.parts.size() < 3 ? ZoneBytes(problem) : GuardedBuffer::kLeastZone;
    absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device, name, bytes.size(), zone);
    if (!buffer.ok()) return buffer.status();
    if (absl::Status status = buffer->Upload(bytes); !status.ok()) return status;
    buffers.parts.push_back(*std::move(buffer));
  }
  return buffers;
}

absl::StatusOr<std::string> InputDamage(const InputBuffers& buffers, const Tensors& inputs) {
  const auto parts = InputParts(inputs);
  for (size_t i = 0; i < parts.size(); ++i) {
    const GuardedBuffer& buffer = buffers.parts[i];
    const absl::StatusOr<bool> unchanged = buffer.Holds(parts[i].bytes);
    if (!unchanged.ok()) return unchanged.status();
    if (!*unchanged) return absl::StrCat("changed its input ", buffer.name());
    absl::StatusOr<std::string> damage = buffer.Damage();
    if (!damage.ok() || !damage->empty()) return damage.ok() ? absl::StrCat(buffer.name(), ": ", *damage) : damage;
  }
  return std::string();
}

absl::Status Restore(InputBuffers& buffers, const Tensors& inputs) {
  absl::Status status;
  const auto parts = InputParts(inputs);
  for (size_t i = 0; i < parts.size(); ++i) {
    status.Update(buffers.parts[i].Upload(parts[i].bytes));
    status.Update(buffers.parts[i].FillZones());
  }
  return status;
}

absl::StatusOr<References> References::Create(device::Device& device, const Problem& problem,
                                              const worker::v1::PrepareRequest& request) {
  absl::StatusOr<LoadedCandidate> exact = LoadReference(device, "exact", request.exact());
  if (!exact.ok()) return exact.status();
  absl::StatusOr<LoadedCandidate> plain = LoadReference(device, "plain", request.plain());
  if (!plain.ok()) return plain.status();
  const size_t rows = QueryRows(problem);
  absl::StatusOr<GuardedBuffer> o = GuardedBuffer::Create(device, "O", rows * problem.head_dim * sizeof(float));
  if (!o.ok()) return o.status();
  absl::StatusOr<GuardedBuffer> lse = GuardedBuffer::Create(device, "LSE", rows * sizeof(float));
  if (!lse.ok()) return lse.status();
  return References(device, problem, *std::move(exact), *std::move(plain), *std::move(o), *std::move(lse));
}

absl::StatusOr<HostResult> References::Run(LoadedCandidate& kernel, absl::string_view name,
                                           const InputBuffers& inputs) {
  absl::Status status = o_.Fill(std::byte{0xFF});
  status.Update(lse_.Fill(std::byte{0xFF}));
  if (!status.ok()) return status;
  device::Bindings bindings = inputs.bindings();
  bindings.o = o_.view();
  bindings.lse = lse_.view();
  absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = kernel.Bind(bindings);
  if (!runnable.ok()) return runnable.status();
  if (status = (*runnable)->Run(); !status.ok()) return status;
  GuardedBuffer::Snapshot o, lse;
  status.Update(o_.Download(o));
  status.Update(lse_.Download(lse));
  if (!status.ok()) return status;
  for (const std::string& damage : {o.Damage(), lse.Damage()}) {
    if (!damage.empty())
      return absl::InternalError(absl::StrCat("the ", name, " reference kernel's buffer was ", damage));
  }
  HostResult result = {AsFloats(o.contents()), AsFloats(lse.contents())};
  const auto bad = std::find_if(result.o.begin(), result.o.end(), [](float value) { return !std::isfinite(value); });
  if (bad != result.o.end()) {
    return absl::InternalError(absl::StrCat("the ", name, " reference kernel's O has element ", bad - result.o.begin(),
                                            " = ", *bad, "; it must be finite"));
  }
  return result;
}

absl::Status References::CheckAgainstHost(const Case& made) const {
  if (Flops(problem_) > kMaxHostFlops) return absl::OkStatus();
  const HostResult host = HostReference(problem_, made.inputs);
  absl::Status status = Agree("O", made.distribution, made.exact.o, host.o);
  status.Update(Agree("LSE", made.distribution, made.exact.lse, host.lse));
  return status;
}

absl::StatusOr<Case> References::MakeCase(Distribution distribution, Tensors inputs) {
  absl::StatusOr<InputBuffers> buffers = UploadInputs(*device_, problem_, inputs);
  if (!buffers.ok()) return buffers.status();
  absl::StatusOr<HostResult> exact = Run(exact_, "exact", *buffers);
  if (!exact.ok()) return exact.status();
  absl::StatusOr<HostResult> plain = Run(plain_, "plain", *buffers);
  if (!plain.ok()) return plain.status();
  Case made = {distribution, std::move(inputs), *std::move(buffers), *std::move(exact)};
  for (size_t i = 0; i < plain->o.size(); ++i) {
    made.plain_error = std::max<double>(made.plain_error, std::fabs(plain->o[i] - made.exact.o[i]));
  }
  if (absl::Status status = CheckAgainstHost(made); !status.ok()) return status;
  return made;
}

}  // namespace attune::verify
