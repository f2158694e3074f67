// attune families: what can be tried, and with which parameters.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/existence.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

void PrintAll(Session& session, const std::vector<v1::KernelFamily>& families) {
  Table table({{"family"}, {"backend"}, {"parameters", kNumber}, {"description", kFlexible}});
  for (const v1::KernelFamily& family : families) {
    table.Row({family.name(), Word(family.backend()), absl::StrCat(family.parameters_size()), family.description()});
  }
  session.Print(table);
}

void PrintOne(Session& session, const v1::KernelFamily& family) {
  session.Print(absl::StrCat(family.name(), " (", Word(family.backend()), "): ", family.description(), "\n"));
  Table parameters({{"parameter"}, {"bound at"}, {"values", kFlexible}, {"description", kFlexible}});
  for (const auto& parameter : family.parameters()) {
    parameters.Row({parameter.name(), parameter.launch_time() ? "launch" : "compile",
                    absl::StrJoin(parameter.values(), " "), parameter.description()});
  }
  session.Print(parameters);
  Table constraints({{"must hold", kFlexible}, {"because", kFlexible}});
  for (const auto& limit : family.problem_limits()) constraints.Row({limit.expression(), limit.reason()});
  for (const auto& constraint : family.constraints()) {
    constraints.Row(
        {constraint.expression(), absl::StrCat(constraint.reason(), constraint.advice() ? " (advice)" : "")});
  }
  session.Print("");
  session.Print(constraints);
}

absl::StatusOr<ExitCode> RunFamilies(Session& session, const std::string& name) {
  const auto client = session.client();
  if (!client.ok()) return client.status();
  if (absl::Status known = CheckFamily(**client, name); !known.ok()) return known;
  const auto response = (*client)->ListKernelFamilies();
  if (!response.ok()) return response.status();
  std::vector<v1::KernelFamily> families;
  for (const v1::KernelFamily& family : response->families()) {
    if (name.empty() || family.name() == name) families.push_back(family);
  }
  if (session.json()) {
    for (const v1::KernelFamily& family : families) session.Emit(FamilyJson(family));
  } else if (name.empty()) {
    PrintAll(session, families);
  } else {
    PrintOne(session, families.front());
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddFamilies(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("family", *name, "Show this one with its parameters and constraints");
  return [name](Session& session) { return RunFamilies(session, *name); };
}

}  // namespace attune::cli
