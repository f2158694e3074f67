#include "client/dashboard/query_fields.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/time_util.h"
#include "proto/attune/problem.h"
#include "proto/attune/quote.h"

namespace attune::dashboard {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::util::TimeUtil;

std::optional<std::string> Decode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] != '%') {
      decoded.push_back(text[i] == '+' ? ' ' : text[i]);
    } else if (i + 2 < text.size() && absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte) &&
               absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1]))) {
      decoded.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return decoded;
}

// Printable writes what is not UTF-8, or a control character, as escapes; text that has neither is left as it is.
bool IsText(const std::string& text) { return Printable(text) == text; }

std::string ValuesOf(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) names.push_back(type.value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

bool IsLeaf(const Descriptor& type) {
  return &type == v1::Problem::descriptor() || &type == google::protobuf::Timestamp::descriptor() ||
         &type == google::protobuf::Duration::descriptor();
}

// Every name below `type` that a query may set.
void CollectNames(const Descriptor& type, const std::string& prefix, std::vector<std::string>* names) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string name = absl::StrCat(prefix, field.name());
    if (field.message_type() == nullptr || IsLeaf(*field.message_type())) {
      names->push_back(name);
    } else if (!field.is_repeated()) {
      CollectNames(*field.message_type(), absl::StrCat(name, "."), names);
    }
  }
}

bool IsRefused(const std::string& name, const QueryRules& rules) {
  return std::find(rules.refused.begin(), rules.refused.end(), name) != rules.refused.end();
}

std::string AllowedNames(const Descriptor& type, const QueryRules& rules) {
  std::vector<std::string> names;
  for (const auto& [alias, name] : rules.aliases) names.emplace_back(alias);
  CollectNames(type, "", &names);
  const auto refused = [&](const std::string& name) { return IsRefused(name, rules); };
  names.erase(std::remove_if(names.begin(), names.end(), refused), names.end());
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

// Sets a field of a number, one by one or as one more of a list.
template <typename Value>
using Setter = void (Reflection::*)(Message*, const FieldDescriptor*, Value) const;
template <typename Value>
void Put(Message* message, const FieldDescriptor* field, Value value, Setter<Value> set, Setter<Value> add) {
  (message->GetReflection()->*(field->is_repeated() ? add : set))(message, field, value);
}

template <typename Integer>
bool PutInteger(Message* message, const FieldDescriptor* field, const std::string& text, Setter<Integer> set,
                Setter<Integer> add) {
  Integer value = 0;
  if (!absl::SimpleAtoi(text, &value)) return false;
  Put(message, field, value, set, add);
  return true;
}

// What the values of a field may be, when `text` is not one; empty once it is set.
std::string PutMessage(Message* message, const FieldDescriptor* field, const std::string& text) {
  const Reflection& reflection = *message->GetReflection();
  Message* value = reflection.MutableMessage(message, field);
  if (field->message_type() == v1::Problem::descriptor()) {
    const absl::StatusOr<Problem> problem = ParseProblem(text);
    if (!problem.ok()) return absl::StrCat("a problem as b2.h8.q512.d64.f16 (", problem.status().message(), ")");
    value->CopyFrom(ToProto(*problem));
  } else if (field->message_type() == google::protobuf::Timestamp::descriptor()) {
    google::protobuf::Timestamp time;
    if (!TimeUtil::FromString(text, &time)) return "a time of RFC 3339 as 2026-11-01T00:00:00Z";
    value->CopyFrom(time);
  } else {
    google::protobuf::Duration duration;
    if (!TimeUtil::FromString(text, &duration)) return "a duration as 3.5s";
    value->CopyFrom(duration);
  }
  return "";
}

std::string PutValue(Message* message, const FieldDescriptor* field, const std::string& text) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field->type() == FieldDescriptor::TYPE_BYTES) return "nothing: it is not for queries";
      if (field->is_repeated()) {
        message->GetReflection()->AddString(message, field, text);
      } else {
        message->GetReflection()->SetString(message, field, text);
      }
      return "";
    case FieldDescriptor::CPPTYPE_INT32:
      return PutInteger<int32_t>(message, field, text, &Reflection::SetInt32, &Reflection::AddInt32)
                 ? ""
                 : "integers of 32 bits";
    case FieldDescriptor::CPPTYPE_INT64:
      return PutInteger<int64_t>(message, field, text, &Reflection::SetInt64, &Reflection::AddInt64)
                 ? ""
                 : "integers of 64 bits";
    case FieldDescriptor::CPPTYPE_UINT32:
      return PutInteger<uint32_t>(message, field, text, &Reflection::SetUInt32, &Reflection::AddUInt32)
                 ? ""
                 : "integers >= 0 of 32 bits";
    case FieldDescriptor::CPPTYPE_UINT64:
      return PutInteger<uint64_t>(message, field, text, &Reflection::SetUInt64, &Reflection::AddUInt64)
                 ? ""
                 : "integers >= 0 of 64 bits";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return "finite numbers";
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
        Put<double>(message, field, value, &Reflection::SetDouble, &Reflection::AddDouble);
      } else {
        Put<float>(message, field, static_cast<float>(value), &Reflection::SetFloat, &Reflection::AddFloat);
      }
      return "";
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return "true, false";
      Put<bool>(message, field, text == "true", &Reflection::SetBool, &Reflection::AddBool);
      return "";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value = field->enum_type()->FindValueByName(text);
      if (value == nullptr) return ValuesOf(*field->enum_type());
      Put<const EnumValueDescriptor*>(message, field, value, &Reflection::SetEnum, &Reflection::AddEnum);
      return "";
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return PutMessage(message, field, text);
  }
  return "nothing";
}

