// Texts that are stored once. In a transaction.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_INTERNED_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_INTERNED_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attune/v1/trial.pb.h"
#include "server/store/postgresql/connection.h"

namespace attune::store::postgresql {

// The row's id; the row is made when missing.
absl::StatusOr<int64_t> InternProblem(Connection& connection, absl::string_view text);
absl::StatusOr<int64_t> InternDevice(Connection& connection, absl::string_view name);  // an id or a uuid
absl::StatusOr<int64_t> InternClass(Connection& connection, absl::string_view fingerprint);

// Those of a card: its uuid may be empty.
struct CardIds {
  int64_t device = 0;
  std::optional<int64_t> uuid;
};
absl::StatusOr<CardIds> InternCard(Connection& connection, absl::string_view id, absl::string_view uuid);

// All of a trial's.
struct TrialIds {
  int64_t problem = 0;
  CardIds card;
  int64_t family = 0;
  int64_t variant = 0;
  int64_t dependencies = 0;
};
absl::StatusOr<TrialIds> InternTrial(Connection& connection, const v1::Trial& trial);

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_RESULTS_INTERNED_H_
