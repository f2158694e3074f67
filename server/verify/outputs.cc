#include "server/verify/outputs.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/verify/half.h"
#include "server/verify/row_map.h"

namespace attune::verify {
namespace {

template <typename T>
absl::Span<const T> As(absl::Span<const std::byte> bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

bool SameContents(const GuardedBuffer::Snapshot& a, const GuardedBuffer::Snapshot& b) {
  return a.contents().size() == b.contents().size() &&
         (a.contents().empty() || std::memcmp(a.contents().data(), b.contents().data(), a.size) == 0);
}

}  // namespace

std::string OutputSnapshot::Damage() const {
  if (std::string damage = o.Damage(); !damage.empty()) return absl::StrCat("O: ", damage);
  if (lse.bytes.empty()) return "";
  if (std::string damage = lse.Damage(); !damage.empty()) return absl::StrCat("LSE: ", damage);
  return "";
}

bool OutputSnapshot::SameBits(const OutputSnapshot& other) const {
  return SameContents(o, other.o) && SameContents(lse, other.lse);
}

RightOutput::RightOutput(const Problem& problem, const HostResult& exact) : o(exact.o.size()), lse(exact.lse.size()) {
  std::transform(exact.o.begin(), exact.o.end(), o.begin(),
                 [&](float value) { return FromFloat(problem.dtype, value); });
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
  if (lse_) status.Update(lse_->UploadFrom(AsBytes(right.lse), shift % right.lse.size() * sizeof(float)));
  return status;
}

absl::Status Outputs::Download(OutputSnapshot& snapshot) const {
  absl::Status status = o_.Download(snapshot.o);
  if (status.ok() && lse_) status = lse_->Download(snapshot.lse);
  return status;
}

Finding CompareWith(const Problem& problem, const OutputSnapshot& outputs, const Case& expected,
                    v1::Accuracy& accuracy) {
  const Comparison o =
      CompareOutput(problem, As<uint16_t>(outputs.o.contents()), expected.exact.o, expected.plain_error);
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
