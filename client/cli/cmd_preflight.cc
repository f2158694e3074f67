// attune preflight: what there is to try.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/preflight_text.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"

namespace attune::cli {
namespace {

struct PreflightArguments {
  std::string problem;
  std::vector<std::string> families;
};

void Print(Session& session, const v1::PreflightResponse& preflight) {
  session.Print(absl::StrCat(ProblemText(preflight.problem()), " on ", preflight.device().id(), ", ",
                             preflight.device().compute_units(), " SMs"));
  session.Print(preflight.device().model());
  Table table({{"family"},
               {"variants", kNumber},
               {"of", kNumber},
               {"compiles", kNumber},
               {"known", kNumber},
               {"why not", kWrapped}});
  int64_t variants = 0;
  int64_t known = 0;
  bool lower_bound = false;
  for (const auto& family : preflight.families()) {
    variants += family.variants();
    known += family.known();
    lower_bound = lower_bound || family.lower_bound();
    table.Row({family.name(),
               VariantCount(family),
               absl::StrCat(family.product()),
               CompilesKnown(family) ? absl::StrCat(family.compiles()) : "-",
               absl::StrCat(family.known()),
               {family.reason(), Color::kYellow}});
  }
  session.Print(table);
  session.Print(absl::StrCat(
      lower_bound ? "more than " : "", Counted(variants, "variant"), ", ", known, " already tried",
      preflight.has_estimate() ? absl::StrCat(", about ", DurationText(FromProto(preflight.estimate())), " for all")
                               : ""));
  for (const std::string& warning : preflight.warnings()) session.Print(absl::StrCat("warning: ", warning));
}

absl::StatusOr<ExitCode> RunPreflightOn(Session& session, Client& client, const PreflightArguments& arguments,
                                        const Problem& problem) {
  const auto preflight = client.Preflight(MakePreflightRequest(session, problem, arguments.families));
  if (!preflight.ok()) return preflight.status();
  if (session.json()) {
    session.Emit(PreflightJson(*preflight));
  } else {
    Print(session, *preflight);
  }
  const bool feasible = std::any_of(preflight->families().begin(), preflight->families().end(),
                                    [](const auto& family) { return family.variants() > 0; });
  return feasible ? ExitCode::kOk : ExitCode::kInfeasible;
}

absl::StatusOr<ExitCode> RunPreflight(Session& session, const PreflightArguments& arguments) {
  const auto problems = ReadProblems(session, arguments.problem);
  if (!problems.ok()) return problems.status();
  const auto client = session.client();
  if (!client.ok()) return client.status();
  bool first = true;
  return ForEachProblem(session, *problems, [&](const Problem& problem) {
    if (!first && !session.json()) session.Print("");
    first = false;
    return RunPreflightOn(session, **client, arguments, problem);
  });
}

}  // namespace

Action AddPreflight(CLI::App& app) {
  auto arguments = std::make_shared<PreflightArguments>();
  AddProblemsArgument(app, &arguments->problem)->required();
  AddRepeatable(app, "--family", &arguments->families, "Only these families");
  return [arguments](Session& session) { return RunPreflight(session, *arguments); };
}

}  // namespace attune::cli
