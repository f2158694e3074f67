// attune whoami: whom the server takes the caller to be.
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json.h"

namespace attune::cli {
namespace {

absl::StatusOr<ExitCode> Whoami(Session& session) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const auto caller = (*client)->GetCaller();
  if (!caller.ok()) return caller.status();
  if (session.json()) {
    session.Emit(CallerJson(*caller));
    return ExitCode::kOk;
  }
  session.Print(absl::StrCat(caller->principal(), ", with the role ", caller->role()));
  for (const v1::Caller::Quota& quota : caller->quotas()) {
    session.Print(absl::StrCat("  quota of ", quota.name(), ": ", quota.limit()));
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddWhoami(CLI::App&) { return &Whoami; }

}  // namespace attune::cli
