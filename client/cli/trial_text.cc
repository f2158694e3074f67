#include "client/cli/trial_text.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/energy_text.h"
#include "client/cli/profile_text.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {

Table TrialTable(TrialsOf whose) {
  std::vector<Column> columns = {{"trial"}, {"verdict"}, {"time us", kNumber}};
  if (whose == TrialsOf::kProblems) columns.insert(columns.begin() + 1, {"problem", kName});
  for (const Column& column :
       {Column{"ctas", kNumber, 4}, Column{"SMs", kNumber, 8}, Column{"waves", kNumber, 3}, Column{"occup", kNumber, 2},
        Column{"regs", kNumber, 5}, Column{"spill B", kNumber, 7}, Column{"shared B", kNumber, 6},
        Column{"max error", kNumber, 1}, Column{"variant", kVariant}}) {
    columns.push_back(column);
  }
  return Table(std::move(columns));
}

void AddTrial(const v1::Trial& trial, TrialsOf whose, Table* table) {
  const bool placed = trial.has_geometry();
  const bool reported = RegistersKnown(trial.resources());
  std::vector<Cell> cells = {trial.name(),
                             {std::string(attune::Word(trial.verdict())), ColorOf(trial.verdict())},
                             Micros(trial.timing().median_us()),
                             placed ? absl::StrCat(trial.geometry().ctas()) : "-",
                             placed ? absl::StrCat(trial.geometry().sm_count()) : "-",
                             placed ? absl::StrFormat("%.2f", trial.geometry().waves()) : "-",
                             placed ? Share(trial.geometry().occupancy()) : "-",
                             reported ? absl::StrCat(trial.resources().registers()) : "-",
                             reported ? absl::StrCat(trial.resources().spill_bytes()) : "-",
                             trial.has_resources() ? absl::StrCat(trial.resources().shared_bytes()) : "-",
                             trial.has_accuracy() ? absl::StrFormat("%.1e", trial.accuracy().max_abs_error()) : "-",
                             VariantText(trial.variant())};
  if (whose == TrialsOf::kProblems) cells.insert(cells.begin() + 1, trial.problem_text());
  table->Row(std::move(cells));
}

const v1::Timing& ServedTiming(const v1::Incumbent& incumbent) {
  return incumbent.has_timing() ? incumbent.timing() : incumbent.trial().timing();
}

Table FieldTable() { return Table({{""}, {"", kWrapped}}); }

std::string SamplesOf(const v1::Timing& timing) {
  if (timing.cycles() == 0) return Counted(timing.samples(), "sample");
  return absl::StrCat(Counted(timing.samples(), "round"), " in ", Counted(timing.cycles(), "cycle"));
}

void AddTiming(const v1::Timing& timing, const google::protobuf::Timestamp& measured, Table* fields,
               const std::string& of) {
  const std::string when = LocalTime(measured);
  fields->Row(
      {of + "time", absl::StrFormat("%.2f us, 95%% interval %.2f..%.2f, %s%s%s%s", timing.median_us(), timing.low_us(),
                                    timing.high_us(), SamplesOf(timing), when.empty() ? "" : ", ", when,
                                    timing.contended() ? ", another process was on the device" : "")});
  // The stopping rule of server/measure.
  if (timing.given_up()) {
    fields->Row({"", "given up early: clearly slower than the fastest"});
  } else if (!timing.settled()) {
    fields->Row({"", "not settled: interval wider than 1 %"});
  }
  if (timing.sm_clock_mhz() > 0) {
    fields->Row({"clock", absl::StrFormat("%d MHz, %.0f W, %d C", timing.sm_clock_mhz(), timing.power_w(),
                                          timing.temperature_c())});
  }
  if (timing.has_energy()) fields->Row({"energy", EnergyText(timing.energy())});
}

