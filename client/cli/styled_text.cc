#include "client/cli/styled_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
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

std::string Paint(absl::string_view text, Color color, bool colored) {
  if (!colored || color == Color::kPlain || text.empty()) return std::string(text);
  return absl::StrCat(Escape(color), text, "\033[0m");
}

std::string PrintableLine(absl::string_view line) {
  const size_t first = std::min(line.find_first_not_of('\n'), line.size());
  const size_t end = std::max(first, line.find_last_not_of('\n') + 1);
  return absl::StrCat(line.substr(0, first), Printable(line.substr(first, end - first)), line.substr(end));
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

Color ColorOf(v1::Verdict verdict) {
  switch (verdict) {
    case v1::VERDICT_OK:
      return Color::kGreen;
    case v1::VERDICT_INFEASIBLE:
    case v1::VERDICT_UNSTABLE:
    case v1::VERDICT_LOST:
      return Color::kYellow;
    default:
      return Color::kRed;
  }
}

}  // namespace attune::cli
