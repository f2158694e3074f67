#include "client/dashboard/pages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/files.h"

namespace attune::dashboard {
namespace {

std::string TypeOf(absl::string_view name) {
  static const std::vector<std::pair<absl::string_view, absl::string_view>> types = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
  };
  for (const auto& [suffix, type] : types) {
    if (absl::EndsWith(name, suffix)) return std::string(type);
  }
  return "text/plain; charset=utf-8";
}

// Of one folder: no other can be named.
bool IsFileName(absl::string_view name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

Pages::Pages(std::string root) : root_(std::move(root)) {
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    const bool replaced = !root_.empty() && file.name != "chart.min.js" && file.name != "NOTICE";
    if (!replaced) embedded_[std::string(file.name)] = MakeContent(TypeOf(file.name), std::string(file.bytes));
  }
}

ContentPtr Pages::Find(absl::string_view path) const {
  if (path.empty() || path.front() != '/') return nullptr;
  const absl::string_view name = path == "/" ? "index.html" : path.substr(1);
  if (!IsFileName(name)) return nullptr;
  if (const auto found = embedded_.find(name); found != embedded_.end()) return found->second;
  if (root_.empty()) return nullptr;
  absl::StatusOr<std::string> bytes = ReadFile(absl::StrCat(root_, "/", name));
  return bytes.ok() ? MakeContent(TypeOf(name), *std::move(bytes)) : nullptr;
}

}  // namespace attune::dashboard
