// A table for people: aligned columns that keep to the terminal's width.
#ifndef ATTUNE_CLIENT_CLI_TABLE_H_
#define ATTUNE_CLIENT_CLI_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "client/cli/styled_text.h"
#include "proto/attune/quote.h"

namespace attune::cli {

// Its text is made printable: what others wrote neither breaks the table nor reaches the terminal as commands.
struct Cell {
  Cell(const std::string& cell_text, Color cell_color = Color::kPlain)  // NOLINT(google-explicit-constructor)
      : text(Printable(cell_text)), color(cell_color) {}
  Cell(const char* cell_text) : text(Printable(cell_text)) {}  // NOLINT(google-explicit-constructor)

  std::string text;
  Color color = Color::kPlain;
};

struct Column {
  // Where a line would be too long, kFlexible is clipped and kWrapped, the last column, goes on in further lines.
  // kName, which tells rows apart, is clipped in its middle, and only where that is not enough. kVariant is kFlexible,
  // but what all rows have in common goes before anything is clipped.
  enum class Kind { kText, kNumber, kFlexible, kWrapped, kName, kVariant };

  std::string header;
  Kind kind = Kind::kText;
  int spare = 0;  // above 0: left out where there is no room for it, the highest first
};

constexpr Column::Kind kText = Column::Kind::kText;
constexpr Column::Kind kNumber = Column::Kind::kNumber;
constexpr Column::Kind kFlexible = Column::Kind::kFlexible;
constexpr Column::Kind kWrapped = Column::Kind::kWrapped;
constexpr Column::Kind kName = Column::Kind::kName;
constexpr Column::Kind kVariant = Column::Kind::kVariant;

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Cells that are not given stay empty.
  void Row(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }
  // Numbers to the right, text to the left, a header line unless every header is empty. To have at most `width` columns
  // a line (0: no limit), spare columns are left out until flexible ones have 40 or all they need; then these shrink,
  // but not below 10, and then names, but not below 24. The rest is never clipped.
  std::string Render(size_t width, bool colored) const;

 private:
  struct Shown {
    size_t column;
    size_t width;
  };
  std::vector<Shown> Layout(size_t width) const;
  // Whether a variant has less room than it needs.
  bool ClipsVariants(const std::vector<Shown>& shown) const;
  // With of each variant only what tells it from the others, in columns that are no longer kVariant.
  Table WithShortVariants() const;
  // Narrows the widest of `kinds` first, so that two of them end about equal, until lines have at most `width` columns
  // or each has `least`.
  void Shrink(std::vector<Shown>& shown, size_t width, const std::vector<Column::Kind>& kinds, size_t least) const;
  // Without what is spare, until flexible columns have room.
  std::vector<Shown> Choose(size_t width) const;

  const std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_TABLE_H_
