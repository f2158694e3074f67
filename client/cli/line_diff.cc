#include "client/cli/line_diff.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attune::cli {
namespace {

constexpr size_t kContext = 3;
constexpr size_t kMostCells = 16 << 20;  // of the table; beyond it all between the first and last change is one

using Lines = std::vector<absl::string_view>;

struct Line {
  char mark = ' ';  // ' ', '-' or '+'
  absl::string_view text;
};

Lines LinesOf(absl::string_view text) {
  Lines lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

// Longest common subsequence by dynamic programming (Wagner and Fischer), of what the common ends leave.
void Compare(const Lines& a, const Lines& b, std::vector<Line>& script) {
  const size_t width = b.size() + 1;
  if ((a.size() + 1) * width > kMostCells) {
    for (const absl::string_view line : a) script.push_back({'-', line});
    for (const absl::string_view line : b) script.push_back({'+', line});
    return;
  }
  std::vector<uint32_t> longest((a.size() + 1) * width);  // of a from i on and b from j on
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      longest[i * width + j] = a[i] == b[j] ? longest[(i + 1) * width + j + 1] + 1
                                            : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      script.push_back({' ', a[i]});
      ++i;
      ++j;
    } else if (i < a.size() && (j == b.size() || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      script.push_back({'-', a[i++]});
    } else {
      script.push_back({'+', b[j++]});
    }
  }
}

std::vector<Line> ScriptOf(const Lines& before, const Lines& after) {
  const size_t most = std::min(before.size(), after.size());
  size_t head = 0;
  while (head < most && before[head] == after[head]) ++head;
  size_t tail = 0;
  while (tail < most - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
  std::vector<Line> script;
  for (size_t i = 0; i < head; ++i) script.push_back({' ', before[i]});
  Compare({before.begin() + head, before.end() - tail}, {after.begin() + head, after.end() - tail}, script);
  for (size_t i = before.size() - tail; i < before.size(); ++i) script.push_back({' ', before[i]});
  return script;
}

// The lines from `begin` to `end` as a hunk, with where it stands in both versions.
std::string Hunk(const std::vector<Line>& script, size_t begin, size_t end) {
  const auto count = [&](size_t from, size_t to, char other) {
    return std::count_if(script.begin() + from, script.begin() + to,
                         [other](const Line& line) { return line.mark != other; });
  };
  const auto old_lines = count(begin, end, '+');
  const auto new_lines = count(begin, end, '-');
  std::string text = absl::StrCat("@@ -", count(0, begin, '+') + (old_lines > 0 ? 1 : 0), ",", old_lines, " +",
                                  count(0, begin, '-') + (new_lines > 0 ? 1 : 0), ",", new_lines, " @@\n");
  for (size_t i = begin; i < end; ++i) absl::StrAppend(&text, std::string(1, script[i].mark), script[i].text, "\n");
  return text;
}

void AddFile(const std::string& path, absl::string_view before, absl::string_view after, Diff& diff) {
  const std::vector<Line> script = ScriptOf(LinesOf(before), LinesOf(after));
  std::string hunks;
  for (size_t i = 0; i < script.size(); ++i) {
    if (script[i].mark == ' ') continue;
    const size_t begin = i - std::min(i, kContext);
    size_t last = i;  // change of the hunk
    while (i < script.size() && i <= last + 2 * kContext) {
      if (script[i].mark != ' ') last = i;
      ++i;
    }
    const size_t end = std::min(script.size(), last + kContext + 1);
    absl::StrAppend(&hunks, Hunk(script, begin, end));
    i = end - 1;
  }
  for (const Line& line : script) {
    diff.added += line.mark == '+' ? 1 : 0;
    diff.removed += line.mark == '-' ? 1 : 0;
  }
  if (!hunks.empty()) absl::StrAppend(&diff.text, "--- a/", path, "\n+++ b/", path, "\n", hunks);
}

}  // namespace

Diff DiffOf(const google::protobuf::RepeatedPtrField<v1::SourceFile>& before,
            const google::protobuf::RepeatedPtrField<v1::SourceFile>& after) {
  std::map<std::string, std::pair<absl::string_view, absl::string_view>> paths;
  for (const v1::SourceFile& file : before) paths[file.path()].first = file.text();
  for (const v1::SourceFile& file : after) paths[file.path()].second = file.text();
  Diff diff;
  for (const auto& [path, texts] : paths) AddFile(path, texts.first, texts.second, diff);
  return diff;
}

}  // namespace attune::cli
