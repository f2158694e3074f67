#include "proto/attune/quote.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attune {
namespace {

struct Decoded {
  uint32_t code_point = 0;
  size_t bytes = 1;
  bool valid = false;
};

// The first code point of `text`, which is not empty (RFC 3629: shortest forms only, no surrogates).
Decoded Decode(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1, true};
  const size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < bytes) return {};
  uint32_t code_point = byte(0) & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kLeast[bytes] || code_point > 0x10FFFF || surrogate) return {};
  return {code_point, bytes, true};
}

// C0 and C1 controls, DEL, and what reorders or breaks the text around it (Unicode's bidirectional controls, line and
// paragraph separators).
bool IsControl(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

void AppendEscaped(absl::string_view bytes, std::string* out) {
  for (const char c : bytes) {
    switch (c) {
      case '\n':
        out->append("\\n");
        break;
      case '\r':
        out->append("\\r");
        break;
      case '\t':
        out->append("\\t");
        break;
      default:
        absl::StrAppendFormat(out, "\\x%02x", static_cast<unsigned char>(c));
    }
  }
}

// Printable text of at most `most` characters of `text`; `*rest` is what is left over.
std::string FirstPrintable(absl::string_view text, size_t most, absl::string_view* rest) {
  std::string out;
  for (; !text.empty() && most > 0; --most) {
    const Decoded first = Decode(text);
    const absl::string_view bytes = text.substr(0, first.bytes);
    if (first.valid && !IsControl(first.code_point)) {
      absl::StrAppend(&out, bytes);
    } else {
      AppendEscaped(bytes, &out);
    }
    text.remove_prefix(first.bytes);
  }
  *rest = text;
  return out;
}

}  // namespace

std::string Printable(absl::string_view text) {
  absl::string_view rest;
  return FirstPrintable(text, text.size(), &rest);
}

std::string ErrorLine(absl::string_view message, size_t most) {
  constexpr absl::string_view kMore = "...";
  std::string line = Printable(message);
  if (line.size() <= most) return line;
  size_t end = most - std::min(most, kMore.size());
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // not inside a character
  line.resize(end);
  return absl::StrCat(line, kMore);
}

std::string Cleaned(absl::string_view text, size_t most) {
  constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";
  std::string out;
  while (!text.empty()) {
    const Decoded first = Decode(text);
    absl::string_view shown = first.valid ? text.substr(0, first.bytes) : kReplacement;
    if (first.valid && IsControl(first.code_point) && shown != "\n" && shown != "\t") shown = "";
    if (out.size() + shown.size() > most) break;
    absl::StrAppend(&out, shown);
    text.remove_prefix(first.bytes);
  }
  return out;
}

std::string Quoted(absl::string_view value) {
  absl::string_view rest;
  const std::string shown = FirstPrintable(value, kMostQuoted, &rest);
  if (rest.empty()) return absl::StrCat("'", shown, "'");
  return absl::StrCat("'", shown, "...' (", value.size(), " bytes)");
}

}  // namespace attune
