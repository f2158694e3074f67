// Text with colours that are written only where they can be seen, and whose width is that of what can be seen.
#ifndef ATTUNE_CLIENT_CLI_STYLED_TEXT_H_
#define ATTUNE_CLIENT_CLI_STYLED_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "attune/v1/trial.pb.h"

namespace attune::cli {

enum class Color { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// Columns that UTF-8 text takes on a terminal, one for each code point.
size_t DisplayWidth(absl::string_view text);
// The first `width` columns, the last of them "..." when something was left out.
std::string Clip(absl::string_view text, size_t width);
// As Clip, but what is left out is in the middle: a problem ends with what tells it from others.
std::string ClipMiddle(absl::string_view text, size_t width);
// Lines of at most `width` columns, those behind the first `indent` narrower, as views into `text`. Broken at spaces,
// which go; a word that has no room is broken after a comma, else it stays whole. 0: no limit.
std::vector<absl::string_view> Wrap(absl::string_view text, size_t width, size_t indent = 0);
std::string Paint(absl::string_view text, Color color, bool colored);
// `line` as a terminal may be sent it: printable (proto/attune/quote.h) but for the newlines before and after it.
std::string PrintableLine(absl::string_view line);
// As PrintableLine, in lines of at most `width` columns, indented as the first one is; 0: no limit.
std::string WrappedLine(absl::string_view line, size_t width);

// A line of pieces. What a piece says is made printable: colours come from here alone.
class StyledLine {
 public:
  StyledLine& Add(absl::string_view text, Color color = Color::kPlain);
  // At most `width` columns; 0: no limit.
  std::string Render(size_t width, bool colored) const;
  // Whole, in lines of at most `width` columns; 0: no limit.
  std::string RenderWrapped(size_t width, bool colored) const;

 private:
  struct Piece {
    std::string text;
    Color color;
  };
  std::vector<Piece> pieces_;
};

// Green for OK, yellow for what is nobody's fault, red for what is wrong with the variant.
Color ColorOf(v1::Verdict verdict);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_STYLED_TEXT_H_
