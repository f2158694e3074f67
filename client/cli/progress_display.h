// Shows an operation's progress as it changes: redrawn in place on a terminal, a line now and then in a log, JSON lines
// for programs.
#ifndef ATTUNE_CLIENT_CLI_PROGRESS_DISPLAY_H_
#define ATTUNE_CLIENT_CLI_PROGRESS_DISPLAY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "attune/v1/service.pb.h"
#include "client/cli/session.h"

namespace attune::cli {

// Used from one thread.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(Session* session) : session_(*session) {}

  void Show(const v1::Operation& operation);
  // The operation cannot be seen at the moment: says why, once until it is seen again.
  void Broken(const absl::Status& why);
  // Leaves what is on the screen where it is; the next Show starts below it.
  void LetGo() { drawn_lines_ = 0; }

 private:
  void Redraw(const v1::Operation& operation);
  void Log(const v1::Operation& operation);

  Session& session_;
  size_t drawn_lines_ = 0;
  bool broken_ = false;  // since the last Show
  // What the last log line was about: phase, tenth of the trials, best, problem, wait, message.
  std::string last_logged_;
};

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_PROGRESS_DISPLAY_H_
