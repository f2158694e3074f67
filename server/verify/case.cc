#include "server/verify/case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/verify/parallel.h"
#include "server/verify/row_map.h"

namespace attune::verify {
namespace {

// Above this the host takes longer than the check is worth.
constexpr double kMaxHostFlops = 2e8;
// Of the largest tiles.
constexpr int64_t kTileRows = 128;
constexpr size_t kMostZone = 1 << 20;
constexpr int64_t kGrain = 1 << 16;
// fp32 against fp64, on values up to a few units.
constexpr double kReferenceTolerance = 2e-4;

// An input by its name in messages, and where a kernel finds it.
struct InputPart {
  const char* name;
  absl::Span<const std::byte> bytes;
  const NormalTensor* drawn = nullptr;  // in place of bytes

  size_t size() const { return drawn == nullptr ? bytes.size() : drawn->elements() * sizeof(uint16_t); }
  void operator()(size_t first, absl::Span<std::byte> piece) const {
    drawn->Fill(static_cast<int64_t>(first / sizeof(uint16_t)),
                absl::MakeSpan(reinterpret_cast<uint16_t*>(piece.data()), piece.size() / sizeof(uint16_t)));
  }
};
constexpr device::BufferView device::Bindings::*kInputViews[] = {
    &device::Bindings::q,          &device::Bindings::k,          &device::Bindings::v,
    &device::Bindings::sinks,      &device::Bindings::q_bounds,   &device::Bindings::kv_bounds,
    &device::Bindings::kv_lengths, &device::Bindings::page_table, &device::Bindings::k_scale,
    &device::Bindings::v_scale};

std::array<InputPart, std::size(kInputViews)> InputParts(const CaseInputs& inputs) {
  const Tensors& host = inputs.host;
  return {{{"Q", AsBytes(host.q), inputs.q.get()},
           {"K", host.k.empty() ? AsBytes(host.k_codes) : AsBytes(host.k), inputs.k.get()},
           {"V", host.v.empty() ? AsBytes(host.v_codes) : AsBytes(host.v), inputs.v.get()},
           {"the sinks", AsBytes(host.sinks)},
           {"the query bounds", AsBytes(host.q_bounds)},
           {"the key bounds", AsBytes(host.kv_bounds)},
           {"the key lengths", AsBytes(host.kv_lengths)},
           {"the page table", AsBytes(host.page_table)},
           {"K's scales", AsBytes(host.k_scales)},
           {"V's scales", AsBytes(host.v_scales)}}};
}

absl::Status Put(const InputPart& part, GuardedBuffer& buffer, Inspection* inspection) {
  if (part.drawn == nullptr) return buffer.Upload(part.bytes);
  if (inspection == nullptr || !part.drawn->HasDrawing()) return buffer.Upload(part);
  return inspection->inspector().Draw(buffer.ranges()[1], part.drawn->drawing());
}

absl::StatusOr<LoadedCandidate> LoadReference(device::Device& device, absl::string_view name,
                                              const worker::v1::ReferenceKernel& kernel) {
  if (kernel.artifact().empty() || kernel.recipe().launches().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("prepare: the ", name, " reference has no artifact or no launch"));
  }
  ModuleCache modules(device, 1);
  return LoadedCandidate::Create(device, modules, kernel.artifact(), kernel.recipe());
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

// The number of elements when there is none.
int64_t FirstNotFinite(const std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  std::vector<int64_t> first(ChunkCount(n, kGrain), n);
  ParallelChunks(n, kGrain, [&](int64_t chunk, int64_t begin, int64_t end) {
    const auto bad =
        std::find_if(values.begin() + begin, values.begin() + end, [](float value) { return !std::isfinite(value); });
    if (bad != values.begin() + end) first[chunk] = bad - values.begin();
  });
  return *std::min_element(first.begin(), first.end());
}

absl::StatusOr<GuardedBuffer> CreateReference(device::Device& device, size_t bytes) {
  return GuardedBuffer::Create(device, "the reference results", bytes);
}

absl::Span<std::byte> AsWritableBytes(std::vector<float>& values) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float));
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

absl::StatusOr<InputBuffers> PutInputs(device::Device& device, const Problem& problem, const CaseInputs& inputs,
                                       Inspection* inspection) {
  InputBuffers buffers;
  for (const InputPart& part : InputParts(inputs)) {
    // Only Q, K and V have rows.
    const size_t zone = buffers.parts.size() < 3 ? ZoneBytes(problem) : GuardedBuffer::kLeastZone;
    absl::StatusOr<GuardedBuffer> buffer = GuardedBuffer::Create(device, part.name, part.size(), zone);
    if (!buffer.ok()) return buffer.status();
    if (absl::Status status = Put(part, *buffer, inspection); !status.ok()) return status;
    buffers.parts.push_back(*std::move(buffer));
  }
  return buffers;
}

