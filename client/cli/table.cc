#include "client/cli/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/what_differs.h"

namespace attune::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastFlexible = 10;
constexpr size_t kLeastName = 24;
constexpr size_t kGoodFlexible = 40;

std::string Padded(const Cell& cell, const Column& column, size_t width, bool colored, bool last) {
  const std::string text = column.kind == kName ? ClipMiddle(cell.text, width) : Clip(cell.text, width);
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

std::vector<Table::Shown> Table::Choose(size_t width) const {
  std::vector<Shown> shown;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t widest = DisplayWidth(columns_[i].header);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i].text));
    shown.push_back({i, widest});
  }
  while (width > 0) {
    size_t least = 0;  // that reads well
    auto spare = shown.end();
    for (auto it = shown.begin(); it != shown.end(); ++it) {
      const Column& column = columns_[it->column];
      const bool gives_way = column.kind == kFlexible || column.kind == kWrapped || column.kind == kVariant;
      least += (gives_way ? std::min(it->width, kGoodFlexible) : it->width) + (it == shown.begin() ? 0 : kGap);
      if (column.spare > 0 && (spare == shown.end() || column.spare > columns_[spare->column].spare)) spare = it;
    }
    if (least <= width || spare == shown.end()) break;
    shown.erase(spare);
  }
  return shown;
}

void Table::Shrink(std::vector<Shown>& shown, size_t width, const std::vector<Column::Kind>& kinds,
                   size_t least) const {
  size_t total = shown.empty() ? 0 : kGap * (shown.size() - 1);
  for (const Shown& column : shown) total += column.width;
  for (; total > width; --total) {
    Shown* widest = nullptr;
    for (Shown& candidate : shown) {
      const bool may = std::find(kinds.begin(), kinds.end(), columns_[candidate.column].kind) != kinds.end();
      if (may && candidate.width > least && (widest == nullptr || candidate.width > widest->width)) {
        widest = &candidate;
      }
    }
    if (widest == nullptr) return;
    --widest->width;
  }
}

std::vector<Table::Shown> Table::Layout(size_t width) const {
  std::vector<Shown> shown = Choose(width);
  if (width > 0) {
    Shrink(shown, width, {kFlexible, kWrapped, kVariant}, kLeastFlexible);
    Shrink(shown, width, {kName}, kLeastName);
  }
  return shown;
}

bool Table::ClipsVariants(const std::vector<Shown>& shown) const {
  return std::any_of(shown.begin(), shown.end(), [this](const Shown& column) {
    return columns_[column.column].kind == kVariant && std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) {
             return DisplayWidth(row[column.column].text) > column.width;
           });
  });
}

Table Table::WithShortVariants() const {
  std::vector<Column> columns = columns_;
  std::vector<std::vector<Cell>> rows = rows_;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].kind != kVariant) continue;
    columns[i].kind = kFlexible;
    std::vector<std::string> variants;
    for (const auto& row : rows) variants.push_back(row[i].text);
    variants = WhatDiffers(variants);
    for (size_t j = 0; j < rows.size(); ++j) rows[j][i].text = variants[j];
  }
  Table table(std::move(columns));
  table.rows_ = std::move(rows);
  return table;
}

std::string Table::Render(size_t width, bool colored) const {
  const std::vector<Shown> shown = Layout(width);
  if (ClipsVariants(shown)) return WithShortVariants().Render(width, colored);
  std::string text;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string line;
    std::string rest;  // further lines, of the wrapped column
    size_t indent = 0;
    for (const Shown& column : shown) {
      const bool last = &column == &shown.back();
      Cell cell = cells[column.column];
      if (&column != &shown.front()) line.append(kGap, ' ');
      indent += (last ? 0 : column.width) + (&column == &shown.front() ? 0 : kGap);
      if (columns_[column.column].kind == kWrapped && width > 0) {
        const std::vector<absl::string_view> lines = Wrap(cell.text, column.width);
        for (size_t i = 1; i < lines.size(); ++i) {
          absl::StrAppend(&rest, std::string(indent, ' '), Paint(lines[i], cell.color, colored), "\n");
        }
        line += Paint(lines.front(), cell.color, colored);
        continue;
      }
      line += Padded(cell, columns_[column.column], column.width, colored, last);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n", rest);
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
