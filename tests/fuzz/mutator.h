// Changes messages by their fields, whatever their type, with values at the edges of what is allowed and beyond them;
// and any text by its bytes.
#ifndef ATTUNE_TESTS_FUZZ_MUTATOR_H_
#define ATTUNE_TESTS_FUZZ_MUTATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "google/protobuf/message.h"

namespace attune::fuzz {

// The same seed makes the same changes.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // Some values are changed by this, too, which a fuzzer may know more for.
  using ChangeBytes = std::function<void(std::string& bytes, size_t most)>;
  void set_change_bytes(ChangeBytes change) { change_bytes_ = std::move(change); }

  // One to three fields.
  void Mutate(google::protobuf::Message& message) { Mutate(message, 0); }

  // One to five places.
  void MutateBytes(std::string& bytes);

  bool Chance(double share) { return std::uniform_real_distribution<>()(random_) < share; }
  uint64_t Below(uint64_t end) { return random_() % end; }
  std::string Bytes(size_t count);

 private:
  void Mutate(google::protobuf::Message& message, int depth);
  void SetOne(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, int depth);
  void SetRepeated(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, int depth);
  // `add`: one more of a list.
  void SetValue(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field, bool add,
                int depth);

  std::string Text(const std::string& before);
  int64_t Integer(int64_t before);
  double Number(double before);
  // `value`, its bytes changed.
  template <typename Value>
  Value Changed(Value value);

  std::mt19937_64 random_;
  ChangeBytes change_bytes_;
};

}  // namespace attune::fuzz

#endif  // ATTUNE_TESTS_FUZZ_MUTATOR_H_
