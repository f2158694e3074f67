#include "tests/fuzz/message_input.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace attune::fuzz {
namespace {

// Most inputs are wrong somewhere; protobuf would log each.
class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

std::unique_ptr<google::protobuf::Message> ReadMessageInput(absl::string_view input) {
  const size_t end = input.find('\n');
  if (end == absl::string_view::npos) return nullptr;
  const std::string name(input.substr(0, end));
  const auto* type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  if (type == nullptr) return nullptr;
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  Silent errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(std::string(input.substr(end + 1)), message.get())) return nullptr;
  return message;
}

std::string WriteMessageInput(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return absl::StrCat(message.GetDescriptor()->full_name(), "\n", text);
}

}  // namespace attune::fuzz
