// attune best: the answer for a problem, from the server or from a snapshot.
#include "absl/strings/str_cat.h"
#include "client/cli/answer_text.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/problems.h"
#include "client/cli/text.h"
#include "client/cli/trial_text.h"
#include "client/cpp/files.h"
#include "client/cpp/status.h"
#include "proto/attune/objective.h"

namespace attune::cli {
namespace {

struct BestArguments {
  std::string problem;
  std::string artifact;
  bool offline = false;
  std::string snapshot;
  bool exact = false;
  bool ranges = false;
  std::string wait;
  v1::Objective objective = v1::OBJECTIVE_TIME;
};

absl::StatusOr<BestQuery> ToQuery(const Session& session, const BestArguments& arguments, const Problem& problem) {
  BestQuery query;
  if (!arguments.wait.empty()) {
    const auto wait = ParseDuration("--wait", arguments.wait);
    if (!wait.ok()) return wait.status();
    query.wait = *wait;
  }
  query.problem = problem;
  query.device_id = session.options().device;
  query.policy = session.policy();
  if (arguments.exact) query.acceptable = {v1::PROVENANCE_EXACT, v1::PROVENANCE_TIE};
  query.include_artifact = !arguments.artifact.empty();
  query.include_domains = arguments.ranges;
  query.objective = arguments.objective;
  return query;
}

absl::StatusOr<AnswerPtr> FromSnapshot(const std::string& path, bool is_default, const BestQuery& query) {
  if (path.empty()) return absl::NotFoundError("there is no default snapshot without HOME; give --snapshot FILE");
  const auto snapshot = Snapshot::Load(path);
  if (absl::IsNotFound(snapshot.status()) && is_default) {
    return absl::NotFoundError(
        absl::StrCat(snapshot.status().message(),
                     "; `attune export FILE` beside the server makes one, `attune import FILE` keeps it here"));
  }
  if (!snapshot.ok()) return snapshot.status();
  AnswerPtr answer =
      (*snapshot)->Find({query.problem, query.device_id, query.policy, attune::UnlessTime(query.objective)});
  const bool accepted =
      answer != nullptr && (query.acceptable.empty() || answer->provenance() == v1::PROVENANCE_EXACT ||
                            answer->provenance() == v1::PROVENANCE_TIE);
  if (accepted) return answer;
  return absl::NotFoundError(absl::StrCat("the snapshot '", path, "' has no ", answer == nullptr ? "" : "exact ",
                                          "answer for ", ToText(query.problem), query.device_id.empty() ? "" : " on ",
                                          query.device_id, ", policy ", attune::Word(query.policy)));
}

absl::StatusOr<AnswerPtr> Ask(Session& session, const BestArguments& arguments, const Problem& problem) {
  const absl::StatusOr<BestQuery> valid = ToQuery(session, arguments, problem);
  if (!valid.ok()) return valid.status();
  const BestQuery& query = *valid;
  if (!arguments.snapshot.empty()) return FromSnapshot(arguments.snapshot, /*is_default=*/false, query);
  if (arguments.offline) return FromSnapshot(session.snapshot_path(), /*is_default=*/true, query);
  const auto client = session.client();
  if (!client.ok()) return client.status();
  return (*client)->GetBest(query);
}

// "~" before what is predicted.
std::string TimeText(const v1::GetBestResponse& answer) {
  if (!IsOfNearest(answer)) return Micros(answer.timing().median_us());
  return answer.has_predicted() ? absl::StrCat("~", Micros(answer.predicted().us())) : "-";
}

// The answers for many problems, a line each.
absl::StatusOr<ExitCode> RunMany(Session& session, const BestArguments& arguments,
                                 const std::vector<Problem>& problems) {
  if (!arguments.artifact.empty()) {
    return absl::InvalidArgumentError("--artifact names one file; it cannot go with several problems");
  }
  Table table({{"problem", kName}, {"provenance"}, {"time us", kNumber}, {"variant", kVariant}});
  const auto code = ForEachProblem(session, problems, [&](const Problem& problem) -> absl::StatusOr<ExitCode> {
    const auto answer = Ask(session, arguments, problem);
    if (!answer.ok()) return answer.status();
    if (session.json()) {
      session.Emit(AnswerJson(**answer, session.policy()));
    } else {
      table.Row(
          {ToText(problem), Word((*answer)->provenance()), TimeText(**answer), VariantText((*answer)->variant())});
    }
    return ExitCode::kOk;
  });
  if (!table.empty()) session.Print(table);
  return code;
}

absl::StatusOr<ExitCode> RunBest(Session& session, const BestArguments& arguments) {
  const auto problems = ReadProblems(session, arguments.problem);
  if (!problems.ok()) return problems.status();
  if (problems->size() > 1) return RunMany(session, arguments, *problems);
  const auto answer = Ask(session, arguments, problems->front());
  if (!answer.ok()) return answer.status();
  if (!arguments.artifact.empty()) {
    if ((*answer)->artifact().empty()) {
      return absl::NotFoundError(absl::StrCat(
          "there is no artifact of ", VariantText((*answer)->variant()), "; its code is ", CodeText(**answer),
          (*answer)->artifact_state() == v1::ARTIFACT_STATE_COMPILING ? " (--wait 30s waits for it)" : ""));
    }
    if (absl::Status status = ReplaceFile(arguments.artifact, (*answer)->artifact()); !status.ok()) return status;
  }
  if (session.json()) {
    session.Emit(AnswerJson(**answer, session.policy()));
  } else {
    PrintAnswer(session, **answer);
    if (!arguments.artifact.empty()) {
      session.Note(absl::StrCat("wrote ", Bytes(static_cast<int64_t>((*answer)->artifact().size())), " to ",
                                arguments.artifact));
    }
  }
  return ExitCode::kOk;
}

}  // namespace

Action AddBest(CLI::App& app) {
  auto arguments = std::make_shared<BestArguments>();
  AddProblemsArgument(app, &arguments->problem)->required();
  app.add_option("--artifact", arguments->artifact, "Write the compiled code (cubin, OpenCL binary) to this file");
  app.add_option("--wait", arguments->wait,
                 "Wait this long, at most 60s, for code that the server is compiling; default: not at all");
  AddObjective(
      app, &arguments->objective,
      "What it is to be the best by: time (the default), energy (joules a run) or edp (energy-delay product), as "
      "far as tune --objective has measured it; else the fastest, and the provenance says why");
  app.add_flag("--exact", arguments->exact, "Accept only what was tuned for this very problem and is not stale");
  app.add_flag("--ranges", arguments->ranges,
               "Say also for which lengths and batches the answer holds; a shape that nobody tuned is then answered by "
               "what is nearest, since what is expected to be the fastest holds for one shape");
  app.add_flag("--offline", arguments->offline, "Answer from the snapshot that was imported; ask no server");
  app.add_option("--snapshot", arguments->snapshot, "Answer from this snapshot file; ask no server");
  return [arguments](Session& session) { return RunBest(session, *arguments); };
}

}  // namespace attune::cli
