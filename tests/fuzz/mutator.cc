#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

namespace attune::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kDeepest = 12;  // messages within messages
constexpr size_t kMostText = 4096;

constexpr const char* kTexts[] = {"",
                                  "b1.h1.q16.d64.f16",
                                  "\x1b[31m",
                                  "%s%n",
                                  "../../etc/passwd",
                                  "\u00e9\U0001F600",
                                  "b1.h1.q16.d64.f16.softcap1e308",
                                  "b1.h1.q16.d64.f16.window9223372036854775807",
                                  "b65536.h65536.q16777216.d1024.f16",
                                  "trials/9223372036854775807",
                                  "trials/-1",
                                  "incumbents/1",
                                  "operations/ffffffffffffffff",
                                  "'; DROP TABLE trials;--",
                                  "opencl:0",
                                  "cuda:0",
                                  "profile:",
                                  "profile:h200",
                                  "profile:../x",
                                  "attention_opencl",
                                  "attention_opencl:",
                                  "attention_opencl:BLOCK_M=",
                                  "attention_opencl:BLOCK_M=99999999999999999999",
                                  ".",
                                  "..",
                                  "b1.b1",
                                  "b01.h+1.q16.d64.f16",
                                  "none",
                                  "causal",
                                  "bf16"};

constexpr int64_t kIntegers[] = {0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 7,
                                 8,
                                 16,
                                 17,
                                 63,
                                 64,
                                 127,
                                 128,
                                 255,
                                 256,
                                 1000,
                                 1001,
                                 65535,
                                 65536,
                                 65537,
                                 1 << 24,
                                 (1 << 24) + 1,
                                 std::numeric_limits<int32_t>::max(),
                                 int64_t{1} << 31,
                                 int64_t{1} << 32,
                                 int64_t{1} << 40,
                                 int64_t{1} << 53,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<int32_t>::min()};

constexpr double kNumbers[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               1e308,
                               5e-324,
                               0.02,
                               1e-9};

}  // namespace

std::string Mutator::Bytes(size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

void Mutator::MutateBytes(std::string& bytes) {
  for (uint64_t left = 1 + Below(5); left > 0; --left) {
    const size_t at = Below(bytes.size() + 1);
    switch (Below(5)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes.insert(at, Bytes(1 + Below(7)));
        break;
      case 2:
        bytes.erase(at, 1 + Below(7));
        break;
      case 3:
        bytes += bytes.substr(0, std::min<size_t>(at, 10'000));
        break;
      default:
        bytes.resize(at);
    }
  }
}

void Mutator::Mutate(Message& message, int depth) {
  const auto& type = *message.GetDescriptor();
  if (type.field_count() == 0 || depth > kDeepest) return;
  for (uint64_t left = 1 + Below(3); left > 0; --left) {
    const FieldDescriptor& field = *type.field(static_cast<int>(Below(type.field_count())));
    field.is_repeated() ? SetRepeated(message, field, depth) : SetOne(message, field, depth);
  }
}

void Mutator::SetOne(Message& message, const FieldDescriptor& field, int depth) {
  const Reflection& r = *message.GetReflection();
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return SetValue(message, field, false, depth);
  Chance(0.15) ? r.ClearField(&message, &field) : Mutate(*r.MutableMessage(&message, &field), depth + 1);
}

void Mutator::SetRepeated(Message& message, const FieldDescriptor& field, int depth) {
  const Reflection& r = *message.GetReflection();
  const int size = r.FieldSize(message, &field);
  if (size > 0 && Chance(0.2)) return r.RemoveLast(&message, &field);
  if (size > 1 && Chance(0.1)) {
    return r.SwapElements(&message, &field, static_cast<int>(Below(size)), static_cast<int>(Below(size)));
  }
  if (size > 0 && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && Chance(0.5)) {
    return Mutate(*r.MutableRepeatedMessage(&message, &field, static_cast<int>(Below(size))), depth + 1);
  }
  constexpr int kCounts[] = {1, 1, 2, 40};
  const int count = Chance(0.01) && depth == 0 ? 3000 : kCounts[Below(std::size(kCounts))];
  for (int left = count; left > 0; --left) SetValue(message, field, true, depth);
}

void Mutator::SetValue(Message& message, const FieldDescriptor& field, bool add, int depth) {
  const Reflection& r = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return Mutate(*r.AddMessage(&message, &field), depth + 1);
    case FieldDescriptor::CPPTYPE_STRING:
      return add ? r.AddString(&message, &field, Text(""))
                 : r.SetString(&message, &field, Text(r.GetString(message, &field)));
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = Number(add ? 0 : r.GetDouble(message, &field));
      return add ? r.AddDouble(&message, &field, value) : r.SetDouble(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      const auto value = static_cast<float>(Number(add ? 0 : r.GetFloat(message, &field)));
      return add ? r.AddFloat(&message, &field, value) : r.SetFloat(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return add ? r.AddBool(&message, &field, Chance(0.5)) : r.SetBool(&message, &field, Chance(0.5));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = Chance(0.5) ? static_cast<int>(Below(10)) : static_cast<int>(Integer(0));
      return add ? r.AddEnumValue(&message, &field, value) : r.SetEnumValue(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = static_cast<int32_t>(Integer(add ? 0 : r.GetInt32(message, &field)));
      return add ? r.AddInt32(&message, &field, value) : r.SetInt32(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = Integer(add ? 0 : r.GetInt64(message, &field));
      return add ? r.AddInt64(&message, &field, value) : r.SetInt64(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const auto value = static_cast<uint64_t>(Integer(0));
      return add ? r.AddUInt64(&message, &field, value) : r.SetUInt64(&message, &field, value);
    }
    default:
      return;  // the project's messages have no others
  }
}

std::string Mutator::Text(const std::string& before) {
  if (change_bytes_ && Chance(0.5)) {
    std::string text = before;
    change_bytes_(text, kMostText);
    return text;
  }
  if (Chance(0.02)) return std::string(Below(Chance(0.1) ? 100'000 : 2'000), 'a');
  return kTexts[Below(std::size(kTexts))];
}

int64_t Mutator::Integer(int64_t before) {
  if (change_bytes_ && Chance(0.3)) return Changed(before);
  return kIntegers[Below(std::size(kIntegers))];
}

double Mutator::Number(double before) {
  if (change_bytes_ && Chance(0.3)) return Changed(before);
  return kNumbers[Below(std::size(kNumbers))];
}

template <typename Value>
Value Mutator::Changed(Value value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  change_bytes_(bytes, sizeof value);
  bytes.resize(sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace attune::fuzz
