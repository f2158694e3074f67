#include "server/verify/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/verify/tensor_shape.h"

namespace attune::verify {
namespace {

// Above this the host takes longer than the check is worth.
constexpr double kMaxHostFlops = 2e8;
// fp32 against fp64, on values up to a few units.
constexpr double kReferenceTolerance = 2e-4;

absl::StatusOr<GuardedBuffer> UploadTensor(device::Device& device, const char* name,
                                           const std::vector<uint16_t>& values) {
  absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device, name, AsBytes(values).size());
  if (!buffer.ok()) return buffer.status();
  if (absl::Status status = buffer->Upload(AsBytes(values)); !status.ok()) return status;
  return buffer;
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

absl::StatusOr<InputBuffers> UploadInputs(device::Device& device, const Tensors& inputs) {
  absl::StatusOr<GuardedBuffer> q = UploadTensor(device, "Q", inputs.q);
  if (!q.ok()) return q.status();
  absl::StatusOr<GuardedBuffer> k = UploadTensor(device, "K", inputs.k);
  if (!k.ok()) return k.status();
  absl::StatusOr<GuardedBuffer> v = UploadTensor(device, "V", inputs.v);
  if (!v.ok()) return v.status();
  return InputBuffers{*std::move(q), *std::move(k), *std::move(v)};
}

absl::StatusOr<std::string> Case::InputDamage() const {
  const std::pair<const GuardedBuffer*, const std::vector<uint16_t>*> tensors[] = {
      {&buffers.q, &inputs.q}, {&buffers.k, &inputs.k}, {&buffers.v, &inputs.v}};
  for (const auto& [buffer, values] : tensors) {
    const absl::StatusOr<bool> unchanged = buffer->Holds(AsBytes(*values));
    if (!unchanged.ok()) return unchanged.status();
    if (!*unchanged) return absl::StrCat("changed its input ", buffer->name());
    absl::StatusOr<std::string> damage = buffer->Damage();
    if (!damage.ok() || !damage->empty()) return damage.ok() ? absl::StrCat(buffer->name(), ": ", *damage) : damage;
  }
  return std::string();
}

absl::Status Case::Repair() {
  absl::Status status;
  status.Update(buffers.q.Upload(AsBytes(inputs.q)));
  status.Update(buffers.k.Upload(AsBytes(inputs.k)));
  status.Update(buffers.v.Upload(AsBytes(inputs.v)));
  for (GuardedBuffer* buffer : {&buffers.q, &buffers.k, &buffers.v}) status.Update(buffer->FillZones());
  return status;
}

absl::StatusOr<References> References::Create(device::Device& device, const Problem& problem,
                                              const worker::v1::PrepareRequest& request) {
  absl::StatusOr<LoadedCandidate> exact = LoadReference(device, "exact", request.exact());
  if (!exact.ok()) return exact.status();
  absl::StatusOr<LoadedCandidate> plain = LoadReference(device, "plain", request.plain());
  if (!plain.ok()) return plain.status();
  const size_t elements = QueryShape(problem).elements();
  absl::StatusOr<GuardedBuffer> o = GuardedBuffer::Create(device, "O", elements * sizeof(float));
  if (!o.ok()) return o.status();
  absl::StatusOr<GuardedBuffer> lse = GuardedBuffer::Create(device, "LSE", elements / problem.head_dim * sizeof(float));
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

absl::StatusOr<Case> References::MakeCase(Distribution distribution, uint64_t seed) {
  Tensors inputs = MakeInputs(problem_, distribution, seed);
  absl::StatusOr<InputBuffers> buffers = UploadInputs(*device_, inputs);
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
