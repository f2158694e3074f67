#include "server/store/sqlite/names.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"

namespace attune::store::sqlite {
namespace {

constexpr char kDamagedRowUrl[] = "attune.store/damaged_row";

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

absl::StatusOr<int64_t> Intern(Connection& connection, absl::string_view select, absl::string_view insert,
                               absl::string_view text) {
  absl::StatusOr<std::optional<int64_t>> id = Statement(connection, select).Bind(text).FindInt();
  if (!id.ok()) return id.status();
  if (id->has_value()) return **id;
  if (absl::Status status = Statement(connection, insert).Bind(text).Run(); !status.ok()) return status;
  return connection.LastInsertId();
}

constexpr int kDeepest = 32;  // messages within messages

// Cleans the texts of a serialised message of this type. False when it is not even the encoding of a message.
bool CleanTexts(const google::protobuf::Descriptor& type, int depth, std::string& bytes) {
  using google::protobuf::FieldDescriptor;
  google::protobuf::UnknownFieldSet fields;
  if (depth == 0 || !fields.ParseFromString(bytes)) return false;
  for (int i = 0; i < fields.field_count(); ++i) {
    google::protobuf::UnknownField* field = fields.mutable_field(i);
    const FieldDescriptor* known = type.FindFieldByNumber(field->number());
    if (known == nullptr || field->type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    std::string& value = *field->mutable_length_delimited();
    if (known->type() == FieldDescriptor::TYPE_STRING) value = Cleaned(value, std::string::npos);
    if (known->type() == FieldDescriptor::TYPE_MESSAGE && !CleanTexts(*known->message_type(), depth - 1, value)) {
      return false;
    }
  }
  bytes.clear();
  return fields.SerializeToString(&bytes);
}

}  // namespace

std::optional<int64_t> IdOf(absl::string_view collection, absl::string_view name) {
  int64_t id = 0;
  if (!absl::ConsumePrefix(&name, collection) || !absl::SimpleAtoi(name, &id) || id < 1 || absl::StrCat(id) != name) {
    return std::nullopt;
  }
  return id;
}

int64_t ToNanoseconds(const google::protobuf::Timestamp& time) {
  return time.seconds() * kNanosecondsPerSecond + time.nanos();
}

google::protobuf::Timestamp FromNanoseconds(int64_t nanoseconds) {
  google::protobuf::Timestamp time;
  int64_t seconds = nanoseconds / kNanosecondsPerSecond;
  int64_t rest = nanoseconds % kNanosecondsPerSecond;
  if (rest < 0) {
    rest += kNanosecondsPerSecond;
    --seconds;
  }
  time.set_seconds(seconds);
  time.set_nanos(static_cast<int32_t>(rest));
  return time;
}

google::protobuf::Timestamp Now() { return FromNanoseconds(absl::GetCurrentTimeNanos()); }

absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text) {
  return Intern(connection, "SELECT id FROM problems WHERE text = ?", "INSERT INTO problems (text) VALUES (?)", text);
}

absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name) {
  return Intern(connection, "SELECT id FROM devices WHERE name = ?", "INSERT INTO devices (name) VALUES (?)", name);
}

absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint) {
  return Intern(connection, "SELECT id FROM device_classes WHERE fingerprint = ?",
                "INSERT INTO device_classes (fingerprint) VALUES (?)", fingerprint);
}

absl::Status Parse(absl::string_view bytes, absl::string_view what, google::protobuf::Message& message) {
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  std::string cleaned(bytes);
  if (CleanTexts(*message.GetDescriptor(), kDeepest, cleaned) && message.ParseFromString(cleaned)) {
    return absl::OkStatus();
  }
  message.Clear();
  absl::Status status = absl::DataLossError(absl::StrCat("the stored ", what, " is damaged"));
  status.SetPayload(kDamagedRowUrl, absl::Cord());
  return status;
}

bool IsDamagedRow(const absl::Status& status) { return status.GetPayload(kDamagedRowUrl).has_value(); }

bool SkipDamaged(const absl::Status& status, absl::string_view table, int64_t id) {
  if (!absl::IsDataLoss(status)) return false;
  LogError("a stored row is damaged", {{"table", table}, {"row", id}, {"reason", status.message()}});
  return true;
}

}  // namespace attune::store::sqlite
