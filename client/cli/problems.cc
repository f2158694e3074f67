#include "client/cli/problems.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "client/cpp/status.h"

namespace attune::cli {

absl::Status ForEachLine(Session& session, const std::function<absl::Status(absl::string_view line)>& read) {
  int number = 0;
  bool any = false;
  for (std::string line; std::getline(session.env().in, line);) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#') continue;
    any = true;
    if (const absl::Status status = read(text); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat("standard input, line ", number, ": ", status.message()));
    }
  }
  if (!any) return absl::InvalidArgumentError("standard input has no problem; write one per line");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Problem>> ReadProblems(Session& session, const std::string& argument) {
  std::vector<Problem> problems;
  const auto add = [&problems](absl::string_view text) {
    const absl::StatusOr<Problem> problem = ParseProblem(text);
    if (problem.ok()) problems.push_back(*problem);
    return problem.status();
  };
  const absl::Status status = argument == kStandardInput ? ForEachLine(session, add) : add(argument);
  if (!status.ok()) return status;
  return problems;
}

absl::StatusOr<std::vector<Problem>> ReadProblems(Session& session, const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  for (const std::string& argument : arguments) {
    const absl::StatusOr<std::vector<Problem>> read = ReadProblems(session, argument);
    if (!read.ok()) return read.status();
    problems.insert(problems.end(), read->begin(), read->end());
  }
  return problems;
}

absl::StatusOr<std::string> CanonicalText(const std::string& problem) {
  if (problem.empty()) return "";
  const absl::StatusOr<Problem> parsed = ParseProblem(problem);
  if (!parsed.ok()) return parsed.status();
  return ToText(*parsed);
}

absl::StatusOr<ExitCode> ForEachProblem(Session& session, const std::vector<Problem>& problems,
                                        const std::function<absl::StatusOr<ExitCode>(const Problem&)>& act) {
  if (problems.size() == 1) return act(problems[0]);
  ExitCode first = ExitCode::kOk;
  for (const Problem& problem : problems) {
    absl::StatusOr<ExitCode> code = act(problem);
    if (!code.ok()) {
      if (IsUnreachable(code.status())) return code;
      session.Note(absl::StrCat("attune: ", ToText(problem), ": ", OneLine(code.status().message())));
      code = ExitCodeOf(code.status());
    }
    if (*code == ExitCode::kInterrupted) return code;
    if (first == ExitCode::kOk) first = *code;
  }
  return first;
}

}  // namespace attune::cli
