#include "server/submit/diagnostics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune::submit {
namespace {

constexpr size_t kMost = 10;
constexpr size_t kMostText = 500;

// The digits at the end of `text`, taken off.
std::optional<int32_t> TakeNumber(absl::string_view& text) {
  size_t begin = text.size();
  while (begin > 0 && absl::ascii_isdigit(text[begin - 1])) --begin;
  int32_t number = 0;
  if (!absl::SimpleAtoi(text.substr(begin), &number)) return std::nullopt;
  text.remove_suffix(text.size() - begin);
  return number;
}

// "kernel.cl:12:5", "kernel.cl:12" or "kernel.cu(12)".
std::optional<v1::Diagnostic> PlaceOf(absl::string_view place) {
  v1::Diagnostic diagnostic;
  if (absl::ConsumeSuffix(&place, ")")) {
    const std::optional<int32_t> line = TakeNumber(place);
    if (!line.has_value() || !absl::ConsumeSuffix(&place, "(")) return std::nullopt;
    diagnostic.set_line(*line);
  } else {
    std::optional<int32_t> number = TakeNumber(place);
    if (!number.has_value() || !absl::ConsumeSuffix(&place, ":")) return std::nullopt;
    diagnostic.set_line(*number);
    absl::string_view before = place;
    if (number = TakeNumber(before); number.has_value() && absl::ConsumeSuffix(&before, ":")) {
      diagnostic.set_column(diagnostic.line());
      diagnostic.set_line(*number);
      place = before;
    }
  }
  if (place.empty() || absl::StrContains(place, ' ')) return std::nullopt;
  diagnostic.set_path(std::string(place));
  return diagnostic;
}

std::optional<v1::Diagnostic> DiagnosticIn(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  const bool front = absl::ConsumePrefix(&line, "error: ");  // PoCL
  for (const absl::string_view mark : {": fatal error: ", ": error: ", ": "}) {
    const size_t at = line.find(mark);
    if (at == absl::string_view::npos || (mark == ": " && !front)) continue;
    std::optional<v1::Diagnostic> diagnostic = PlaceOf(line.substr(0, at));
    if (!diagnostic.has_value()) continue;
    diagnostic->set_text(Cleaned(line.substr(at + mark.size()), kMostText));
    return diagnostic;
  }
  return std::nullopt;
}

// As the author calls it.
std::string Named(const std::string& path, const std::string& main, const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    if (path == source || absl::EndsWith(path, "/" + source)) return source;
  }
  return main;
}

}  // namespace

std::vector<v1::Diagnostic> DiagnosticsOf(absl::string_view log, const std::string& main,
                                          const std::vector<std::string>& sources) {
  std::vector<v1::Diagnostic> diagnostics;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    std::optional<v1::Diagnostic> diagnostic = DiagnosticIn(line);
    if (!diagnostic.has_value()) continue;
    diagnostic->set_path(Named(diagnostic->path(), main, sources));
    diagnostics.push_back(*std::move(diagnostic));
    if (diagnostics.size() == kMost) break;
  }
  if (!diagnostics.empty()) return diagnostics;
  v1::Diagnostic whole;
  whole.set_text(Cleaned(absl::StripAsciiWhitespace(log), kMostText));
  return {whole};
}

}  // namespace attune::submit
