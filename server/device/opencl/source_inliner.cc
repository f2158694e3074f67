#include "server/device/opencl/source_inliner.h"

#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attune::device::opencl {
namespace {

using SourceMap = std::map<absl::string_view, absl::string_view>;

constexpr int kDeepest = 32;  // levels of includes; guards are not evaluated here, so a circle has no other end

// The name in `#include "name"`, or empty.
absl::string_view QuotedInclude(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return "";
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "include")) return "";
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "\"")) return "";
  return line.substr(0, line.find('"'));
}

SourceMap::const_iterator Find(const SourceMap& sources, absl::string_view from, absl::string_view name) {
  const size_t slash = from.rfind('/');
  if (slash != absl::string_view::npos) {
    const auto beside = sources.find(absl::StrCat(from.substr(0, slash + 1), name));
    if (beside != sources.end()) return beside;
  }
  return sources.find(name);
}

bool IsPragmaOnce(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return absl::ConsumePrefix(&line, "#") && absl::StripLeadingAsciiWhitespace(line) == "pragma once";
}

class Inliner {
 public:
  explicit Inliner(SourceMap sources) : sources_(std::move(sources)) {}

  absl::Status Append(absl::string_view path, absl::string_view text, int depth) {
    if (depth > kDeepest) {
      return absl::InvalidArgumentError(absl::StrCat("sources: '", path, "' is included ", kDeepest,
                                                     " levels deep; files that include one another are not allowed"));
    }
    if (once_.contains(path)) return absl::OkStatus();
    absl::StrAppend(&text_, "#line 1 \"", path, "\"\n");
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      if (IsPragmaOnce(line)) {
        once_.insert(path);
        line = "";
      }
      const absl::string_view name = QuotedInclude(line);
      const auto found = name.empty() ? sources_.end() : Find(sources_, path, name);
      if (found == sources_.end()) {
        absl::StrAppend(&text_, line, "\n");
        continue;
      }
      if (absl::Status status = Append(found->first, found->second, depth + 1); !status.ok()) return status;
      absl::StrAppend(&text_, "#line ", number + 1, " \"", path, "\"\n");
    }
    return absl::OkStatus();
  }

  std::string text() && { return std::move(text_); }

 private:
  SourceMap sources_;
  std::set<absl::string_view> once_;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::string> InlineIncludes(const google::protobuf::RepeatedPtrField<worker::v1::SourceFile>& sources) {
  if (sources.empty()) return absl::InvalidArgumentError("sources is empty; at least one is needed");
  SourceMap map;
  for (const worker::v1::SourceFile& source : sources) map.emplace(source.path(), source.text());
  Inliner inliner(std::move(map));
  absl::Status status = inliner.Append(sources[0].path(), sources[0].text(), 0);
  if (!status.ok()) return status;
  return std::move(inliner).text();
}

}  // namespace attune::device::opencl
