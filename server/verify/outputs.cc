#include "server/verify/outputs.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "server/verify/half.h"
#include "server/verify/parallel.h"
#include "server/verify/row_map.h"

namespace attune::verify {
namespace {

// Elements that the host compares of what the device has found right.
constexpr size_t kHostBlock = 4096;

template <typename T>
absl::Span<const T> As(absl::Span<const std::byte> bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

bool SameContents(const GuardedBuffer::Snapshot& a, const GuardedBuffer::Snapshot& b) {
  return SameBytes(a.contents(), b.contents());
}

}  // namespace

std::string OutputSnapshot::Damage() const {
  if (std::string damage = right.has_value() ? "" : o.Damage(); !damage.empty()) return absl::StrCat("O: ", damage);
  if (lse.bytes.empty()) return "";
  if (std::string damage = lse.Damage(); !damage.empty()) return absl::StrCat("LSE: ", damage);
  return "";
}

bool OutputSnapshot::SameBits(const OutputSnapshot& other) const {
  if (right.has_value() != other.right.has_value()) return false;
  const bool same = right.has_value() ? right->digest == other.right->digest : SameContents(o, other.o);
  return same && SameContents(lse, other.lse);
}

OutputDigests::OutputDigests(const OutputSnapshot& snapshot, const Inspection& inspection)
    : o(inspection.DigestOf(snapshot.o.contents())), lse(inspection.DigestOf(snapshot.lse.contents())) {}

RightOutput::RightOutput(const Problem& problem, const HostResult& exact) : o(exact.o.size()), lse(exact.lse.size()) {
  constexpr int64_t kGrain = 1 << 16;
  ParallelChunks(static_cast<int64_t>(o.size()), kGrain, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) o[i] = FromFloat(problem.dtype, exact.o[i]);
  });
  // Off by one, so that the only row of a problem is wrong too.
  std::transform(exact.lse.begin(), exact.lse.end(), lse.begin(), [](float value) { return value + 1; });
}

absl::StatusOr<Outputs> Outputs::Create(device::Device& device, const Problem& problem) {
  const size_t rows = QueryRows(problem);
  absl::StatusOr<GuardedBuffer> o =
      GuardedBuffer::Create(device, "O", rows * problem.head_dim * DTypeBytes(problem.dtype), ZoneBytes(problem));
  if (!o.ok()) return o.status();
  if (!problem.lse) return Outputs(*std::move(o), std::nullopt);
  absl::StatusOr<GuardedBuffer> lse = GuardedBuffer::Create(device, "LSE", rows * sizeof(float));
  if (!lse.ok()) return lse.status();
  return Outputs(*std::move(o), *std::move(lse));
}

device::Bindings Outputs::BoundTo(const InputBuffers& inputs) const {
  device::Bindings bindings = inputs.bindings();
  bindings.o = o_.view();
  if (lse_) bindings.lse = lse_->view();
  return bindings;
}

absl::Status Outputs::Fill(std::byte value) {
  absl::Status status = o_.Fill(value);
  if (lse_) status.Update(lse_->Fill(value));
  return status;
}

absl::Status Outputs::FillZones() {
  absl::Status status = o_.FillZones();
  if (lse_) status.Update(lse_->FillZones());
  return status;
}

absl::Status Outputs::Plant(const RightOutput& right, size_t shift) {
  absl::Status status = o_.UploadFrom(AsBytes(right.o), shift * sizeof(uint16_t));
  status.Update(PlantLse(right, shift));
  return status;
}

absl::Status Outputs::PlantLse(const RightOutput& right, size_t shift) {
  if (!lse_) return absl::OkStatus();
  return lse_->UploadFrom(AsBytes(right.lse), shift % right.lse.size() * sizeof(float));
}

absl::Status Outputs::PlantFrom(const GuardedBuffer& right_o, const RightOutput& right, size_t shift,
                                Inspection& inspection) {
  const device::BufferView to = o_.ranges()[1], from = right_o.ranges()[1];
  const size_t first = shift * sizeof(uint16_t), rest = to.size - first;
  absl::Status status =
      inspection.inspector().Copy({to.buffer, to.offset, rest}, {from.buffer, from.offset + first, rest});
  status.Update(inspection.inspector().Copy({to.buffer, to.offset + rest, first}, {from.buffer, from.offset, first}));
  status.Update(PlantLse(right, shift));
  return status;
}

