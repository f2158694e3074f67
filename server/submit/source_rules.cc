#include "server/submit/source_rules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune::submit {
namespace {

// The text as the preprocessor reads lines: those that end with a backslash joined, comments blank. Line numbers stay:
// what was joined is followed by as many empty lines.
class Lines {
 public:
  explicit Lines(absl::string_view text) : text_(text) {}

  std::vector<std::string> Read() {
    while (at_ < text_.size()) Step();
    EndLine();
    return std::move(lines_);
  }

 private:
  bool Ahead(absl::string_view what) const { return absl::StartsWith(text_.substr(at_), what); }

  void EndLine() {
    lines_.push_back(std::move(line_));
    line_.clear();
    lines_.resize(lines_.size() + joined_);
    joined_ = 0;
  }

  // Of "\\\n": it is as if it were not there.
  bool SkipSplice() {
    if (!Ahead("\\\n") && !Ahead("\\\r\n")) return false;
    at_ += Ahead("\\\n") ? 2 : 3;
    ++joined_;
    return true;
  }

  void Step() {
    if (SkipSplice()) return;
    if (Ahead("/*")) return BlockComment();
    if (Ahead("//")) return LineComment();
    const char c = text_[at_++];
    if (c == '\n') return EndLine();
    line_ += c;
    if (c == '"') Quoted(c);
  }

  void BlockComment() {
    line_ += ' ';
    for (at_ += 2; at_ < text_.size() && !Ahead("*/"); ++at_) {
      if (text_[at_] == '\n') ++joined_;
    }
    at_ = std::min(at_ + 2, text_.size());
  }

  void LineComment() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (!SkipSplice()) ++at_;
    }
  }

  // To the end of a literal, or of its line where it has none.
  void Quoted(char quote) {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (SkipSplice()) continue;
      const char c = text_[at_++];
      line_ += c;
      if (c == '\\' && at_ < text_.size() && text_[at_] != '\n') line_ += text_[at_++];
      if (c == quote) return;
    }
  }

  const absl::string_view text_;
  size_t at_ = 0;
  size_t joined_ = 0;  // lines that the current one has taken in
  std::string line_;
  std::vector<std::string> lines_;
};

std::string IncludeMistake(absl::string_view rest, v1::Backend backend) {
  rest = absl::StripAsciiWhitespace(rest);
  const char open = rest.empty() ? '\0' : rest.front();
  if (open != '"' && open != '<') {
    return absl::StrCat("#include of ", Quoted(rest), "; allowed: a name in quotes or angle brackets");
  }
  const size_t end = rest.find(open == '"' ? '"' : '>', 1);
  const absl::string_view name = rest.substr(1, end == absl::string_view::npos ? end : end - 1);
  const std::string what = absl::StrCat("#include ", Quoted(name));
  if (open == '<' && backend == v1::BACKEND_OPENCL) {
    return absl::StrCat(what, " in angle brackets; allowed in OpenCL: the submission's own files, in quotes");
  }
  if (name.empty() || name.front() == '/' || absl::StrContains(name, '\\') || absl::StrContains(name, ':')) {
    return absl::StrCat(what, " is not relative; allowed: names below the submission's folder");
  }
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == ".." || part.empty()) {
      return absl::StrCat(what, " leads out of its folder; allowed: names below the submission's folder");
    }
  }
  return "";
}

std::string DirectiveMistake(absl::string_view line, v1::Backend backend) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (absl::StartsWith(line, "%:") || absl::StartsWith(line, "?\?=")) {
    return "a directive that begins with a digraph or trigraph; allowed: #";
  }
  if (!absl::ConsumePrefix(&line, "#")) return "";
  line = absl::StripLeadingAsciiWhitespace(line);
  const size_t end = std::find_if_not(line.begin(), line.end(), absl::ascii_isalpha) - line.begin();
  size_t name_end = end;
  while (name_end < line.size() && (absl::ascii_isalnum(line[name_end]) || line[name_end] == '_')) ++name_end;
  const absl::string_view name = line.substr(0, name_end);
  for (const absl::string_view refused : {"include_next", "import", "embed", "include_macros", "__include_macros"}) {
    if (name == refused) return absl::StrCat("#", refused, " is not allowed; #include is");
  }
  return name == "include" ? IncludeMistake(line.substr(name_end), backend) : "";
}

bool HasWord(absl::string_view line, absl::string_view word) {
  const auto in_word = [&](size_t at) {
    return at < line.size() && (absl::ascii_isalnum(line[at]) || line[at] == '_');
  };
  for (size_t at = line.find(word); at != absl::string_view::npos; at = line.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) return true;
  }
  return false;
}

std::string TextMistake(absl::string_view line, v1::Backend backend) {
  if (absl::StrContains(absl::AsciiStrToLower(line), "incbin")) return ".incbin is not allowed: it reads files";
  if (backend != v1::BACKEND_OPENCL) return "";
  for (const absl::string_view word : {"asm", "__asm", "__asm__"}) {
    if (HasWord(line, word)) return absl::StrCat(word, " is not allowed: inline assembly has no place in OpenCL C");
  }
  return "";
}

}  // namespace

std::vector<std::string> MistakesInSource(absl::string_view path, absl::string_view text, v1::Backend backend) {
  std::vector<std::string> mistakes;
  const std::vector<std::string> lines = Lines(text).Read();
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& mistake : {DirectiveMistake(lines[i], backend), TextMistake(lines[i], backend)}) {
      if (!mistake.empty()) mistakes.push_back(absl::StrCat(path, ":", i + 1, ": ", mistake));
    }
  }
  return mistakes;
}

}  // namespace attune::submit
