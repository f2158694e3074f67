#include "server/profile/findings.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"

namespace attune::profile {
namespace {

// Of a program in which the tool has found something.
constexpr int kErrorExit = 99;
constexpr int kMostFindings = 5;
constexpr size_t kMostText = 400;
constexpr absl::string_view kPrefix = "=========";

// "3" of "RACECHECK SUMMARY: 3 hazards displayed (...)".
std::optional<int64_t> Summary(absl::string_view output, absl::string_view begin) {
  const size_t at = output.rfind(begin);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = output.substr(at + begin.size());
  int64_t count = 0;
  if (!absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &count)) return std::nullopt;
  return count;
}

// The reports, each in a line: a report is a line and those that are indented behind it, up to the host's stack.
std::vector<std::string> ReportsIn(absl::string_view output) {
  std::vector<std::string> reports;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (!absl::ConsumePrefix(&line, kPrefix)) continue;
    const bool indented = absl::StartsWith(line, "    ");
    line = absl::StripAsciiWhitespace(line);
    if (!indented) {
      inside = !line.empty() && line != "COMPUTE-SANITIZER" && !absl::StrContains(line, "SUMMARY:");
      if (inside) reports.emplace_back(line);
    } else if (absl::StartsWith(line, "Saved host backtrace") || absl::StartsWith(line, "Host Frame")) {
      inside = false;
    } else if (inside) {
      absl::StrAppend(&reports.back(), "; ", line);
    }
  }
  return reports;
}

// The last line with something in it, of the program itself or of the tool.
std::string LastLine(absl::string_view output) {
  absl::string_view last = "it printed nothing";
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    absl::ConsumePrefix(&line, kPrefix);
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty() && !absl::StrContains(line, "SUMMARY:")) last = line;
  }
  return Cleaned(last, kMostText);
}

}  // namespace

std::string Word(v1::SanitizerTool tool) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::SanitizerTool_Name(tool), "SANITIZER_TOOL_"));
}

std::vector<std::string> SanitizerOptions(v1::SanitizerTool tool) {
  std::vector<std::string> options = {absl::StrCat("--tool=", Word(tool)),
                                      absl::StrCat("--error-exitcode=", kErrorExit),
                                      absl::StrCat("--print-limit=", kMostFindings)};
  // Allocations are kept apart, so that what lies behind one is nobody's. A kernel's parameters are counted by asking
  // the driver for the next one until it has none, which is no error of the kernel.
  if (tool == v1::SANITIZER_TOOL_MEMCHECK) options.insert(options.end(), {"--padding=4096", "--report-api-errors=no"});
  // Hazards of asynchronous copies (cp.async) too.
  if (tool == v1::SANITIZER_TOOL_RACECHECK) options.emplace_back("--racecheck-memcpy-async=yes");
  return options;
}

v1::SanitizerRun RunOf(v1::SanitizerTool tool, absl::string_view output, int exit_code) {
  v1::SanitizerRun run;
  run.set_tool(tool);
  const std::optional<int64_t> errors =
      Summary(output, tool == v1::SANITIZER_TOOL_RACECHECK ? "RACECHECK SUMMARY: " : "ERROR SUMMARY: ");
  if (errors.value_or(0) > 0) {
    run.set_errors(*errors);
    for (const std::string& report : ReportsIn(output)) {
      if (run.findings_size() < kMostFindings) run.add_findings(Cleaned(report, kMostText));
    }
    return run;
  }
  // A program that fails by itself was not looked at whole.
  if (!errors.has_value() || exit_code != 0) {
    run.set_incomplete(absl::StrCat(Word(tool), " came to no result, exit code ", exit_code, ": ", LastLine(output)));
  }
  return run;
}

}  // namespace attune::profile