// Another field of `field`'s oneof is set.
bool Contradicts(const Message& message, const FieldDescriptor& field) {
  const auto* oneof = field.real_containing_oneof();
  if (oneof == nullptr) return false;
  const FieldDescriptor* set = message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
  return set != nullptr && set != &field;
}

struct Place {
  Message* message = nullptr;
  const FieldDescriptor* field = nullptr;         // of `message`; null: there is none
  const FieldDescriptor* contradicted = nullptr;  // on the way, a field whose oneof has another one set
};

// The field that `name` is below `message`, making the messages on the way.
Place FindPlace(Message* message, absl::string_view name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  for (size_t i = 0; i < parts.size(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(parts[i]);
    if (field == nullptr) return {};
    if (Contradicts(*message, *field)) return {.contradicted = field};
    const Descriptor* nested = field->message_type();
    if (nested != nullptr && field->is_repeated()) return {};
    const bool last = i + 1 == parts.size();
    if (last != (nested == nullptr || IsLeaf(*nested))) return {};
    if (last) return {.message = message, .field = field};
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return {};
}

// The field's own name, for a short one.
std::string FullName(const std::string& parameter, const QueryRules& rules) {
  for (const auto& [alias, name] : rules.aliases) {
    if (parameter == alias) return std::string(name);
  }
  return parameter;
}

}  // namespace

std::optional<Query> ParseQuery(absl::string_view text) {
  Query query;
  for (const absl::string_view pair : absl::StrSplit(text, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    const std::optional<std::string> name = Decode(parts.first);
    const std::optional<std::string> value = Decode(parts.second);
    if (!name.has_value() || !value.has_value() || !IsText(*name) || !IsText(*value)) return std::nullopt;
    query.emplace_back(*name, *value);
  }
  return query;
}

std::optional<FieldError> SetFields(const Query& query, const QueryRules& rules, Message* message) {
  std::set<std::string> given;
  for (const auto& [parameter, value] : query) {
    const auto wrong = [&, &parameter = parameter, &value = value](std::string allowed) {
      return FieldError{parameter, value, std::move(allowed)};
    };
    const std::string name = FullName(parameter, rules);
    const Place place = IsRefused(name, rules) ? Place() : FindPlace(message, name);
    if (place.contradicted != nullptr) {
      return wrong(absl::StrCat("one ", place.contradicted->containing_oneof()->name()));
    }
    if (place.field == nullptr)
      return wrong(absl::StrCat("the parameters ", AllowedNames(*message->GetDescriptor(), rules)));
    if (!given.insert(name).second && !place.field->is_repeated()) return wrong("one value");
    if (std::string allowed = PutValue(place.message, place.field, value); !allowed.empty()) {
      return wrong(std::move(allowed));
    }
  }
  return std::nullopt;
}

}  // namespace attune::dashboard
