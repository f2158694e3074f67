#include "client/cli/styled_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

constexpr absl::string_view kEllipsis = "...";

bool StartsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

absl::string_view Escape(Color color) {
  switch (color) {
    case Color::kPlain:
      return "";
    case Color::kBold:
      return "\033[1m";
    case Color::kDim:
      return "\033[2m";
    case Color::kRed:
      return "\033[31m";
    case Color::kGreen:
      return "\033[32m";
    case Color::kYellow:
      return "\033[33m";
    case Color::kCyan:
      return "\033[36m";
  }
  return "";
}

absl::string_view FirstColumns(absl::string_view text, size_t columns) {
  size_t bytes = 0;
  for (; bytes < text.size(); ++bytes) {
    if (!StartsCodePoint(text[bytes])) continue;
    if (columns == 0) break;
    --columns;
  }
  return text.substr(0, bytes);
}

// Where the first line of `text` ends, which is longer than `width`: at its last space, after its last comma, or where
// its only word does.
size_t LineEnd(absl::string_view text, size_t width) {
  size_t space = 0;
  size_t comma = 0;
  size_t columns = 0;
  bool leads = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (columns > width && space + comma > 0) break;
    leads = leads && text[i] == ' ';
    if (text[i] == ' ' && !leads) space = i;
    if (text[i] == ',' && columns < width) comma = i + 1;
    columns += StartsCodePoint(text[i]) ? 1 : 0;
  }
  if (space > 0) return space;
  return comma > 0 ? comma : text.size();
}

}  // namespace

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  for (const char c : text) width += StartsCodePoint(c) ? 1 : 0;
  return width;
}

std::string Clip(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width <= kEllipsis.size()) return std::string(FirstColumns(text, width));
  return absl::StrCat(FirstColumns(text, width - kEllipsis.size()), kEllipsis);
}

std::string ClipMiddle(absl::string_view text, size_t width) {
  const size_t columns = DisplayWidth(text);
  if (columns <= width || width <= kEllipsis.size()) return Clip(text, width);
  const size_t head = (width - kEllipsis.size()) / 3;
  const size_t tail = width - kEllipsis.size() - head;
  return absl::StrCat(FirstColumns(text, head), kEllipsis, text.substr(FirstColumns(text, columns - tail).size()));
}

std::vector<absl::string_view> Wrap(absl::string_view text, size_t width, size_t indent) {
  std::vector<absl::string_view> lines;
  while (width > 0 && DisplayWidth(text) > width) {
    const size_t end = LineEnd(text, width);
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
    if (lines.size() == 1) width -= std::min(indent, width - 1);
  }
  if (!text.empty() || lines.empty()) lines.push_back(text);
  return lines;
}

std::string Paint(absl::string_view text, Color color, bool colored) {
  if (!colored || color == Color::kPlain || text.empty()) return std::string(text);
  return absl::StrCat(Escape(color), text, "\033[0m");
}

std::string PrintableLine(absl::string_view line) {
  const size_t first = std::min(line.find_first_not_of('\n'), line.size());
  const size_t end = std::max(first, line.find_last_not_of('\n') + 1);
  return absl::StrCat(line.substr(0, first), Printable(line.substr(first, end - first)), line.substr(end));
}

std::string WrappedLine(absl::string_view line, size_t width) {
  const std::string printable = PrintableLine(line);
  const size_t first = std::min(printable.find_first_not_of('\n'), printable.size());
  const absl::string_view text = absl::string_view(printable).substr(first);
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  return absl::StrCat(printable.substr(0, first),
                      absl::StrJoin(Wrap(text, width, indent), absl::StrCat("\n", std::string(indent, ' '))));
}

StyledLine& StyledLine::Add(absl::string_view text, Color color) {
  pieces_.push_back({Printable(text), color});
  return *this;
}

std::string StyledLine::Render(size_t width, bool colored) const {
  size_t total = 0;
  for (const Piece& piece : pieces_) total += DisplayWidth(piece.text);
  std::string line;
  if (width == 0 || total <= width) {
    for (const Piece& piece : pieces_) absl::StrAppend(&line, Paint(piece.text, piece.color, colored));
    return line;
  }
  const size_t kept = width > kEllipsis.size() ? width - kEllipsis.size() : width;
  size_t used = 0;
  for (const Piece& piece : pieces_) {
    const absl::string_view text = FirstColumns(piece.text, kept - used);
    used += DisplayWidth(text);
    absl::StrAppend(&line, Paint(text, piece.color, colored));
    if (used == kept) break;
  }
  return kept < width ? absl::StrCat(line, kEllipsis) : line;
}

std::string StyledLine::RenderWrapped(size_t width, bool colored) const {
  std::string whole;
  for (const Piece& piece : pieces_) absl::StrAppend(&whole, piece.text);
  std::string lines;
  for (const absl::string_view line : Wrap(whole, width)) {
    absl::StrAppend(&lines, lines.empty() ? "" : "\n");
    const size_t begin = line.data() - whole.data();
    size_t at = 0;  // where the piece begins in `whole`
    for (const Piece& piece : pieces_) {
      const size_t from = std::max(begin, at);
      const size_t to = std::min(begin + line.size(), at + piece.text.size());
      if (from < to) absl::StrAppend(&lines, Paint(whole.substr(from, to - from), piece.color, colored));
      at += piece.text.size();
    }
  }
  return lines;
}

Color ColorOf(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_OK:
      return Color::kGreen;
    case v1::VERDICT_INFEASIBLE:
    case v1::VERDICT_UNSTABLE:
    case v1::VERDICT_SLOW:
    case v1::VERDICT_LOST:
      return Color::kYellow;
    default:
      return Color::kRed;
  }
}

}  // namespace attune::cli
