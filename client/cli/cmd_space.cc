// attune space: the variants of a problem, and what removed the others.
#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/conditions.h"
#include "client/cli/json.h"
#include "client/cli/preflight_text.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct SpaceArguments {
  std::string problem;
  std::vector<std::string> families;
  bool list = false;
  bool ignore_advice = false;
  Conditions conditions;
};

void PrintCounts(Session& session, const v1::PreflightResponse& space) {
  Table table({{"family"}, {"variants", kNumber}, {"removed by", kFlexible}, {"because", kWrapped}});
  for (const auto& family : space.families()) {
    table.Row({family.name(), absl::StrCat(family.product()), "", "every combination of the parameters' values"});
    for (const auto& removed : family.removed()) {
      table.Row({"", absl::StrCat("-", removed.removed()), removed.constraint(),
                 absl::StrCat(removed.reason(), removed.advice() ? " (advice)" : "")});
    }
    table.Row({"",
               {absl::StrCat(family.lower_bound() ? "" : "= ", VariantCount(family)), Color::kBold},
               family.feasible() ? "" : family.reason(),
               CompilesKnown(family) ? Counted(family.compiles(), "compile") : ""});
  }
  session.Print(table);
}

absl::StatusOr<ExitCode> RunSpaceOn(Session& session, Client& client, const SpaceArguments& arguments,
                                    const Problem& problem) {
  v1::PreflightRequest request = MakePreflightRequest(session, problem, arguments.families);
  request.set_list_variants(arguments.list);
  request.set_ignore_advice(arguments.ignore_advice);
  if (absl::Status status = AddConditions(arguments.conditions, request.mutable_where()); !status.ok()) return status;
  const auto space = client.Preflight(request);
  if (!space.ok()) return space.status();
  if (arguments.list) {
    for (const v1::Variant& variant : space->variants()) {
      if (session.json()) {
        session.Emit(VariantJson(variant));
      } else {
        session.PrintWhole(VariantText(variant));
      }
    }
  } else if (session.json()) {
    session.Emit(PreflightJson(*space));
  } else {
    PrintCounts(session, *space);
  }
  if (arguments.list || !session.json()) {
    for (const std::string& warning : space->warnings()) session.Note(absl::StrCat("warning: ", warning));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunSpace(Session& session, const SpaceArguments& arguments) {
  const auto problems = ReadProblems(session, arguments.problem);
  if (!problems.ok()) return problems.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  return ForEachProblem(session, *problems, [&](const Problem& problem) {
    if (problems->size() > 1 && !session.json() && !arguments.list) session.Print(absl::StrCat(ToText(problem), ":"));
    return RunSpaceOn(session, **client, arguments, problem);
  });
}

}  // namespace

Action AddSpace(CLI::App& app) {
  auto arguments = std::make_shared<SpaceArguments>();
  AddProblemsArgument(app, &arguments->problem)->required();
  AddRepeatable(app, "--family", &arguments->families, "Only these families");
  app.add_flag("--ignore-advice", arguments->ignore_advice, kIgnoreAdviceHelp);
  AddConditionOptions(app, &arguments->conditions);
  app.add_flag("--list", arguments->list, "List the variants, one per line");
  return [arguments](Session& session) { return RunSpace(session, *arguments); };
}

}  // namespace attune::cli
