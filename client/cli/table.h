// A table for people: aligned columns that keep to the terminal's width.
#ifndef ATTUNE_CLIENT_CLI_TABLE_H_
#define ATTUNE_CLIENT_CLI_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "client/cli/styled_text.h"

namespace attune::cli {

struct Cell {
  Cell(std::string cell_text, Color cell_color = Color::kPlain)  // NOLINT(google-explicit-constructor)
      : text(std::move(cell_text)), color(cell_color) {}
  Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)

  std::string text;
  Color color = Color::kPlain;
};

struct Column {
  enum class Kind { kText, kNumber, kFlexible };  // kFlexible: text that is clipped when the line would be too long

  std::string header;
  Kind kind = Kind::kText;
};

constexpr Column::Kind kText = Column::Kind::kText;
constexpr Column::Kind kNumber = Column::Kind::kNumber;
constexpr Column::Kind kFlexible = Column::Kind::kFlexible;

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Cells that are not given stay empty.
  void Row(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }
  // Numbers to the right, text to the left, a header line unless every header is empty. Flexible columns shrink until
  // a line has at most `width` columns (0: no limit), but not below 12; the rest is never clipped.
  std::string Render(size_t width, bool colored) const;

 private:
  std::vector<size_t> Widths(size_t width) const;

  const std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TABLE_H_
