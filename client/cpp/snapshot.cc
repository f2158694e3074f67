#include "client/cpp/snapshot.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <openssl/sha.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/answer_at.h"
#include "client/cpp/files.h"
#include "proto/attune/domain.h"
#include "proto/attune/objective.h"

namespace attune {
namespace {

using ::google::protobuf::io::ArrayInputStream;
using ::google::protobuf::util::ParseDelimitedFromZeroCopyStream;
using ::google::protobuf::util::SerializeDelimitedToZeroCopyStream;

constexpr absl::string_view kMagic = "ATTNSNAP";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 24;  // before the digest
constexpr size_t kBodyOffset = kHeaderBytes + SHA256_DIGEST_LENGTH;

// In the order in which a problem's range is looked for.
constexpr v1::Domain::Axis kAxes[] = {v1::Domain::AXIS_KV, v1::Domain::AXIS_Q_AND_KV, v1::Domain::AXIS_Q,
                                      v1::Domain::AXIS_BATCH};

// Of problems that differ along `axis` alone the same one.
Problem WithoutLength(v1::Domain::Axis axis, const Problem& problem) { return WithLength(axis, 0, problem); }

template <typename T>
void AppendLittleEndian(std::string* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

uint64_t ReadLittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

std::string Digest(absl::string_view header, absl::string_view body) {
  const std::string all = absl::StrCat(header, body);
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

absl::Status Damaged(const std::string& path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("snapshot '", path, "' is damaged: ", why));
}

// The server's own detail, then where this copy comes from.
AnswerPtr Marked(const v1::GetBestResponse& answer, absl::Time exported) {
  auto marked = std::make_shared<v1::GetBestResponse>(answer);
  marked->set_provenance_detail(absl::StrCat(answer.provenance_detail(), answer.provenance_detail().empty() ? "" : "; ",
                                             "from the snapshot of ",
                                             absl::FormatTime("%Y-%m-%d %H:%M UTC", exported, absl::UTCTimeZone())));
  return marked;
}

}  // namespace

Snapshot::Snapshot(absl::Time exported, v1::ListDevicesResponse devices, std::vector<SnapshotAnswer> answers)
    : exported_(exported), devices_(std::move(devices)), answers_(std::move(answers)) {
  for (size_t number = 0; number < answers_.size(); ++number) {
    const SnapshotAnswer& entry = answers_[number];
    const absl::StatusOr<Problem> problem = FromProto(entry.request.problem());
    if (!problem.ok()) continue;  // a shape that only a later version knows: nobody can ask for it here
    const AnswerKey key(
        {*problem, entry.request.device_id(), entry.request.policy(), UnlessTime(entry.request.objective())});
    index_.insert_or_assign(key, Marked(*entry.answer, exported_));
    for (const v1::Domain& domain : entry.answer->domains()) {
      const Problem common = WithoutLength(domain.axis(), *problem);
      ranges_[AnswerKey({common, key.device_id, key.policy, key.objective})].push_back(
          {domain.axis(), domain.low(), domain.high(), number});
    }
  }
}

absl::Status Snapshot::Write(const std::string& path) const {
  std::string body;
  {
    google::protobuf::io::StringOutputStream stream(&body);
    SerializeDelimitedToZeroCopyStream(devices_, &stream);
    for (const SnapshotAnswer& entry : answers_) {
      SerializeDelimitedToZeroCopyStream(entry.request, &stream);
      SerializeDelimitedToZeroCopyStream(*entry.answer, &stream);
    }
  }
  std::string header(kMagic);
  AppendLittleEndian(&header, kVersion);
  AppendLittleEndian(&header, static_cast<uint32_t>(answers_.size()));
  AppendLittleEndian(&header, absl::ToUnixSeconds(exported_));
  return ReplaceFile(path, absl::StrCat(header, Digest(header, body), body));
}

absl::StatusOr<std::shared_ptr<const Snapshot>> Snapshot::Load(const std::string& path) {
  absl::StatusOr<std::string> file = ReadFile(path);
  if (!file.ok()) return file.status();
  const absl::string_view bytes = *file;
  if (bytes.size() < kBodyOffset || bytes.substr(0, kMagic.size()) != kMagic) {
    return Damaged(path, "it does not begin as a snapshot does");
  }
  const uint64_t version = ReadLittleEndian(bytes.substr(8, 4));
  if (version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("snapshot '", path, "' has format version ", version, "; this program reads version ", kVersion));
  }
  const absl::string_view body = bytes.substr(kBodyOffset);
  if (bytes.substr(kHeaderBytes, SHA256_DIGEST_LENGTH) != Digest(bytes.substr(0, kHeaderBytes), body)) {
    return Damaged(path, "its SHA-256 does not match");
  }
  if (body.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return Damaged(path, "it is over 2 GiB");
  ArrayInputStream stream(body.data(), static_cast<int>(body.size()));
  v1::ListDevicesResponse devices;
  if (!ParseDelimitedFromZeroCopyStream(&devices, &stream, nullptr)) return Damaged(path, "it lacks its devices");
  const uint64_t count = ReadLittleEndian(bytes.substr(12, 4));
  std::vector<SnapshotAnswer> answers;
  while (answers.size() < count) {
    SnapshotAnswer entry;
    auto answer = std::make_shared<v1::GetBestResponse>();
    if (!ParseDelimitedFromZeroCopyStream(&entry.request, &stream, nullptr) ||
        !ParseDelimitedFromZeroCopyStream(answer.get(), &stream, nullptr)) {
      return Damaged(path, absl::StrCat("it holds fewer than ", count, " answers"));
    }
    entry.answer = std::move(answer);
    answers.push_back(std::move(entry));
  }
  const auto exported = absl::FromUnixSeconds(static_cast<int64_t>(ReadLittleEndian(bytes.substr(16, 8))));
  return std::make_shared<const Snapshot>(exported, std::move(devices), std::move(answers));
}

AnswerPtr Snapshot::Find(const AnswerKeyView& key) const {
  AnswerPtr found = FindBy(key);
  if (found != nullptr || key.objective == v1::OBJECTIVE_UNSPECIFIED) return found;
  found = FindBy({key.problem, key.device_id, key.policy});
  if (found == nullptr) return nullptr;
  auto fastest = std::make_shared<v1::GetBestResponse>(*found);
  fastest->set_provenance_detail(absl::StrCat(
      found->provenance_detail(), "; chosen by time: it has none with the least ", AmountName(key.objective)));
  return fastest;
}

AnswerPtr Snapshot::FindBy(const AnswerKeyView& key) const {
  AnswerKeyView wanted = {key.problem, key.device_id, key.policy, key.objective};
  if (wanted.device_id.empty() && devices_.devices_size() > 0) wanted.device_id = devices_.devices(0).id();
  if (AnswerPtr found = FindOn(wanted); found != nullptr) return found;
  // The name may be a UUID, or the alias of a class, whose devices all have the same answers.
  for (const v1::Device& device : devices_.devices()) {
    if (wanted.device_id != device.uuid() && wanted.device_id != device.class_alias()) continue;
    return FindOn({wanted.problem, device.id(), wanted.policy, wanted.objective});
  }
  return nullptr;
}

AnswerPtr Snapshot::FindOn(const AnswerKeyView& key) const {
  if (const auto it = index_.find(key); it != index_.end()) return it->second;
  return FindInARange(key);
}

AnswerPtr Snapshot::FindInARange(const AnswerKeyView& key) const {
  for (const v1::Domain::Axis axis : kAxes) {
    if (axis == v1::Domain::AXIS_Q_AND_KV && key.problem.seq_q != key.problem.seq_kv) continue;
    const Problem common = WithoutLength(axis, key.problem);
    const auto ranges = ranges_.find(AnswerKeyView{common, key.device_id, key.policy, key.objective});
    if (ranges == ranges_.end()) continue;
    const int64_t length = LengthAlong(axis, key.problem);
    for (const Range& range : ranges->second) {
      if (range.axis != axis || length < range.low || length > range.high) continue;
      const SnapshotAnswer& entry = answers_[range.answer];
      const absl::StatusOr<Problem> answered = FromProto(entry.request.problem());
      if (!answered.ok()) return nullptr;
      const absl::StatusOr<AnswerPtr> at = AnswerAt(*entry.answer, *answered, key.problem);
      if (!at.ok()) return nullptr;  // a range that does not fit its recipe
      v1::GetBestResponse with_code = **at;
      with_code.set_artifact(entry.answer->artifact());
      return Marked(with_code, exported_);
    }
  }
  return nullptr;
}

}  // namespace attune
