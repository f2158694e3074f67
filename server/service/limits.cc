#include "server/service/limits.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "server/submit/limits.h"

namespace attune::service {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Bytes of a text, and entries of a list, that has no line in the table.
constexpr int kText = 256;
constexpr int kList = 256;

struct Limit {
  absl::string_view field;  // its full name, without "attune.v1."
  int most;
};

constexpr Limit kTexts[] = {
    {"Baseline.contender", 128},
    {"Baseline.note", 1024},
    {"EvaluateVariantRequest.request_id", 128},
    {"EvaluateVariantRequest.why", 1024},
    {"RollBackRequest.why", 1024},
    {"SweepRequest.request_id", 128},
    {"TuneRequest.request_id", 128},
    {"ProfileRequest.request_id", 128},
    {"PutBlobRequest.data", kMostBlobBytes},
    {"SanitizeRequest.request_id", 128},
    {"SubmitRequest.request_id", 128},
    {"SubmitRequest.hypothesis", 1024},
    {"SourceFile.text", 128 << 10},
    {"Variant.text", 4096},
};

// The number of problems that a sweep's products come to has a limit of its own (proto/attune/expand_plan.h).
constexpr Limit kLists[] = {
    {"SubmitRequest.files", submit::kMostFiles},
    {"SubmitRequest.problems", submit::kMostProblems},
    {"GetBestRequest.acceptable", 16},
    {"GetBlobsRequest.files", 64},
    {"GetBlobsRequest.principals", 16},
    {"SweepPlan.shapes", 10'000},
    {"SweepProduct.batch", 10'000},
    {"SweepProduct.head_dim", 10'000},
    {"SweepProduct.heads_kv", 10'000},
    {"SweepProduct.heads_q", 10'000},
    {"SweepProduct.seq_kv", 10'000},
    {"SweepProduct.seq_q", 10'000},
    {"SweepShapes.problem", 100'000},
    {"SanitizeRequest.tools", 16},
    {"TrialFilter.verdicts", 16},
    {"TuneRequest.seed_from", 16},
    {"Variant.parameters", 64},
};

// google.protobuf.Duration's and Timestamp's own ranges; times before 1970 are nobody's.
constexpr int64_t kMostDuration = 315'576'000'000;
constexpr int64_t kMostTime = 253'402'300'799;  // the end of the year 9999
constexpr int kMostNanos = 999'999'999;

template <size_t N>
int MostOf(const Limit (&limits)[N], const FieldDescriptor& field, int otherwise) {
  constexpr absl::string_view kPackage = "attune.v1.";
  absl::string_view name = field.full_name();
  if (name.substr(0, kPackage.size()) == kPackage) name.remove_prefix(kPackage.size());
  for (const Limit& limit : limits) {
    if (limit.field == name) return limit.most;
  }
  return otherwise;
}

template <typename... What>
absl::Status Invalid(const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat(what...));
}

// "HOT, COLD, L2_WARM" of Policy: without the prefix that its values share, and without 0, which is unset.
std::string Allowed(const EnumDescriptor& type) {
  const absl::string_view zero = type.value(0)->name();
  const size_t prefix = zero.size() - std::min(zero.size(), absl::string_view("UNSPECIFIED").size());
  std::vector<absl::string_view> names;
  for (int i = 1; i < type.value_count(); ++i) names.push_back(absl::string_view(type.value(i)->name()).substr(prefix));
  return absl::StrJoin(names, ", ");
}

absl::Status CheckDuration(const std::string& path, const google::protobuf::Duration& duration) {
  if (duration.seconds() >= 0 && duration.seconds() <= kMostDuration && duration.nanos() >= 0 &&
      duration.nanos() <= kMostNanos) {
    return absl::OkStatus();
  }
  return Invalid(path, " is ", duration.seconds(), " s and ", duration.nanos(), " ns; allowed: 0 to ", kMostDuration,
                 " s, with 0 to ", kMostNanos, " ns");
}

absl::Status CheckTime(const std::string& path, const google::protobuf::Timestamp& time) {
  if (time.seconds() >= 0 && time.seconds() <= kMostTime && time.nanos() >= 0 && time.nanos() <= kMostNanos) {
    return absl::OkStatus();
  }
  return Invalid(path, " is ", time.seconds(), " s and ", time.nanos(),
                 " ns after 1970; allowed: the years 1970 to 9999");
}

absl::Status CheckMessage(const std::string& path, const Message& message);

// One value: of a list the `index`th, otherwise `index` is -1.
absl::Status CheckValue(const std::string& path, const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool listed = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string scratch;
      const std::string& text = listed ? reflection.GetRepeatedStringReference(message, &field, index, &scratch)
                                       : reflection.GetStringReference(message, &field, &scratch);
      const int most = MostOf(kTexts, field, kText);
      if (text.size() <= static_cast<size_t>(most)) return absl::OkStatus();
      return Invalid(path, " has ", text.size(), " bytes; allowed: at most ", most);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value =
          listed ? reflection.GetRepeatedDouble(message, &field, index) : reflection.GetDouble(message, &field);
      if (std::isfinite(value)) return absl::OkStatus();
      return Invalid(path, " is ", value, "; allowed: finite numbers");
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value =
          listed ? reflection.GetRepeatedEnumValue(message, &field, index) : reflection.GetEnumValue(message, &field);
      const auto* known = field.enum_type()->FindValueByNumber(value);
      // In a list, unset is no value either.
      if (known != nullptr && !(listed && value == 0)) return absl::OkStatus();
      return Invalid(path, " is ", value, "; allowed: ", Allowed(*field.enum_type()));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return CheckMessage(path, listed ? reflection.GetRepeatedMessage(message, &field, index)
                                       : reflection.GetMessage(message, &field));
    default:
      return absl::OkStatus();  // what an integer may be is the field's own matter
  }
}

absl::Status CheckMessage(const std::string& path, const Message& message) {
  if (const auto* duration = google::protobuf::DynamicCastToGenerated<google::protobuf::Duration>(&message)) {
    return CheckDuration(path, *duration);
  }
  if (const auto* time = google::protobuf::DynamicCastToGenerated<google::protobuf::Timestamp>(&message)) {
    return CheckTime(path, *time);
  }
  std::vector<const FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    const std::string name = absl::StrCat(path, path.empty() ? "" : ".", field->name());
    if (!field->is_repeated()) {
      if (absl::Status status = CheckValue(name, message, *field, -1); !status.ok()) return status;
      continue;
    }
    const int size = message.GetReflection()->FieldSize(message, field);
    const int most = MostOf(kLists, *field, kList);
    if (size > most) return Invalid(name, " has ", size, " entries; allowed: at most ", most);
    const auto type = field->cpp_type();
    if (type != FieldDescriptor::CPPTYPE_STRING && type != FieldDescriptor::CPPTYPE_DOUBLE &&
        type != FieldDescriptor::CPPTYPE_ENUM && type != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    for (int i = 0; i < size; ++i) {
      absl::Status status = CheckValue(absl::StrCat(name, "[", i, "]"), message, *field, i);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLimits(const Message& request) { return CheckMessage("", request); }

}  // namespace attune::service
