#include "server/verify/inspection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "server/verify/digest.h"
#include "server/verify/half.h"
#include "server/verify/normal_tensor.h"
#include "server/verify/verify.h"

namespace attune::verify {
namespace {

using device::BufferView;
using device::Inspector;

// No multiple of anything.
constexpr int64_t kElements = 70'003;
constexpr int64_t kRow = 64;
constexpr uint64_t kKey = 0x1234'5678'9abc'def1u;

template <typename T>
absl::Span<const std::byte> BytesOf(const std::vector<T>& values) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T));
}

absl::Status Disagree(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the device's check kernels disagree with the host's code: ", what));
}

// Device memory for a test, with a margin of 256 bytes before it.
class TestBuffer {
 public:
  static constexpr size_t kMargin = 256;

  static absl::StatusOr<TestBuffer> Of(device::Device& device, absl::Span<const std::byte> bytes) {
    absl::StatusOr<std::unique_ptr<device::Buffer>> memory = device.Allocate(kMargin + bytes.size());
    if (!memory.ok()) return memory.status();
    if (absl::Status status = device.Upload(**memory, kMargin, bytes); !status.ok()) return status;
    return TestBuffer(*std::move(memory), bytes.size());
  }

  BufferView view(size_t first = 0) const { return {buffer_.get(), kMargin + first, size_ - first}; }
  absl::Status Download(device::Device& device, absl::Span<std::byte> bytes) const {
    return device.Download(*buffer_, kMargin, bytes);
  }

 private:
  TestBuffer(std::unique_ptr<device::Buffer> buffer, size_t size) : buffer_(std::move(buffer)), size_(size) {}

  std::unique_ptr<device::Buffer> buffer_;
  size_t size_;
};

NormalTensor TestTensor(v1::DType dtype, bool changed) {
  NormalTensor tensor(kElements, kKey, dtype, 0.5f, 3.0f);
  if (changed) tensor.ChangeRows(kRow);
  return tensor;
}

absl::Status CheckDrawing(device::Device& device, const NormalTensor& tensor) {
  std::vector<uint16_t> drawn(static_cast<size_t>(kElements));
  absl::StatusOr<TestBuffer> buffer = TestBuffer::Of(device, BytesOf(drawn));
  if (!buffer.ok()) return buffer.status();
  absl::Status status = device.inspector()->Draw(buffer->view(), tensor.drawing());
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(drawn.data()), drawn.size() * sizeof(uint16_t));
  if (status.ok()) status = buffer->Download(device, bytes);
  if (!status.ok()) return status;
  return drawn == tensor.Values() ? absl::OkStatus() : Disagree("drawn inputs");
}

// Ranges that begin and end at any byte.
absl::Status CheckDigests(device::Device& device) {
  const std::vector<uint16_t> values = TestTensor(v1::DTYPE_F16, false).Values();
  const absl::Span<const std::byte> bytes = BytesOf(values);
  absl::StatusOr<TestBuffer> buffer = TestBuffer::Of(device, bytes);
  if (!buffer.ok()) return buffer.status();
  std::vector<BufferView> ranges;
  std::vector<uint64_t> expected;
  for (size_t i = 0; i < 200; ++i) {  // more than a kernel's parameters hold
    BufferView range = buffer->view(i * 13 % 64);
    range.size = i % 5 == 0 ? i : range.size - i;
    ranges.push_back(range);
    expected.push_back(verify::DigestOf(bytes.subspan(i * 13 % 64, range.size), kKey));
  }
  const absl::StatusOr<std::vector<uint64_t>> digests = device.inspector()->Digests(ranges, kKey);
  if (!digests.ok()) return digests.status();
  return *digests == expected ? absl::OkStatus() : Disagree("digests");
}

absl::Status CheckTally(device::Device& device, Inspector::Element type, absl::Span<const std::byte> out,
                        const std::vector<float>& values, const std::vector<float>& reference) {
  constexpr float kAbsolute = 1e-3f, kRelative = 1e-3f;
  const OutputTally expected = TallyOf(values, reference, kAbsolute, kRelative);
  absl::StatusOr<TestBuffer> outputs = TestBuffer::Of(device, out);
  absl::StatusOr<TestBuffer> references = TestBuffer::Of(device, BytesOf(reference));
  if (!outputs.ok()) return outputs.status();
  if (!references.ok()) return references.status();
  const absl::StatusOr<Inspector::Tally> tally =
      device.inspector()->Compare(outputs->view(), type, references->view(), kAbsolute, kRelative);
  if (!tally.ok()) return tally.status();
  const bool same = tally->wrong == expected.wrong && tally->max_error == expected.max_error &&
                    tally->max_reference == expected.max_reference;
  return same ? absl::OkStatus() : Disagree("compared outputs");
}

