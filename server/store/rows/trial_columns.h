// A trial as columns and messages, and back. A database's rows say by their columns what it is found by; the rest is a
// message. `Row` is a database's own: Int, Real, Text, Bytes and IsNull of a column, from 0.
#ifndef ATTUNE_SERVER_STORE_ROWS_TRIAL_COLUMNS_H_
#define ATTUNE_SERVER_STORE_ROWS_TRIAL_COLUMNS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "attune/v1/trial.pb.h"
#include "server/store/damaged_rows.h"
#include "server/store/rows/names.h"

namespace attune::store {

// What ORDER_FASTEST sorts by: the median of a timed OK trial, infinity for any other.
double RankOf(const v1::Trial& trial);
// The message of what has no column, nor a table of its own.
std::string BodyOf(const v1::Trial& trial);

// What ReadTrial reads, in this order, of tables of these names joined.
inline constexpr absl::string_view kTrialColumns =
    " trials.id, problems.text, devices.name, variants.message, trials.policy, trials.verdict,"
    " dependencies.source_hash, dependencies.toolchain, dependencies.driver, dependencies.device_fingerprint,"
    " trials.job, trials.finish_ns, trial_bodies.message, trials.rank_us, uuids.name ";
inline constexpr int kTrialColumnCount = 15;

template <typename Row>
int64_t ReadTrialId(const Row& row) {
  return row.Int(0);
}
template <typename Row>
double ReadTrialRank(const Row& row) {
  return row.Real(13);
}

// What has a column of its own.
template <typename Row>
void ReadTrialColumns(const Row& row, v1::Trial& trial) {
  trial.set_name(absl::StrCat(kTrials, row.Int(0)));
  trial.set_problem_text(std::string(row.Text(1)));
  trial.set_device_id(std::string(row.Text(2)));
  trial.set_policy(static_cast<v1::Policy>(row.Int(4)));
  trial.set_verdict(static_cast<v1::Verdict>(row.Int(5)));
  v1::Dependencies& dependencies = *trial.mutable_dependencies();
  dependencies.set_source_hash(std::string(row.Text(6)));
  dependencies.set_toolchain(std::string(row.Text(7)));
  dependencies.set_driver(std::string(row.Text(8)));
  dependencies.set_device_fingerprint(std::string(row.Text(9)));
  trial.set_job(std::string(row.Text(10)));
  trial.set_device_uuid(std::string(row.Text(14)));
  if (!row.IsNull(11)) *trial.mutable_finish_time() = FromNanoseconds(row.Int(11));
}

// Whole but for its recipe and reports.
template <typename Row>
absl::StatusOr<v1::Trial> ReadTrial(const Row& row) {
  v1::Trial trial;
  if (absl::Status status = Parse(row.Bytes(12), "trial", trial); !status.ok()) return status;
  if (absl::Status status = Parse(row.Bytes(3), "variant", *trial.mutable_variant()); !status.ok()) return status;
  ReadTrialColumns(row, trial);
  return trial;
}

// For lists: a trial that ReadTrial finds damaged is what its columns say, and LOST.
template <typename Row>
absl::StatusOr<v1::Trial> ReadListedTrial(const Row& row) {
  absl::StatusOr<v1::Trial> read = ReadTrial(row);
  if (!SkipDamaged(read.status(), "trials", ReadTrialId(row))) return read;
  v1::Trial trial;
  Parse(row.Bytes(3), "variant", *trial.mutable_variant()).IgnoreError();
  ReadTrialColumns(row, trial);
  trial.set_verdict(v1::VERDICT_LOST);
  trial.set_detail(absl::StrCat(read.status().message(), "; it is tried again when it is asked for"));
  return trial;
}

// What tools said of the trial, from two columns. One that is damaged is left out and logged.
template <typename Row>
void ReadReports(const Row& row, int profile, int sanitizing, int64_t trial_id, v1::Trial& trial) {
  if (!row.IsNull(profile)) {
    const absl::Status read = Parse(row.Bytes(profile), "profile", *trial.mutable_profile());
    if (SkipDamaged(read, "trial_reports", trial_id)) trial.clear_profile();
  }
  if (!row.IsNull(sanitizing)) {
    const absl::Status read = Parse(row.Bytes(sanitizing), "sanitizing", *trial.mutable_sanitizing());
    if (SkipDamaged(read, "trial_reports", trial_id)) trial.clear_sanitizing();
  }
}

absl::Status NoTrial(absl::string_view name);
absl::Status NothingKnown(const TrialKey& key);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ROWS_TRIAL_COLUMNS_H_
