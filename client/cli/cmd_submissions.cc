// attune submissions, adopt and withdraw: what authors have brought, and whether it is served.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/kernel_files.h"
#include "client/cli/pages.h"
#include "client/cli/submission_text.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct SubmissionsArguments {
  std::string name;
  std::string loop;
  std::string principal;
  std::string out;
  int64_t limit = 50;
};

absl::StatusOr<ExitCode> Show(Session& session, Client& client, const SubmissionsArguments& arguments) {
  const auto submission = client.GetSubmission(ResourceName("submissions", arguments.name));
  if (!submission.ok()) return submission.status();
  if (!arguments.out.empty()) {
    if (absl::Status written = WriteKernelFiles(submission->files(), arguments.out); !written.ok()) return written;
    session.Note(absl::StrCat("wrote ", Counted(submission->files_size(), "file"), " below ", arguments.out));
  }
  if (session.json()) {
    session.Emit(SubmissionJson(*submission));
    return ExitCode::kOk;
  }
  Table table({{""}, {"", kWrapped}});
  table.Row({"submission", submission->name()});
  table.Row({"state", Word(submission->state())});
  table.Row({"family", submission->family()});
  table.Row({"by", submission->principal()});
  table.Row({"made", LocalTime(submission->create_time())});
  if (!submission->loop().empty()) {
    table.Row({"loop", absl::StrCat(submission->loop(), ", iteration ", submission->iteration())});
  }
  if (!submission->hypothesis().empty()) table.Row({"hypothesis", submission->hypothesis()});
  session.Print(table);
  session.Print("");
  PrintSubmitResult(session, submission->result());
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> List(Session& session, Client& client, const SubmissionsArguments& arguments) {
  v1::ListSubmissionsRequest request;
  request.set_loop(arguments.loop);
  request.set_principal(arguments.principal);
  Table table({{"submission", kName},
               {"state"},
               {"decision"},
               {"loop", kText, 2},
               {"by", kText, 3},
               {"made", kText, 4},
               {"problems", kFlexible},
               {"hypothesis", kFlexible, 1}});
  const absl::Status status = ForEach(
      client, &Client::ListSubmissions, &v1::ListSubmissionsResponse::submissions, request, arguments.limit,
      [&](const v1::Submission& submission) {
        if (session.json()) {
          session.Emit(SubmissionJson(submission));
          return;
        }
        table.Row({submission.name(), Word(submission.state()), Word(submission.result().decision()),
                   submission.loop().empty() ? "" : absl::StrCat(submission.loop(), " ", submission.iteration()),
                   submission.principal(), LocalTime(submission.create_time()),
                   absl::StrJoin(submission.problems(), ", "), submission.hypothesis()});
      });
  if (!status.ok()) return status;
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note("No submissions. To make one: attune submit DIR --problem b2.h8.q512.d64.f16");
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunSubmissions(Session& session, const SubmissionsArguments& arguments) {
  if (arguments.name.empty() && !arguments.out.empty()) {
    return absl::InvalidArgumentError("--out writes the files of one submission; name it, as submissions/7");
  }
  const auto client = session.client();
  if (!client.ok()) return client.status();
  return arguments.name.empty() ? List(session, **client, arguments) : Show(session, **client, arguments);
}

// `move` is Client::Adopt or Client::Withdraw.
absl::StatusOr<ExitCode> Move(Session& session, const std::string& name,
                              absl::StatusOr<v1::Submission> (Client::*move)(const std::string&),
                              absl::string_view then) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  const absl::StatusOr<v1::Submission> moved = ((*client)->*move)(ResourceName("submissions", name));
  if (!moved.ok()) return moved.status();
  if (session.json()) {
    session.Emit(SubmissionJson(*moved));
    return ExitCode::kOk;
  }
  session.Print(absl::StrCat(Word(moved->state()), ": ", moved->name(), ", kernel family ", moved->family()));
  if (!then.empty()) session.Note(then);
  return ExitCode::kOk;
}

}  // namespace

Action AddSubmissions(CLI::App& app) {
  auto arguments = std::make_shared<SubmissionsArguments>();
  app.add_option("name", arguments->name, "One of them, to show it");
  app.add_option("--loop", arguments->loop, "Of this loop alone, your own unless --principal is given");
  app.add_option("--principal", arguments->principal, "By this one alone, as attune whoami names it");
  app.add_option("--out", arguments->out, "Write the files of the one that is named below this folder");
  AddCount(app, "--limit", &arguments->limit, "At most so many; 0: all");
  return [arguments](Session& session) { return RunSubmissions(session, *arguments); };
}

Action AddAdopt(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("name", *name, "The submission, as submissions/7")->required();
  return [name](Session& session) {
    return Move(session, *name, &Client::Adopt, "attune tune and attune evaluate try it from now on.");
  };
}

Action AddWithdraw(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("name", *name, "The submission, as submissions/7")->required();
  return [name](Session& session) { return Move(session, *name, &Client::Withdraw, ""); };
}

}  // namespace attune::cli
