#include "client/cli/trial_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text.h"
#include "proto/attune/problem.h"

namespace attune::cli {

Table TrialTable() {
  return Table({{"trial"},
                {"problem"},
                {"verdict"},
                {"time us", kNumber},
                {"ctas", kNumber},
                {"SMs", kNumber},
                {"waves", kNumber},
                {"occup", kNumber},
                {"regs", kNumber},
                {"spill B", kNumber},
                {"shared B", kNumber},
                {"max error", kNumber},
                {"variant", kFlexible}});
}

void AddTrial(const v1::Trial& trial, Table* table) {
  const bool placed = trial.has_geometry();
  const bool compiled = trial.has_resources();
  table->Row({trial.name(),
              trial.problem_text(),
              {std::string(attune::Word(trial.verdict())), ColorOf(trial.verdict())},
              Micros(trial.timing().median_us()),
              placed ? absl::StrCat(trial.geometry().ctas()) : "-",
              placed ? absl::StrCat(trial.geometry().sm_count()) : "-",
              placed ? absl::StrFormat("%.2f", trial.geometry().waves()) : "-",
              placed ? Share(trial.geometry().occupancy()) : "-",
              compiled ? absl::StrCat(trial.resources().registers()) : "-",
              compiled ? absl::StrCat(trial.resources().spill_bytes()) : "-",
              compiled ? absl::StrCat(trial.resources().shared_bytes()) : "-",
              trial.has_accuracy() ? absl::StrFormat("%.1e", trial.accuracy().max_abs_error()) : "-",
              VariantText(trial.variant())});
}

Table FieldTable() { return Table({{""}, {"", kFlexible}}); }

void AddTiming(const v1::Timing& timing, Table* fields) {
  fields->Row(
      {"time", absl::StrFormat("%.2f us, 95%% interval %.2f..%.2f, %d samples%s%s", timing.median_us(), timing.low_us(),
                               timing.high_us(), timing.samples(), timing.settled() ? "" : ", not settled",
                               timing.contended() ? ", another process was on the device" : "")});
  if (timing.sm_clock_mhz() > 0) {
    fields->Row({"clock", absl::StrFormat("%d MHz, %.0f W, %d C", timing.sm_clock_mhz(), timing.power_w(),
                                          timing.temperature_c())});
  }
}

void AddGeometry(const v1::Geometry& geometry, Table* fields) {
  fields->Row({"grid", absl::StrFormat("%d CTAs of %d threads on %d SMs: %.2f waves, %d CTAs an SM, occupancy %s",
                                       geometry.ctas(), geometry.threads_per_cta(), geometry.sm_count(),
                                       geometry.waves(), geometry.ctas_per_sm(), Share(geometry.occupancy()))});
}

void AddAccuracy(const v1::Accuracy& accuracy, Table* fields) {
  fields->Row(
      {"max error", absl::StrFormat("%.2e (a plain computation: %.2e), worst of %d cases", accuracy.max_abs_error(),
                                    accuracy.plain_max_abs_error(), accuracy.cases())});
}

Table TrialFields(const v1::Trial& trial) {
  Table fields = FieldTable();
  fields.Row({"trial", trial.name()});
  fields.Row(
      {"problem", absl::StrCat(trial.problem_text(), " on ", trial.device_id(), ", ", attune::Word(trial.policy()))});
  fields.Row({"variant", VariantText(trial.variant())});
  fields.Row({"verdict", {std::string(attune::Word(trial.verdict())), ColorOf(trial.verdict())}});
  if (!trial.detail().empty()) fields.Row({"detail", trial.detail()});
  if (trial.has_timing()) AddTiming(trial.timing(), &fields);
  if (trial.has_geometry()) AddGeometry(trial.geometry(), &fields);
  if (trial.has_resources()) {
    const v1::Resources& resources = trial.resources();
    fields.Row({"resources", absl::StrFormat("%d registers, %d B spilled, %s shared", resources.registers(),
                                             resources.spill_bytes(), Bytes(resources.shared_bytes()))});
  }
  if (trial.has_accuracy()) AddAccuracy(trial.accuracy(), &fields);
  if (!trial.identical_to().empty()) fields.Row({"identical to", trial.identical_to()});
  if (!trial.dependencies().toolchain().empty()) {
    fields.Row(
        {"toolchain", absl::StrCat(trial.dependencies().toolchain(), ", driver ", trial.dependencies().driver())});
  }
  return fields;
}

}  // namespace attune::cli
