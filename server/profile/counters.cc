#include "server/profile/counters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace attune::profile {
namespace {

struct Column {
  absl::string_view counter;
  std::vector<absl::string_view> metrics;  // base names, the first that there is
  absl::string_view roll_up;
  double scale = 1;
};

constexpr absl::string_view kOfPeak = ".avg.pct_of_peak_sustained_elapsed";
constexpr absl::string_view kOfPeakWhileActive = ".avg.pct_of_peak_sustained_active";
constexpr double kPercent = 0.01;

const std::vector<Column>& Columns() {
  static const auto& columns = *new std::vector<Column>{
      {"duration_us", {"gpu__time_duration"}, ".sum", 1e-3},
      {"sm_throughput", {"sm__throughput"}, kOfPeak, kPercent},
      {"memory_throughput", {"gpu__compute_memory_throughput"}, kOfPeak, kPercent},
      {"occupancy", {"sm__warps_active"}, kOfPeakWhileActive, kPercent},
      {"sms_busy", {"sm__cycles_active"}, kOfPeak, kPercent},
      {"tensor_pipe",
       {"sm__pipe_tensor_op_hmma_cycles_active", "sm__pipe_tensor_cycles_active"},
       kOfPeakWhileActive,
       kPercent},
      {"tensor_and_fp64_pipe", {"sm__pipe_shared_cycles_active"}, kOfPeakWhileActive, kPercent},
      {"issue_slots", {"sm__inst_issued", "sm__inst_executed"}, kOfPeakWhileActive, kPercent},
      {"exponentials", {"sm__inst_executed_pipe_xu"}, kOfPeakWhileActive, kPercent},
      {"shared_memory", {"l1tex__data_pipe_lsu_wavefronts_mem_shared"}, kOfPeak, kPercent},
      {"shared_wavefronts", {"l1tex__data_pipe_lsu_wavefronts_mem_shared"}, ".sum"},
      {"bank_conflicts",
       {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared", "l1tex__data_bank_conflicts_pipe_lsu"},
       ".sum"},
      {"l2_throughput", {"lts__throughput"}, kOfPeak, kPercent},
      {"l2_sectors", {"lts__t_sectors"}, ".sum"},
      {"dram_throughput", {"dram__throughput", "gpu__dram_throughput"}, kOfPeak, kPercent},
      {"dram_bytes", {"dram__bytes"}, ".sum"},
      {"instructions", {"smsp__inst_executed", "sm__inst_executed"}, ".sum"}};
  return columns;
}

// Of the launch: always there, and in no listing.
constexpr std::pair<absl::string_view, absl::string_view> kOfLaunch[] = {{"registers", "launch__registers_per_thread"},
                                                                         {"ctas", "launch__grid_size"}};

constexpr absl::string_view kStalls[] = {
    "barrier",        "branch_resolving", "dispatch_stall",     "drain",    "gmma",         "imc_miss",
    "lg_throttle",    "long_scoreboard",  "math_pipe_throttle", "membar",   "mio_throttle", "misc",
    "no_instruction", "not_selected",     "short_scoreboard",   "sleeping", "tex_throttle", "wait"};
std::string StallMetric(absl::string_view reason) {
  return absl::StrCat("smsp__average_warps_issue_stalled_", reason, "_per_issue_active");
}

// The fields of a line: in quotes, which are doubled inside.
std::vector<std::string> Fields(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"' && quoted && at + 1 < line.size() && line[at + 1] == '"') {
      fields.back() += c;
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// "1,380,000" too.
std::optional<double> NumberIn(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(absl::StrReplaceAll(text, {{",", ""}}), &value)) return std::nullopt;
  return value;
}

// A line's fields by the names above them.
using Row = std::map<std::string, std::string>;

v1::KernelProfile KernelOf(const std::string& entry, const Row& row, const std::vector<Metric>& metrics) {
  v1::KernelProfile kernel;
  kernel.set_entry(entry);
  double stalled = 0;
  for (const Metric& metric : metrics) {
    const auto field = row.find(metric.name);
    const std::optional<double> value = field == row.end() ? std::nullopt : NumberIn(field->second);
    if (!value.has_value()) continue;
    if (metric.stall) {
      if (*value <= 0) continue;
      stalled += *value;
      v1::Stall& stall = *kernel.add_stalls();
      stall.set_reason(metric.counter);
      stall.set_share(*value);
    } else {
      v1::Counter& counter = *kernel.add_counters();
      counter.set_name(metric.counter);
      counter.set_value(*value * metric.scale);
    }
  }
  for (v1::Stall& stall : *kernel.mutable_stalls()) stall.set_share(stall.share() / stalled);
  std::stable_sort(kernel.mutable_stalls()->begin(), kernel.mutable_stalls()->end(),
                   [](const v1::Stall& a, const v1::Stall& b) { return a.share() > b.share(); });
  return kernel;
}

}  // namespace

std::set<std::string> MetricsIn(absl::string_view listing) {
  std::set<std::string> names;
  for (absl::string_view line : absl::StrSplit(listing, '\n')) {
    const absl::string_view name = line.substr(0, line.find_first_of(" \t"));
    if (name.size() < line.size() && absl::StrContains(name, "__") &&
        absl::ascii_isalpha(static_cast<unsigned char>(name[0])))
      names.emplace(name);
  }
  return names;
}

std::vector<Metric> Choose(const std::set<std::string>& available) {
  std::vector<Metric> chosen;
  for (const Column& column : Columns()) {
    for (const absl::string_view base : column.metrics) {
      if (available.count(std::string(base)) == 0) continue;
      chosen.push_back({absl::StrCat(base, column.roll_up), std::string(column.counter), false, column.scale});
      break;
    }
  }
  for (const absl::string_view reason : kStalls) {
    if (available.count(StallMetric(reason)) == 0) continue;
    chosen.push_back({absl::StrCat(StallMetric(reason), ".ratio"), std::string(reason), true});
  }
  for (const auto& [counter, metric] : kOfLaunch) chosen.push_back({std::string(metric), std::string(counter)});
  return chosen;
}

std::set<std::string> Unknown(absl::string_view output) {
  constexpr absl::string_view kSaid = "Failed to find metric ";
  std::set<std::string> unknown;
  for (size_t at = output.find(kSaid); at != absl::string_view::npos; at = output.find(kSaid, at)) {
    at += kSaid.size();
    const absl::string_view rest = output.substr(at);
    const auto* const end = std::find_if_not(
        rest.begin(), rest.end(), [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; });
    unknown.emplace(absl::StripSuffix(rest.substr(0, static_cast<size_t>(end - rest.begin())), "."));
  }
  return unknown;
}

absl::StatusOr<std::vector<v1::KernelProfile>> KernelsIn(absl::string_view output, const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  std::vector<v1::KernelProfile> kernels;
  std::set<std::string> seen;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (names.empty()) {
      if (absl::StartsWith(line, "\"ID\"")) names = Fields(line);
      continue;
    }
    const std::vector<std::string> fields = Fields(line);
    if (fields.size() != names.size()) continue;
    Row row;
    for (size_t i = 0; i < fields.size(); ++i) row[names[i]] = fields[i];
    if (!NumberIn(row["ID"]).has_value()) continue;  // the line of units
    const std::string entry = row["Kernel Name"].substr(0, row["Kernel Name"].find('('));
    if (seen.insert(entry).second) kernels.push_back(KernelOf(entry, row, metrics));
  }
  if (kernels.empty()) return absl::NotFoundError("ncu printed no table of kernels");
  return kernels;
}

}  // namespace attune::profile
