// How libFuzzer changes inputs that are messages: by their fields. Now and then by their bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/fuzz/message_input.h"
#include "tests/fuzz/mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace {

void ChangeBytes(std::string& bytes, size_t most) {
  const size_t before = std::min(bytes.size(), most);
  bytes.resize(most);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), before, most));
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned int seed) {
  attune::fuzz::Mutator mutator(seed);
  const auto message = attune::fuzz::ReadMessageInput({reinterpret_cast<const char*>(data), size});
  if (message == nullptr || mutator.Chance(0.02)) return LLVMFuzzerMutate(data, size, most);
  mutator.set_change_bytes(ChangeBytes);
  mutator.Mutate(*message);
  const std::string changed = attune::fuzz::WriteMessageInput(*message);
  if (changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
