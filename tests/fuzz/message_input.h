// Inputs that are messages, as files that people can read: a line with the type's full name, then protobuf text format.
#ifndef ATTUNE_TESTS_FUZZ_MESSAGE_INPUT_H_
#define ATTUNE_TESTS_FUZZ_MESSAGE_INPUT_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace attune::fuzz {

// Null when the input is none: of a type that this program has not, or not its text. May have texts that are not UTF-8.
std::unique_ptr<google::protobuf::Message> ReadMessageInput(absl::string_view input);

// Null when it is of another type, too.
template <typename Type>
std::unique_ptr<Type> ReadInputOf(absl::string_view input) {
  std::unique_ptr<google::protobuf::Message> message = ReadMessageInput(input);
  if (message == nullptr || message->GetDescriptor() != Type::descriptor()) return nullptr;
  return std::unique_ptr<Type>(static_cast<Type*>(message.release()));
}

std::string WriteMessageInput(const google::protobuf::Message& message);

}  // namespace attune::fuzz

#endif  // ATTUNE_TESTS_FUZZ_MESSAGE_INPUT_H_
