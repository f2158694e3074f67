#include "client/cli/sweep_plan.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cpp/files.h"
#include "proto/attune/problem.h"

namespace attune::cli {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::TextFormat;

// Lines and columns count from 0, as protobuf gives them.
absl::Status ErrorAt(absl::string_view file, int line, int column, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line + 1, ":", column + 1, ": ", message));
}

// The field of this name in the message or in those that it has; null where there is none of an enumeration.
const FieldDescriptor* EnumField(const google::protobuf::Descriptor& message, absl::string_view name) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.enum_type() != nullptr && field.name() == name) return &field;
    if (field.message_type() == nullptr) continue;
    if (const FieldDescriptor* nested = EnumField(*field.message_type(), name); nested != nullptr) return nested;
  }
  return nullptr;
}

// The words of a field that mean something: the first stands for none.
std::string WordsOf(const FieldDescriptor& field) {
  std::vector<std::string> words;
  for (int i = 1; i < field.enum_type()->value_count(); ++i) words.push_back(field.enum_type()->value(i)->name());
  return absl::StrJoin(words, ", ");
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  FirstError(absl::string_view file, absl::string_view text) : file_(file), text_(text) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (!status_.ok()) return;
    status_ = WrongWord(std::max(line, 0), message);
    if (status_.ok()) status_ = ErrorAt(file_, std::max(line, 0), column, message);
  }
  const absl::Status& status() const { return status_; }

 private:
  // Of a word that an enumeration does not have, protobuf says where the next one stands and not which are allowed.
  absl::Status WrongWord(int line_behind, absl::string_view message) const {
    const std::vector<absl::string_view> quoted = absl::StrSplit(message, '"');
    if (!absl::StartsWith(message, "Unknown enumeration value") || quoted.size() != 5) return absl::OkStatus();
    const absl::string_view word = quoted[1];
    const FieldDescriptor* const field = EnumField(*v1::SweepPlan::descriptor(), quoted[3]);
    if (field == nullptr) return absl::OkStatus();
    const std::vector<absl::string_view> lines = absl::StrSplit(text_, '\n');
    for (int line = std::min(line_behind, static_cast<int>(lines.size()) - 1); line >= 0; --line) {
      const size_t column = lines[line].rfind(word);
      if (column == absl::string_view::npos) continue;
      return ErrorAt(file_, line, static_cast<int>(column),
                     absl::StrCat(field->name(), " is ", word, "; allowed: ", WordsOf(*field)));
    }
    return absl::OkStatus();
  }

  const absl::string_view file_;
  const absl::string_view text_;
  absl::Status status_;
};

const FieldDescriptor* Field(const google::protobuf::Message& message, const std::string& name) {
  return message.GetDescriptor()->FindFieldByName(name);
}

// Says where the values of a message stand in the file.
class Locator {
 public:
  Locator(absl::string_view file, const TextFormat::ParseInfoTree* tree) : file_(file), tree_(tree) {}

  absl::Status Error(const google::protobuf::Message& message, const std::string& field, int index,
                     absl::string_view text) const {
    const auto location = tree_->GetLocation(Field(message, field), index);
    return ErrorAt(file_, std::max(location.line, 0), std::max(location.column, 0), text);
  }
  Locator Nested(const google::protobuf::Message& message, const std::string& field, int index) const {
    return Locator(file_, tree_->GetTreeForNested(Field(message, field), index));
  }

 private:
  const absl::string_view file_;
  const TextFormat::ParseInfoTree* tree_;
};

absl::Status CheckWords(const v1::SweepProduct& product, const std::string& field,
                        const google::protobuf::RepeatedPtrField<std::string>& values,
                        const std::vector<absl::string_view>& allowed, const Locator& locator) {
  for (int i = 0; i < values.size(); ++i) {
    if (std::find(allowed.begin(), allowed.end(), values[i]) != allowed.end()) continue;
    return locator.Error(product, field, i,
                         absl::StrCat(field, " is '", values[i], "'; allowed: ", absl::StrJoin(allowed, ", ")));
  }
  return absl::OkStatus();
}

absl::Status CheckProduct(const v1::SweepProduct& product, const Locator& locator) {
  const std::pair<const char*, const google::protobuf::RepeatedField<int64_t>*> sizes[] = {
      {"batch", &product.batch()}, {"heads_q", &product.heads_q()}, {"heads_kv", &product.heads_kv()},
      {"seq_q", &product.seq_q()}, {"seq_kv", &product.seq_kv()},   {"head_dim", &product.head_dim()}};
  for (const auto& [field, values] : sizes) {
    for (int i = 0; i < values->size(); ++i) {
      if (values->Get(i) > 0) continue;
      return locator.Error(product, field, i,
                           absl::StrCat(field, " is ", values->Get(i), "; allowed: integers above 0"));
    }
  }
  if (absl::Status status = CheckWords(product, "dtype", product.dtype(), {"f16", "bf16"}, locator); !status.ok()) {
    return status;
  }
  return CheckWords(product, "mask", product.mask(), {"none", "causal", "causal-br"}, locator);
}

}  // namespace

absl::StatusOr<v1::SweepPlan> ParseSweepPlan(absl::string_view file, const std::string& text) {
  v1::SweepPlan plan;
  TextFormat::ParseInfoTree tree;
  FirstError errors(file, text);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(text, &plan)) return errors.status();
  if (plan.shapes().empty()) return ErrorAt(file, 0, 0, "the plan has no shapes; give at least one `shapes { ... }`");
  const Locator root(file, &tree);
  for (int i = 0; i < plan.shapes_size(); ++i) {
    const v1::SweepShapes& shapes = plan.shapes(i);
    const Locator locator = root.Nested(plan, "shapes", i);
    for (int j = 0; j < shapes.problem_size(); ++j) {
      const auto problem = ParseProblem(shapes.problem(j));
      if (!problem.ok()) return locator.Error(shapes, "problem", j, problem.status().message());
    }
    if (!shapes.has_product()) continue;
    const absl::Status status = CheckProduct(shapes.product(), locator.Nested(shapes, "product", -1));
    if (!status.ok()) return status;
  }
  return plan;
}

absl::StatusOr<v1::SweepPlan> ReadSweepPlan(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory, not a plan"));
  }
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  return ParseSweepPlan(path, *text);
}

}  // namespace attune::cli
