// Keeps the database to its limits: finds what may go by reading, and removes it on the writer's thread, a few rows at
// a time, so that other writes never wait long and look-ups not at all.
#ifndef ATTUNE_SERVER_STORE_SQLITE_RETENTION_PASS_H_
#define ATTUNE_SERVER_STORE_SQLITE_RETENTION_PASS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/retention.h"
#include "server/store/rows/trial_uses.h"
#include "server/store/sqlite/writer.h"

namespace attune::store::sqlite {

// Writes down when trials were used.
absl::Status KeepUses(Writer& writer, TrialUses& uses);

// Store::Retain of trials, jobs and failed compiles in the database `file`; adds to `retained`. Ends early, with OK,
// when `stopped` says so between two batches.
absl::Status RetainRows(const std::string& file, Writer& writer, const Retention& retention,
                        const std::function<bool()>& stopped, Retained& retained);

// Removes the rows of artifacts whose files are about to go.
absl::Status ForgetArtifacts(Writer& writer, const std::vector<std::string>& sha256s);

}  // namespace attune::store::sqlite

#endif  // ATTUNE_SERVER_STORE_SQLITE_RETENTION_PASS_H_
