#include "client/cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace attune::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastFlexible = 12;

std::string Padded(const Cell& cell, const Column& column, size_t width, bool colored, bool last) {
  const std::string text = Clip(cell.text, width);
  const std::string space(width - DisplayWidth(text), ' ');
  const std::string painted = Paint(text, cell.color, colored);
  if (column.kind == kNumber) return absl::StrCat(space, painted);
  return last ? painted : absl::StrCat(painted, space);
}

}  // namespace

void Table::Row(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::Widths(size_t width) const {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t widest = DisplayWidth(columns_[i].header);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i].text));
    widths.push_back(widest);
    total += widest + (i > 0 ? kGap : 0);
  }
  if (width == 0) return widths;
  // The widest flexible column gives way first, so that two of them end about equal.
  while (total > width) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].kind == kFlexible && widths[i] > kLeastFlexible && (widest == nullptr || widths[i] > *widest)) {
        widest = &widths[i];
      }
    }
    if (widest == nullptr) break;
    --*widest;
    --total;
  }
  return widths;
}

std::string Table::Render(size_t width, bool colored) const {
  const std::vector<size_t> widths = Widths(width);
  std::string text;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      line += Padded(cells[i], columns_[i], widths[i], colored, i + 1 == cells.size());
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  };
  std::vector<Cell> header;
  for (const Column& column : columns_) header.emplace_back(column.header, Color::kBold);
  if (std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return !c.header.empty(); })) {
    add_line(header);
  }
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace attune::cli
