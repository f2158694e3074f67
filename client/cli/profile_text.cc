#include "client/cli/profile_text.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "proto/attune/quote.h"

namespace attune::cli {
namespace {

constexpr int kMostStalls = 3;

// Those that are numbers of things; all others but the time are shares.
const std::set<std::string>& Counts() {
  static const auto& counts = *new std::set<std::string>{
      "shared_wavefronts", "bank_conflicts", "l2_sectors", "dram_bytes", "instructions", "registers", "ctas"};
  return counts;
}

std::optional<double> Find(const v1::KernelProfile& kernel, absl::string_view name) {
  for (const v1::Counter& counter : kernel.counters()) {
    if (counter.name() == name) return counter.value();
  }
  return std::nullopt;
}

std::string ValueText(const v1::Counter& counter) {
  if (counter.name() == "duration_us") return absl::StrCat(Micros(counter.value()), " us");
  return Counts().count(counter.name()) > 0 ? absl::StrFormat("%.0f", counter.value())
                                            : absl::StrFormat("%.1f %%", counter.value() * 100);
}

std::string StallsText(const v1::KernelProfile& kernel) {
  std::vector<std::string> stalls;
  for (const v1::Stall& stall : kernel.stalls()) {
    if (static_cast<int>(stalls.size()) < kMostStalls) {
      stalls.push_back(absl::StrFormat("%s %.0f %%", stall.reason(), stall.share() * 100));
    }
  }
  return absl::StrJoin(stalls, ", ");
}

}  // namespace

std::string Word(v1::SanitizerTool tool) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::SanitizerTool_Name(tool), "SANITIZER_TOOL_"));
}

absl::StatusOr<v1::SanitizerTool> ParseSanitizer(absl::string_view text) {
  v1::SanitizerTool tool = v1::SANITIZER_TOOL_UNSPECIFIED;
  const std::string name = absl::StrCat("SANITIZER_TOOL_", absl::AsciiStrToUpper(text));
  if (v1::SanitizerTool_Parse(name, &tool) && tool != v1::SANITIZER_TOOL_UNSPECIFIED) return tool;
  return absl::InvalidArgumentError(
      absl::StrCat("--tool is ", Quoted(text), "; allowed: memcheck, racecheck, synccheck, initcheck"));
}

std::string CountersText(const v1::Profile& profile) {
  if (profile.kernels().empty()) return "";
  const auto longest = std::max_element(
      profile.kernels().begin(), profile.kernels().end(), [](const v1::KernelProfile& a, const v1::KernelProfile& b) {
        return Find(a, "duration_us").value_or(0) < Find(b, "duration_us").value_or(0);
      });
  std::vector<std::string> parts;
  for (const auto& [counter, word] : {std::pair("sm_throughput", "SM"), std::pair("memory_throughput", "memory"),
                                      std::pair("dram_throughput", "DRAM"), std::pair("tensor_pipe", "tensor"),
                                      std::pair("occupancy", "occupancy")}) {
    const std::optional<double> share = Find(*longest, counter);
    if (share.has_value()) parts.push_back(absl::StrCat(word, " ", Share(*share)));
  }
  return absl::StrJoin(parts, ", ");
}

void PrintProfile(Session& session, const v1::Profile& profile) {
  for (const v1::KernelProfile& kernel : profile.kernels()) {
    if (profile.kernels_size() > 1) session.Print(kernel.entry());
    Table table({{""}, {"", kNumber}});
    for (const v1::Counter& counter : kernel.counters()) table.Row({counter.name(), ValueText(counter)});
    session.Print(table);
    if (!kernel.stalls().empty()) session.Print(absl::StrCat("stalls: ", StallsText(kernel)));
  }
}

void PrintSanitizing(Session& session, const v1::Sanitizing& sanitizing) {
  for (const v1::SanitizerRun& run : sanitizing.runs()) {
    StyledLine line;
    const bool clean = run.errors() == 0 && run.incomplete().empty();
    line.Add(Word(run.tool()), Color::kBold).Add("  ");
    line.Add(clean              ? "clean"
             : run.errors() > 0 ? Counted(run.errors(), "error")
                                : "no result",
             clean ? Color::kGreen : Color::kRed);
    if (!run.incomplete().empty()) line.Add(absl::StrCat("  ", run.incomplete()));
    session.Print(line);
    for (const std::string& finding : run.findings()) session.Print(absl::StrCat("  ", finding));
  }
}

}  // namespace attune::cli
