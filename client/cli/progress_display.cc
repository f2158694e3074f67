#include "client/cli/progress_display.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/cli/text.h"

namespace attune::cli {

void ProgressDisplay::Show(const v1::Operation& operation) {
  if (session_.quiet()) return;
  if (std::exchange(broken_, false)) session_.Note(absl::StrCat("attune: ", operation.name(), " is seen again"));
  if (session_.json()) {
    session_.Emit(ProgressJson(operation));
  } else if (session_.redraws_err()) {
    Redraw(operation);
  } else {
    Log(operation);
  }
}

void ProgressDisplay::Broken(const absl::Status& why) {
  if (session_.quiet() || std::exchange(broken_, true)) return;
  LetGo();
  session_.Note(
      absl::StrCat("attune: ", OneLine(why.message()), "; the operation is not seen until the server answers"));
}

void ProgressDisplay::Redraw(const v1::Operation& operation) {
  std::string frame;
  if (drawn_lines_ > 0) absl::StrAppend(&frame, "\033[", drawn_lines_, "A");
  const auto lines = RenderProgress(operation, static_cast<size_t>(session_.env().width), session_.colored_err());
  for (const std::string& line : lines) absl::StrAppend(&frame, "\033[2K", line, "\n");
  // Lines of the frame before that this one does not have.
  if (drawn_lines_ > lines.size()) absl::StrAppend(&frame, "\033[J");
  drawn_lines_ = lines.size();
  session_.env().err << frame << std::flush;
}

void ProgressDisplay::Log(const v1::Operation& operation) {
  const v1::OperationProgress& progress = operation.progress();
  const int64_t tenth = progress.trials_total() > 0 ? progress.trials_done() * 10 / progress.trials_total() : 0;
  const std::string about = absl::StrCat(progress.phase(), " ", tenth, " ", progress.best().name(), " ",
                                         progress.problems_done(), " ", WaitText(progress), NotableMessage(progress));
  if (about == last_logged_) return;
  last_logged_ = about;
  session_.Note(ProgressLogLine(operation));
}

}  // namespace attune::cli
