// attune jobs: operations, newest first.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/pages.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct Arguments {
  bool active = false;
  int64_t limit = 50;
};

Color ColorOf(v1::Operation::State state) {
  switch (state) {
    case v1::Operation::STATE_SUCCEEDED:
      return Color::kGreen;
    case v1::Operation::STATE_FAILED:
      return Color::kRed;
    case v1::Operation::STATE_CANCELLED:
      return Color::kYellow;
    default:
      return Color::kCyan;
  }
}

void AddRow(const v1::Operation& operation, Table* table) {
  const v1::OperationProgress& progress = operation.progress();
  table->Row({operation.name(),
              {Word(operation.state()), ColorOf(operation.state())},
              operation.done() ? "" : Word(progress.phase()),
              absl::StrCat(progress.trials_done(), "/", progress.trials_total()),
              Micros(progress.best().timing().median_us()),
              LocalTime(operation.create_time()),
              {operation.has_error() ? absl::StrCat(operation.title(), ": ", operation.error().message())
                                     : operation.title()}});
}

absl::StatusOr<ExitCode> Run(Session& session, const Arguments& arguments) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  v1::ListOperationsRequest request;
  request.set_active_only(arguments.active);
  Table table({{"operation"},
               {"state"},
               {"phase"},
               {"trials", kNumber},
               {"best us", kNumber},
               {"started"},
               {"what", kFlexible}});
  const absl::Status status = ForEach(**client, &Client::ListOperations, &v1::ListOperationsResponse::operations,
                                      request, arguments.limit, [&](const v1::Operation& operation) {
                                        if (session.json()) {
                                          session.Emit(OperationJson(operation));
                                        } else {
                                          AddRow(operation, &table);
                                        }
                                      });
  if (!status.ok()) return status;
  if (session.json()) return ExitCode::kOk;
  if (table.empty()) {
    session.Note("No operations.");
  } else {
    session.Print(table);
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddJobs(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_flag("--active", arguments->active, "Only those queued or running");
  AddCount(app, "--limit", &arguments->limit, "At most this many; 0: all; default 50");
  return [arguments](Session& session) { return Run(session, *arguments); };
}

}  // namespace attune::cli
