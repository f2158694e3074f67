#include "server/store/damaged_rows.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/attune/quote.h"
#include "server/base/log.h"

namespace attune::store {
namespace {

constexpr char kDamagedRowUrl[] = "attune.store/damaged_row";

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

v1::Operation DamagedOperation(absl::string_view name, const absl::Status& status) {
  v1::Operation operation;
  operation.set_name(std::string(name));
  operation.set_state(v1::Operation::STATE_FAILED);
  operation.set_done(true);
  operation.mutable_error()->set_code(static_cast<int>(status.code()));
  operation.mutable_error()->set_message(std::string(status.message()));
  return operation;
}

}  // namespace attune::store
