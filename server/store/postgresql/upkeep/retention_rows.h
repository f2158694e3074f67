// What retention may remove of a database that many hosts share.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_UPKEEP_RETENTION_ROWS_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_UPKEEP_RETENTION_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/maintenance/retention_pass.h"
#include "server/store/postgresql/pool.h"
#include "server/store/rows/trial_uses.h"

namespace attune::store::postgresql {

// Writes down when trials were used.
absl::Status KeepUses(Pool& pool, TrialUses& uses);

// For one pass.
class RetentionRows : public store::RetentionRows {
 public:
  // Says in the database what is today's on this host. What any host has said so of within kToday is today's: another
  // host's bad verdicts are not this one's to forget.
  static absl::StatusOr<RetentionRows> Open(Pool* pool, const std::vector<v1::Dependencies>& today);
  static constexpr absl::string_view kToday = "interval '1 day'";

  absl::StatusOr<std::vector<RetentionUnit>> Units(absl::Time latest) override;
  absl::StatusOr<int64_t> Remove(RetentionUnit::Kind kind, const std::vector<int64_t>& ids) override;
  absl::StatusOr<std::vector<int64_t>> TrialsToRemove(const RetentionUnit& unit, int64_t after) override;
  absl::StatusOr<int64_t> RemoveTrials(const RetentionUnit& unit, const std::vector<int64_t>& ids) override;
  // About what the rows take, with their part of indexes: added up once, and counted down by what goes. The files do
  // not shrink when rows go, so that their size says nothing.
  absl::StatusOr<int64_t> UsedBytes() override;

 private:
  explicit RetentionRows(Pool* pool) : pool_(pool) {}

  bool IsCurrent(const RetentionUnit& unit) const;

  Pool* pool_;
  std::vector<int64_t> current_;  // ids of today's dependencies
  std::optional<int64_t> bytes_;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_UPKEEP_RETENTION_ROWS_H_
