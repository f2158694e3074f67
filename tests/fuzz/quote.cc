// What others wrote, as messages and terminals show it: valid UTF-8, without control characters, not too long.
#include "proto/attune/quote.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "attune/v1/trial.pb.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

// Protobuf's own idea of it, which what is sent and stored must keep to.
bool IsUtf8(const std::string& text) {
  v1::Trial trial;
  trial.set_detail(text);
  return v1::Trial().ParseFromString(trial.SerializeAsString());
}

bool HasControls(absl::string_view text, absl::string_view but) {
  return std::any_of(text.begin(), text.end(), [but](char c) {
    return (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && but.find(c) == absl::string_view::npos;
  });
}

ATTUNE_FUZZ_TARGET(quote) {
  const std::string printable = Printable(input);
  Expect(IsUtf8(printable) && !HasControls(printable, ""), "what is printable is");
  Expect(Printable(printable) == printable, "what is printable stays as it is");
  for (const size_t most : {size_t{0}, size_t{1}, size_t{5}, input.size(), std::string::npos}) {
    const std::string cleaned = Cleaned(input, most);
    Expect(IsUtf8(cleaned) && !HasControls(cleaned, "\n\t") && cleaned.size() <= most, "what is cleaned is");
    Expect(Cleaned(cleaned, most) == cleaned, "what is clean stays as it is");
  }
  for (const size_t most : {size_t{16}, kMostMessageBytes}) {
    const std::string line = ErrorLine(input, most);
    Expect(IsUtf8(line) && !HasControls(line, "") && line.size() <= most, "an error is one short line");
  }
  const std::string quoted = Quoted(input);
  Expect(IsUtf8(quoted) && !HasControls(quoted, "") && quoted.front() == '\'', "a value is quoted");
}

}  // namespace
}  // namespace attune::fuzz
