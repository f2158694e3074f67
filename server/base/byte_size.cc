#include "server/base/byte_size.h"

#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attune {
namespace {

constexpr std::pair<absl::string_view, int64_t> kUnits[] = {{"TiB", int64_t{1} << 40},
                                                            {"GiB", int64_t{1} << 30},
                                                            {"MiB", int64_t{1} << 20},
                                                            {"KiB", int64_t{1} << 10},
                                                            {"B", 1}};

}  // namespace

bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  int64_t number = 0;
  if (absl::SimpleAtoi(text.substr(0, digits), &number)) {
    const absl::string_view behind = text.substr(digits);
    if (number == 0 && behind.empty()) {
      size->bytes = 0;
      return true;
    }
    for (const auto& [unit, factor] : kUnits) {
      if (behind != unit || number > std::numeric_limits<int64_t>::max() / factor) continue;
      size->bytes = number * factor;
      return true;
    }
  }
  *error = "allowed: 0 and whole numbers with B, KiB, MiB, GiB or TiB, as in 10GiB";
  return false;
}

std::string AbslUnparseFlag(ByteSize size) {
  for (const auto& [unit, factor] : kUnits) {
    if (size.bytes > 0 && size.bytes % factor == 0) return absl::StrCat(size.bytes / factor, unit);
  }
  return "0";
}

}  // namespace attune