// Of every value of 16 bits, each beside one that it may be near to.
absl::Status CheckTallies(device::Device& device, v1::DType dtype, bool finite) {
  std::vector<uint16_t> out(static_cast<size_t>(kElements));
  std::vector<float> values(out.size()), reference(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<uint16_t>(i * 2654435761u >> 7);
    if (finite && !std::isfinite(ToFloat(dtype, out[i]))) out[i] = 0;
    values[i] = ToFloat(dtype, out[i]);
    reference[i] = values[i] * (1 + 1e-5f * static_cast<float>(i % 211)) + 1e-5f * static_cast<float>(i % 97);
    if (i % 3001 == 0 && !finite) reference[i] = std::numeric_limits<float>::quiet_NaN();
  }
  const auto type = dtype == v1::DTYPE_BF16 ? Inspector::Element::kBf16 : Inspector::Element::kF16;
  absl::Status status = CheckTally(device, type, BytesOf(out), values, reference);
  if (status.ok()) status = CheckTally(device, Inspector::Element::kF32, BytesOf(values), values, reference);
  return status;
}

absl::Status CheckCopy(device::Device& device) {
  std::vector<uint16_t> values = TestTensor(v1::DTYPE_BF16, true).Values();
  absl::StatusOr<TestBuffer> from = TestBuffer::Of(device, BytesOf(values));
  absl::StatusOr<TestBuffer> to = TestBuffer::Of(device, BytesOf(std::vector<uint16_t>(values.size() - 1)));
  if (!from.ok()) return from.status();
  if (!to.ok()) return to.status();
  if (absl::Status status = device.inspector()->Copy(to->view(), from->view(sizeof(uint16_t))); !status.ok()) {
    return status;
  }
  std::vector<uint16_t> copied(values.size() - 1);
  const auto bytes = absl::MakeSpan(reinterpret_cast<std::byte*>(copied.data()), copied.size() * sizeof(uint16_t));
  if (absl::Status status = to->Download(device, bytes); !status.ok()) return status;
  return std::equal(copied.begin(), copied.end(), values.begin() + 1) ? absl::OkStatus() : Disagree("copies");
}

}  // namespace

Inspection::Inspection(Inspector& inspector) : inspector_(&inspector), key_(absl::Uniform<uint64_t>(absl::BitGen())) {}

absl::StatusOr<std::vector<uint64_t>> Inspection::Digests(absl::Span<const BufferView> ranges) {
  return inspector_->Digests(ranges, key_);
}

absl::StatusOr<uint64_t> Inspection::DigestOf(const BufferView& range) {
  absl::StatusOr<std::vector<uint64_t>> digests = Digests({range});
  if (!digests.ok()) return digests.status();
  return digests->front();
}

uint64_t Inspection::DigestOf(absl::Span<const std::byte> bytes) const { return verify::DigestOf(bytes, key_); }

absl::StatusOr<bool> Inspection::Finds(const Expected& expected) {
  std::vector<BufferView> ranges;
  ranges.reserve(expected.size());
  for (const auto& [range, digest] : expected) ranges.push_back(range);
  if (ranges.empty()) return true;
  const absl::StatusOr<std::vector<uint64_t>> digests = Digests(ranges);
  if (!digests.ok()) return digests.status();
  return std::equal(digests->begin(), digests->end(), expected.begin(),
                    [](uint64_t found, const auto& wanted) { return found == wanted.second; });
}

uint64_t Inspection::DigestOf(std::byte value, size_t bytes) {
  const auto [entry, is_new] = uniform_.try_emplace({value, bytes}, 0);
  if (is_new) entry->second = verify::DigestOf(value, bytes, key_);
  return entry->second;
}

absl::Status CheckInspector(device::Device& device) {
  absl::Status status;
  for (const v1::DType dtype : {v1::DTYPE_F16, v1::DTYPE_BF16}) {
    for (const bool flag : {false, true}) {
      if (status.ok()) status = CheckDrawing(device, TestTensor(dtype, flag));
      if (status.ok()) status = CheckTallies(device, dtype, /*finite=*/flag);
    }
  }
  if (status.ok()) status = CheckDigests(device);
  if (status.ok()) status = CheckCopy(device);
  return status;
}

}  // namespace attune::verify