absl::StatusOr<std::string> InputDamage(const InputBuffers& buffers, const CaseInputs& inputs) {
  const auto parts = InputParts(inputs);
  for (size_t i = 0; i < parts.size(); ++i) {
    const GuardedBuffer& buffer = buffers.parts[i];
    const absl::StatusOr<bool> unchanged =
        parts[i].drawn == nullptr ? buffer.Holds(parts[i].bytes) : buffer.Holds(parts[i]);
    if (!unchanged.ok()) return unchanged.status();
    if (!*unchanged) return absl::StrCat("changed its input ", buffer.name());
    absl::StatusOr<std::string> damage = buffer.Damage();
    if (!damage.ok() || !damage->empty()) return damage.ok() ? absl::StrCat(buffer.name(), ": ", *damage) : damage;
  }
  return std::string();
}

void Expect(const GuardedBuffer& buffer, uint64_t digest, Inspection& inspection, Inspection::Expected& expected) {
  if (buffer.size() == 0) return;
  const auto [before, contents, after] = buffer.ranges();
  const uint64_t zone = inspection.DigestOf(GuardedBuffer::kZoneByte, before.size);
  expected.insert(expected.end(), {{before, zone}, {contents, digest}, {after, zone}});
}

void Expect(const InputBuffers& buffers, const CaseInputs& inputs, Inspection& inspection,
            Inspection::Expected& expected) {
  for (size_t i = 0; i < buffers.parts.size(); ++i) Expect(buffers.parts[i], inputs.digests[i], inspection, expected);
}

absl::Status Restore(InputBuffers& buffers, const CaseInputs& inputs, Inspection* inspection) {
  absl::Status status;
  const auto parts = InputParts(inputs);
  for (size_t i = 0; i < parts.size(); ++i) {
    status.Update(Put(parts[i], buffers.parts[i], inspection));
    status.Update(buffers.parts[i].FillZones());
  }
  return status;
}

void FreeMemory(Case& of) {
  of.buffers = {};
  of.reference.reset();
}

absl::Status PutAgain(device::Device& device, const Problem& problem, Inspection* inspection, Case& of) {
  absl::StatusOr<InputBuffers> buffers = PutInputs(device, problem, of.inputs, inspection);
  if (!buffers.ok()) return buffers.status();
  of.buffers = *std::move(buffers);
  return PutReference(device, inspection, of);
}

absl::Status PutReference(device::Device& device, Inspection* inspection, Case& of) {
  if (inspection == nullptr) return absl::OkStatus();
  const absl::Span<const std::byte> right = AsBytes(of.exact.o);
  absl::StatusOr<GuardedBuffer> reference = CreateReference(device, right.size());
  if (!reference.ok()) return reference.status();
  of.reference = *std::move(reference);
  return of.reference->Upload(right);
}

absl::StatusOr<References> References::Create(device::Device& device, const Problem& problem,
                                              const worker::v1::PrepareRequest& request, Inspection* inspection) {
  absl::StatusOr<LoadedCandidate> exact = LoadReference(device, "exact", request.exact());
  if (!exact.ok()) return exact.status();
  absl::StatusOr<LoadedCandidate> plain = LoadReference(device, "plain", request.plain());
  if (!plain.ok()) return plain.status();
  const size_t rows = QueryRows(problem);
  absl::StatusOr<GuardedBuffer> o = GuardedBuffer::Create(device, "O", rows * problem.head_dim * sizeof(float));
  if (!o.ok()) return o.status();
  absl::StatusOr<GuardedBuffer> lse = GuardedBuffer::Create(device, "LSE", rows * sizeof(float));
  if (!lse.ok()) return lse.status();
  return References(device, problem, inspection, *std::move(exact), *std::move(plain), *std::move(o), *std::move(lse));
}

absl::Status References::Run(LoadedCandidate& kernel, const InputBuffers& inputs, GuardedBuffer& o) {
  absl::Status status = o.Fill(std::byte{0xFF});
  status.Update(lse_.Fill(std::byte{0xFF}));
  if (!status.ok()) return status;
  device::Bindings bindings = inputs.bindings();
  bindings.o = o.view();
  bindings.lse = lse_.view();
  absl::StatusOr<std::unique_ptr<device::Runnable>> runnable = kernel.Bind(bindings);
  if (!runnable.ok()) return runnable.status();
  return (*runnable)->Run();
}

