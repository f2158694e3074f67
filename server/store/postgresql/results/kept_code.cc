#include "server/store/postgresql/results/kept_code.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/base/log.h"
#include "server/base/sha256.h"
#include "server/store/checks.h"
#include "server/store/maintenance/retention_pass.h"
#include "server/store/postgresql/sql.h"
#include "server/store/rows/result_columns.h"

namespace attune::store::postgresql {
namespace {

constexpr size_t kFilesAtATime = 100;

absl::Status PutRows(Connection& connection, const CompiledArtifact& artifact, absl::string_view bytes) {
  const int64_t now = absl::GetCurrentTimeNanos();
  if (!bytes.empty()) {
    // The hash is that of the bytes: what is there already is the same, or was damaged.
    absl::Status status = Sql("INSERT INTO artifact_code (sha256, used_ns, bytes) VALUES (?, ?, ?)"
                              " ON CONFLICT (sha256) DO UPDATE SET used_ns = excluded.used_ns, bytes = excluded.bytes",
                              artifact.sha256, now, Blob{bytes})
                              .Execute(connection);
    if (!status.ok()) return status;
  }
  const std::string entries = EntriesOf(artifact);
  return Sql("INSERT INTO artifacts (compile_key, toolchain, verdict, log, sha256, entries, compile_ms, put_ns)"
             " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (compile_key, toolchain) DO UPDATE SET"
             " verdict = excluded.verdict, log = excluded.log, sha256 = excluded.sha256, entries = excluded.entries,"
             " compile_ms = excluded.compile_ms, put_ns = excluded.put_ns",
             artifact.compile_key, artifact.toolchain, artifact.verdict, Blob{artifact.log}, artifact.sha256,
             Blob{entries}, artifact.compile_ms, now)
      .Execute(connection);
}

// Of all code, least recently used first.
absl::StatusOr<std::vector<ArtifactFile>> ListCode(Connection& connection) {
  absl::StatusOr<Rows> rows =
      connection.Query("SELECT sha256, octet_length(bytes), used_ns FROM artifact_code ORDER BY used_ns");
  if (!rows.ok()) return rows.status();
  std::vector<ArtifactFile> all;
  while (*rows->Step()) {
    all.push_back({std::string(rows->Text(0)), rows->Int(1), absl::FromUnixNanos(rows->Int(2))});
  }
  return all;
}

// Hashes of what incumbents and their alternatives name, past ones too; sorted.
absl::StatusOr<std::vector<std::string>> CodeOfIncumbents(Connection& connection) {
  absl::StatusOr<Rows> rows = connection.Query(
      "SELECT DISTINCT trial_bodies.trial_id, message FROM incumbents JOIN trial_bodies USING (trial_id)");
  if (!rows.ok()) return rows.status();
  std::set<std::string> hashes;
  while (*rows->Step()) {
    v1::Trial body;
    const absl::Status status = Parse(rows->Bytes(1), "trial", body);
    if (SkipDamaged(status, "trials", rows->Int(0))) continue;
    if (!status.ok()) return status;
    if (!body.artifact_sha256().empty()) hashes.insert(body.artifact_sha256());
  }
  rows = connection.Query("SELECT id, ties FROM incumbents WHERE length(ties) > 0");
  if (!rows.ok()) return rows.status();
  while (*rows->Step()) {
    v1::Incumbent beside;
    const absl::Status status = Parse(rows->Bytes(1), "ties", beside);
    if (SkipDamaged(status, "incumbents", rows->Int(0))) continue;
    if (!status.ok()) return status;
    for (const v1::Alternative& one : beside.alternatives()) {
      if (!one.trial().artifact_sha256().empty()) hashes.insert(one.trial().artifact_sha256());
    }
  }
  return std::vector<std::string>(hashes.begin(), hashes.end());
}

// Those that were not used since they were listed. The rows that name the code go with it, in this order: whoever puts
// it meanwhile waits for the code's row, and then makes both anew.
absl::StatusOr<std::vector<ArtifactFile>> RemoveCode(Connection& connection, const std::vector<ArtifactFile>& files) {
  std::vector<ArtifactFile> removed;
  for (const ArtifactFile& file : files) {
    const absl::StatusOr<int64_t> gone =
        Sql("DELETE FROM artifact_code WHERE sha256 = ? AND used_ns = ?", file.sha256, absl::ToUnixNanos(file.used))
            .Change(connection);
    if (!gone.ok()) return gone.status();
    if (*gone == 0) continue;
    absl::Status status = Sql("DELETE FROM artifacts WHERE sha256 = ?", file.sha256).Execute(connection);
    if (!status.ok()) return status;
    removed.push_back(file);
  }
  return removed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeptCode>> KeptCode::Open(const std::string& directory, Pool* pool) {
  absl::StatusOr<std::unique_ptr<ArtifactFiles>> files = ArtifactFiles::Open(directory);
  if (!files.ok()) return files.status();
  return std::unique_ptr<KeptCode>(new KeptCode(*std::move(files), pool));
}

absl::Status KeptCode::Put(const CompiledArtifact& artifact, absl::string_view bytes) {
  if (absl::Status status = CheckArtifact(artifact, bytes); !status.ok()) return status;
  absl::Status status = pool_.Transact([&](Connection& connection) { return PutRows(connection, artifact, bytes); });
  if (status.ok() && !bytes.empty()) Cache(artifact.sha256, bytes);
  return status;
}

absl::StatusOr<CompiledArtifact> KeptCode::Find(absl::string_view compile_key, absl::string_view toolchain) {
  return pool_.DoAndReturn<CompiledArtifact>([&](Connection& connection) -> absl::StatusOr<CompiledArtifact> {
    absl::StatusOr<Rows> rows =
        Sql(absl::StrCat("SELECT", kArtifactColumns, "FROM artifacts WHERE compile_key = ? AND toolchain = ?"),
            compile_key, toolchain)
            .Query(connection);
    if (!rows.ok()) return rows.status();
    if (!*rows->Step()) return NothingCompiled(compile_key, toolchain);
    return ReadArtifactRow(*rows, compile_key, toolchain);
  });
}

absl::StatusOr<int64_t> KeptCode::ForgetFailed(const std::vector<std::string>& compile_keys,
                                               absl::string_view toolchain) {
  return pool_.TransactAndReturn<int64_t>([&](Connection& connection) -> absl::StatusOr<int64_t> {
    int64_t forgotten = 0;
    for (const std::string& key : compile_keys) {
      const absl::StatusOr<int64_t> gone =
          Sql("DELETE FROM artifacts WHERE compile_key = ? AND toolchain = ? AND verdict <> ?", key, toolchain,
              v1::VERDICT_OK)
              .Change(connection);
      if (!gone.ok()) return gone;
      forgotten += *gone;
    }
    return forgotten;
  });
}

absl::StatusOr<std::string> KeptCode::Read(absl::string_view sha256) {
  absl::StatusOr<std::string> cached = files_->Read(sha256);
  if (cached.ok()) {
    NoteUse(sha256);
    return cached;
  }
  absl::StatusOr<std::string> bytes =
      pool_.DoAndReturn<std::string>([&](Connection& connection) -> absl::StatusOr<std::string> {
        absl::StatusOr<Rows> rows = Sql("SELECT bytes FROM artifact_code WHERE sha256 = ?", sha256).Query(connection);
        if (!rows.ok()) return rows.status();
        if (!*rows->Step()) return absl::NotFoundError(absl::StrCat("artifact ", sha256, " does not exist"));
        return std::string(rows->Bytes(0));
      });
  if (!bytes.ok()) return bytes;
  if (Sha256(*bytes) != sha256) return absl::DataLossError(absl::StrCat("artifact ", sha256, " is damaged"));
  NoteUse(sha256);
  Cache(sha256, *bytes);
  return bytes;
}

void KeptCode::NoteUse(absl::string_view sha256) {
  const std::lock_guard<std::mutex> lock(mutex_);
  used_.emplace(sha256);
}

// To the minute: what is used all the time is not written all the time.
absl::Status KeptCode::WriteUses() {
  std::set<std::string> used;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    used.swap(used_);
  }
  if (used.empty()) return absl::OkStatus();
  const int64_t now = absl::GetCurrentTimeNanos();
  return pool_.Do([&](Connection& connection) {
    return Sql("UPDATE artifact_code SET used_ns = ? WHERE used_ns < ? AND sha256 = ANY (?::text::text[])", now,
               now - absl::ToInt64Nanoseconds(ArtifactFiles::kUseResolution),
               ArrayOf(std::vector<std::string>(used.begin(), used.end())))
        .Execute(connection);
  });
}

void KeptCode::Cache(absl::string_view sha256, absl::string_view bytes) {
  const absl::Status status = files_->Put(sha256, bytes);
  if (!status.ok()) LogWarning("compiled code could not be cached", {{"reason", status.message()}});
}

absl::Status KeptCode::Retain(const Retention& retention, const std::function<bool()>& stopped, Retained& retained) {
  if (absl::Status status = WriteUses(); !status.ok()) return status;
  const auto all = pool_.DoAndReturn<std::vector<ArtifactFile>>(ListCode);
  if (!all.ok()) return all.status();
  const auto served = pool_.DoAndReturn<std::vector<std::string>>(CodeOfIncumbents);
  if (!served.ok()) return served.status();
  std::set<std::string> kept;
  for (const ArtifactFile& file : *all) {
    kept.insert(file.sha256);
    retained.artifact_bytes += file.bytes;
  }
  const std::vector<ArtifactFile> too_many = ArtifactsToRemove(*all, *served, retention, stopped);
  for (size_t begin = 0; begin < too_many.size() && !stopped(); begin += kFilesAtATime) {
    const size_t end = std::min(too_many.size(), begin + kFilesAtATime);
    const std::vector<ArtifactFile> batch(too_many.data() + begin, too_many.data() + end);
    const auto removed = pool_.TransactAndReturn<std::vector<ArtifactFile>>(
        [&](Connection& connection) { return RemoveCode(connection, batch); });
    if (!removed.ok()) return removed.status();
    for (const ArtifactFile& file : *removed) {
      ++retained.removed_artifacts;
      retained.artifact_bytes -= file.bytes;
      kept.erase(file.sha256);
    }
  }
  return TrimCache(kept, retention);
}

absl::Status KeptCode::TrimCache(const std::set<std::string>& kept, const Retention& retention) {
  const absl::StatusOr<std::vector<ArtifactFile>> files = files_->List();
  if (!files.ok()) return files.status();
  int64_t bytes = 0;
  for (const ArtifactFile& file : *files) bytes += file.bytes;
  for (const ArtifactFile& file : *files) {
    const bool too_large = retention.artifact_bytes > 0 && bytes > retention.artifact_bytes;
    if (!too_large && kept.contains(file.sha256)) continue;
    if (absl::Status status = files_->Remove(file.sha256); !status.ok()) return status;
    bytes -= file.bytes;
  }
  return absl::OkStatus();
}

}  // namespace attune::store::postgresql
