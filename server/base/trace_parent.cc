#include "server/base/trace_parent.h"

#include <algorithm>
#include <cstddef>

namespace attune {
namespace {

// "00-" trace id "-" parent id "-" flags.
constexpr size_t kVersion = 0, kTrace = 3, kParent = 36, kFlags = 53, kLength = 55;

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(absl::string_view text) { return text.find_first_not_of('0') == absl::string_view::npos; }

}  // namespace

std::string TraceIdIn(absl::string_view header) {
  if (header.size() < kLength) return "";
  const absl::string_view version = header.substr(kVersion, 2);
  // Later versions may add fields behind those of the first.
  if (!IsHex(version) || version == "ff") return "";
  if (header.size() > kLength && (version == "00" || header[kLength] != '-')) return "";
  const absl::string_view trace = header.substr(kTrace, kParent - kTrace - 1);
  const absl::string_view parent = header.substr(kParent, kFlags - kParent - 1);
  const bool dashes = header[kTrace - 1] == '-' && header[kParent - 1] == '-' && header[kFlags - 1] == '-';
  if (!dashes || !IsHex(trace) || IsZero(trace) || !IsHex(parent) || IsZero(parent)) return "";
  return IsHex(header.substr(kFlags, 2)) ? std::string(trace) : "";
}

}  // namespace attune