absl::Status References::Accept(absl::string_view name, const GuardedBuffer& o, bool on_device,
                                std::vector<float>* values) const {
  for (const GuardedBuffer* buffer : {&o, &lse_}) {
    const absl::StatusOr<std::string> damage = buffer->Damage();
    if (!damage.ok()) return damage.status();
    if (!damage->empty()) {
      return absl::InternalError(absl::StrCat("the ", name, " reference kernel's buffer was ", *damage));
    }
  }
  if (on_device && values == nullptr) return absl::OkStatus();
  std::vector<float> unwanted;
  std::vector<float>& downloaded = values == nullptr ? unwanted : *values;
  downloaded.resize(o.size() / sizeof(float));
  if (absl::Status status = o.Download(AsWritableBytes(downloaded)); !status.ok()) return status;
  if (on_device) return absl::OkStatus();
  const int64_t bad = FirstNotFinite(downloaded);
  if (bad == static_cast<int64_t>(downloaded.size())) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the ", name, " reference kernel's O has element ", bad, " = ",
                                          downloaded[bad], "; it must be finite"));
}

absl::Status References::RunExact(Case& made) {
  GuardedBuffer* o = &o_;
  if (inspection_ != nullptr) {
    absl::StatusOr<GuardedBuffer> own = CreateReference(*device_, o_.size());
    if (!own.ok()) return own.status();
    o = &made.reference.emplace(*std::move(own));
  }
  if (absl::Status status = Run(exact_, made.buffers, *o); !status.ok()) return status;
  bool finite = false;
  if (inspection_ != nullptr) {
    const device::BufferView view = o->ranges()[1];
    // NaN and Inf do not equal themselves: their difference is NaN.
    const auto tally = inspection_->inspector().Compare(view, device::Inspector::Element::kF32, view, 0, 0);
    if (!tally.ok()) return tally.status();
    finite = tally->wrong == 0;
    const absl::StatusOr<uint64_t> digest = inspection_->DigestOf(view);
    if (!digest.ok()) return digest.status();
    made.reference_digest = *digest;
  }
  if (absl::Status status = Accept("exact", *o, finite, &made.exact.o); !status.ok()) return status;
  made.exact.lse.resize(lse_.size() / sizeof(float));
  return lse_.Download(AsWritableBytes(made.exact.lse));
}

absl::Status References::RunPlain(Case& made) {
  if (absl::Status status = Run(plain_, made.buffers, o_); !status.ok()) return status;
  constexpr float kFinite = std::numeric_limits<float>::max();
  if (inspection_ != nullptr) {
    const auto tally = inspection_->inspector().Compare(o_.ranges()[1], device::Inspector::Element::kF32,
                                                        made.reference->ranges()[1], kFinite, 0);
    if (!tally.ok()) return tally.status();
    made.plain_error = tally->max_error;
    if (tally->wrong == 0) return Accept("plain", o_, /*on_device=*/true, nullptr);
  }
  if (absl::Status status = Accept("plain", o_, /*on_device=*/false, &plain_o_); !status.ok()) return status;
  made.plain_error = TallyOf(plain_o_, made.exact.o, kFinite, 0).max_error;
  return absl::OkStatus();
}

absl::Status References::CheckAgainstHost(const Case& made) const {
  if (Flops(problem_) > kMaxHostFlops) return absl::OkStatus();
  const HostResult host = HostReference(problem_, OnHost(made.inputs));
  absl::Status status = Agree("O", made.distribution, made.exact.o, host.o);
  status.Update(Agree("LSE", made.distribution, made.exact.lse, host.lse));
  return status;
}

absl::StatusOr<Case> References::MakeCase(Distribution distribution, CaseInputs inputs) {
  absl::StatusOr<InputBuffers> buffers = PutInputs(*device_, problem_, inputs, inspection_);
  if (!buffers.ok()) return buffers.status();
  Case made = {distribution, std::move(inputs), *std::move(buffers), {}};
  if (inspection_ != nullptr) {
    std::vector<device::BufferView> contents;
    for (const GuardedBuffer& part : made.buffers.parts) contents.push_back(part.ranges()[1]);
    absl::StatusOr<std::vector<uint64_t>> digests = inspection_->Digests(contents);
    if (!digests.ok()) return digests.status();
    made.inputs.digests = *std::move(digests);
  }
  absl::Status status = RunExact(made);
  if (status.ok()) status = RunPlain(made);
  if (status.ok()) status = CheckAgainstHost(made);
  if (!status.ok()) return status;
  return made;
}

}  // namespace attune::verify