absl::Status Outputs::Observe(const Problem& problem, const Case& expected, Inspection& inspection,
                              absl::BitGenRef random, OutputSnapshot& snapshot) const {
  absl::StatusOr<std::optional<OutputSnapshot::Right>> right = FindRight(problem, expected, inspection, random);
  if (!right.ok()) return right.status();
  if (!right->has_value()) return Download(snapshot);
  snapshot.right = *right;
  return lse_ ? lse_->Download(snapshot.lse) : absl::OkStatus();
}

absl::StatusOr<bool> Outputs::Hold(const OutputDigests& digests, Inspection& inspection) const {
  Inspection::Expected expected;
  Expect(o_, digests.o, inspection, expected);
  if (lse_) Expect(*lse_, digests.lse, inspection, expected);
  return inspection.Finds(expected);
}

absl::StatusOr<std::optional<OutputSnapshot::Right>> Outputs::FindRight(const Problem& problem, const Case& expected,
                                                                        Inspection& inspection,
                                                                        absl::BitGenRef random) const {
  const auto [before, contents, after] = o_.ranges();
  const device::BufferView reference = expected.reference->ranges()[1];
  absl::StatusOr<std::vector<uint64_t>> digests = inspection.Digests({contents, reference, before, after});
  if (!digests.ok()) return digests.status();
  const uint64_t zone = inspection.DigestOf(GuardedBuffer::kZoneByte, before.size);
  const std::vector<uint64_t> wanted = {digests->front(), expected.reference_digest, zone, zone};
  if (*digests != wanted) return std::nullopt;
  const auto type = problem.dtype == v1::DTYPE_BF16 ? device::Inspector::Element::kBf16  //
                                                    : device::Inspector::Element::kF16;
  const Tolerance tolerance = OutputTolerance(problem, static_cast<int64_t>(expected.exact.o.size()));
  const auto tally = inspection.inspector().Compare(contents, type, reference, static_cast<float>(tolerance.absolute),
                                                    static_cast<float>(tolerance.relative));
  if (!tally.ok()) return tally.status();
  if (tally->wrong > 0 || tally->max_error > ErrorLimit(problem, tally->max_reference, expected.plain_error)) {
    return std::nullopt;
  }
  const absl::StatusOr<bool> host = HostFindsRight(problem, expected, random);
  if (!host.ok()) return host.status();
  if (!*host) return std::nullopt;
  return OutputSnapshot::Right{digests->front(), tally->max_error};
}

absl::StatusOr<bool> Outputs::HostFindsRight(const Problem& problem, const Case& expected,
                                             absl::BitGenRef random) const {
  const absl::Span<const float> reference = expected.exact.o;
  const size_t count = std::min(kHostBlock, reference.size());
  const size_t first = absl::Uniform<size_t>(random, 0, reference.size() - count + 1);
  std::vector<uint16_t> block(count);
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(block.data()), count * sizeof(uint16_t));
  if (absl::Status status = o_.Download(bytes, first * sizeof(uint16_t)); !status.ok()) return status;
  std::vector<float> values(count);
  std::transform(block.begin(), block.end(), values.begin(),
                 [&](uint16_t bits) { return ToFloat(problem.dtype, bits); });
  const Tolerance tolerance = OutputTolerance(problem, static_cast<int64_t>(reference.size()));
  return TallyOf(values, reference.subspan(first, count), static_cast<float>(tolerance.absolute),
                 static_cast<float>(tolerance.relative))
             .wrong == 0;
}

absl::Status Outputs::Download(OutputSnapshot& snapshot) const {
  snapshot.right.reset();
  absl::Status status = o_.Download(snapshot.o);
  if (status.ok() && lse_) status = lse_->Download(snapshot.lse);
  return status;
}

Finding CompareWith(const Problem& problem, const OutputSnapshot& outputs, const Case& expected,
                    v1::Accuracy& accuracy) {
  const Comparison o = outputs.right.has_value() ? Comparison{true, outputs.right->max_abs_error, ""}
                                                 : CompareOutput(problem, As<uint16_t>(outputs.o.contents()),
                                                                 expected.exact.o, expected.plain_error);
  if (accuracy.cases() == 1 || o.max_abs_error > accuracy.max_abs_error()) {
    accuracy.set_max_abs_error(o.max_abs_error);
    accuracy.set_plain_max_abs_error(expected.plain_error);
  }
  if (!o.ok) return {v1::VERDICT_WRONG_RESULT, o.detail};
  if (!problem.lse) return {};
  const Comparison lse = CompareLse(As<float>(outputs.lse.contents()), expected.exact.lse);
  return lse.ok ? Finding{} : Finding{v1::VERDICT_WRONG_RESULT, lse.detail};
}

}  // namespace attune::verify