void AddGeometry(const v1::Geometry& geometry, absl::string_view device_id, Table* fields) {
  const bool opencl = absl::StartsWith(device_id, "opencl:");
  const absl::string_view group = opencl ? "work-group" : "CTA";
  const absl::string_view unit = opencl ? "compute unit" : "SM";
  fields->Row(
      {"grid", absl::StrFormat("%s of %s on %s: %.2f waves, %s per %s, occupancy %s", Counted(geometry.ctas(), group),
                               Counted(geometry.threads_per_cta(), opencl ? "work-item" : "thread"),
                               Counted(geometry.sm_count(), unit), geometry.waves(),
                               Counted(geometry.ctas_per_sm(), group), unit, Share(geometry.occupancy()))});
}

void AddAccuracy(const v1::Accuracy& accuracy, Table* fields, const std::string& of) {
  fields->Row({of + "max error",
               absl::StrFormat("%.2e (naive at the same precision: %.2e), worst of %s", accuracy.max_abs_error(),
                               accuracy.plain_max_abs_error(), Counted(accuracy.cases(), "case"))});
}

bool RegistersKnown(const v1::Resources& resources) { return resources.registers() > 0; }

bool IsOfNearest(const v1::GetBestResponse& answer) { return answer.provenance() == v1::PROVENANCE_NEAREST; }

// The detail is "from b2.h8.q512.d64.f16", and goes on after a comma where the answer is not the server's own.
std::string NearestProblem(const v1::GetBestResponse& answer) {
  absl::string_view detail = answer.provenance_detail();
  if (!absl::ConsumePrefix(&detail, "from ")) return "";
  const absl::StatusOr<Problem> problem = ParseProblem(detail.substr(0, detail.find_first_of(" ,;")));
  return problem.ok() ? ToText(*problem) : "";
}

Table TrialFields(const v1::Trial& trial, const google::protobuf::Timestamp& measured, const std::string& of) {
  Table fields = FieldTable();
  fields.Row({"trial", trial.name()});
  fields.Row(
      {"problem", absl::StrCat(trial.problem_text(), " on ", trial.device_id(), ", ", attune::Word(trial.policy()))});
  fields.Row({"variant", VariantText(trial.variant())});
  fields.Row({"verdict", {std::string(attune::Word(trial.verdict())), ColorOf(trial.verdict())}});
  // A compiler's words go over several lines.
  const char* name = "detail";
  for (const absl::string_view line : absl::StrSplit(trial.detail(), '\n', absl::SkipWhitespace())) {
    fields.Row({std::exchange(name, ""), std::string(line)});
  }
  if (trial.has_timing()) AddTiming(trial.timing(), measured, &fields, of);
  if (trial.has_geometry()) AddGeometry(trial.geometry(), trial.device_id(), &fields);
  if (trial.has_resources()) {
    const v1::Resources& resources = trial.resources();
    const std::string shared = absl::StrCat(Bytes(resources.shared_bytes()), " shared");
    fields.Row({"resources", RegistersKnown(resources)
                                 ? absl::StrFormat("%s, %d B spilled, %s", Counted(resources.registers(), "register"),
                                                   resources.spill_bytes(), shared)
                                 : shared});
  }
  if (trial.has_accuracy()) AddAccuracy(trial.accuracy(), &fields, of);
  if (!trial.identical_to().empty()) fields.Row({"identical to", trial.identical_to()});
  if (!trial.dependencies().toolchain().empty()) {
    fields.Row(
        {"toolchain", absl::StrCat(trial.dependencies().toolchain(), ", driver ", trial.dependencies().driver())});
  }
  if (trial.has_profile()) fields.Row({"counters", CountersText(trial.profile())});
  for (const v1::SanitizerRun& run : trial.sanitizing().runs()) {
    fields.Row({Word(run.tool()), run.errors() > 0           ? Counted(run.errors(), "error")
                                  : run.incomplete().empty() ? "clean"
                                                             : run.incomplete()});
  }
  return fields;
}

}  // namespace attune::cli
