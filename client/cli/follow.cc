#include "client/cli/follow.h"

#include <optional>
#include <stop_token>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json.h"
#include "client/cli/operation_result.h"
#include "client/cli/progress_display.h"

namespace attune::cli {
namespace {

enum class Choice { kDetach, kCancel, kWatchOn };

Choice Ask(Session& session) {
  session.env().err << "\nInterrupted. [d]etach and let it go on, [c]ancel it, or [w]atch on? " << std::flush;
  const std::optional<std::string> line = session.env().interrupts->ReadLine();
  if (!line.has_value()) {
    session.env().err << "\n";
    return Choice::kDetach;
  }
  const std::string word = absl::AsciiStrToLower(absl::StripAsciiWhitespace(*line));
  if (!word.empty() && absl::StartsWith("cancel", word)) return Choice::kCancel;
  if (!word.empty() && absl::StartsWith("watch", word)) return Choice::kWatchOn;
  return Choice::kDetach;
}

ExitCode Detached(Session& session, const std::string& operation) {
  session.Note(absl::StrCat("attune: detached; the operation goes on. See it again: attune watch ", operation));
  return ExitCode::kInterrupted;
}

}  // namespace

absl::StatusOr<ExitCode> Follow(Session& session, const v1::Operation& operation, const OnDone& on_done) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  bool may_ask = session.env().in_is_terminal && session.env().err_is_terminal;
  ProgressDisplay display(&session);
  for (;;) {
    std::stop_source stop;
    absl::StatusOr<v1::Operation> last = operation;
    if (!operation.done()) {
      const auto listener = session.env().interrupts->Listen([&stop] { stop.request_stop(); });
      last = (*client)->Watch(
          operation.name(), [&display](const v1::Operation& now) { display.Show(now); }, stop.get_token(),
          [&display](const absl::Status& why) { display.Broken(why); });
    }
    if (last.ok()) {
      const absl::Status seen = on_done ? on_done(*last) : absl::OkStatus();
      const absl::StatusOr<ExitCode> code = PrintResult(session, *last);
      return seen.ok() ? code : seen;
    }
    if (!stop.stop_requested() || !absl::IsCancelled(last.status())) return last.status();
    display.LetGo();
    const Choice choice = may_ask ? Ask(session) : Choice::kDetach;
    if (choice == Choice::kDetach) return Detached(session, operation.name());
    if (choice == Choice::kCancel) {
      if (const auto cancelled = (*client)->Cancel(operation.name()); !cancelled.ok()) return cancelled.status();
      may_ask = false;  // from here, Ctrl-C means that waiting for the cancellation is too long
    }
  }
}

absl::StatusOr<ExitCode> FollowUnless(bool detach, Session& session, const absl::StatusOr<v1::Operation>& started,
                                      const OnDone& on_done) {
  if (!started.ok()) return started.status();
  if (!detach) return Follow(session, *started, on_done);
  if (session.json()) {
    session.Emit(OperationJson(*started));
  } else {
    session.Print(started->name());
  }
  return ExitCode::kOk;
}

}  // namespace attune::cli
