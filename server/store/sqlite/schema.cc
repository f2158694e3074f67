// The schema's steps. Never edit one that has landed; add the next.
#include "server/store/sqlite/migrations.h"

namespace attune::store::sqlite {
namespace {

// Times are nanoseconds since 1970; enums are the protos' numbers; BLOBs are serialised protos.
constexpr char kInitial[] = R"sql(
-- Texts that repeat, once each.
CREATE TABLE problems (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE devices (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE families (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE variants (
  id INTEGER PRIMARY KEY,
  family_id INTEGER NOT NULL REFERENCES families,
  text TEXT NOT NULL UNIQUE,
  message BLOB NOT NULL -- attune.v1.Variant
) STRICT;

CREATE TABLE dependencies (
  id INTEGER PRIMARY KEY,
  toolchain TEXT NOT NULL,
  driver TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  UNIQUE (toolchain, driver, device_fingerprint, source_hash)
) STRICT;

-- Append-only. Narrow, so that a scan is cheap; what is only read, never searched, is in trial_bodies.
CREATE TABLE trials (
  id INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problems,
  device_id INTEGER NOT NULL REFERENCES devices,
  family_id INTEGER NOT NULL REFERENCES families,
  variant_id INTEGER NOT NULL REFERENCES variants,
  policy INTEGER NOT NULL,
  verdict INTEGER NOT NULL,
  dependencies_id INTEGER NOT NULL REFERENCES dependencies,
  rank_us REAL NOT NULL, -- the median of a timed OK trial, infinity for any other
  job TEXT NOT NULL,
  finish_ns INTEGER
) STRICT;

CREATE INDEX trials_by_key ON trials (problem_id, device_id, policy, variant_id, dependencies_id, verdict);
CREATE INDEX trials_by_problem_rank ON trials (problem_id, device_id, policy, rank_us);
CREATE INDEX trials_by_rank ON trials (rank_us);
CREATE INDEX trials_by_problem ON trials (problem_id);
CREATE INDEX trials_by_job ON trials (job);

CREATE TABLE trial_bodies (
  trial_id INTEGER PRIMARY KEY REFERENCES trials,
  message BLOB NOT NULL -- attune.v1.Trial without the recipe and what has a column
) STRICT;

CREATE TABLE trial_recipes (
  trial_id INTEGER PRIMARY KEY REFERENCES trials,
  message BLOB NOT NULL -- attune.v1.LaunchRecipe
) STRICT;

CREATE TABLE incumbents (
  id INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problems,
  device_id INTEGER NOT NULL REFERENCES devices,
  policy INTEGER NOT NULL,
  trial_id INTEGER NOT NULL REFERENCES trials,
  promote_ns INTEGER NOT NULL,
  job TEXT NOT NULL,
  previous_id INTEGER REFERENCES incumbents,
  why TEXT NOT NULL,
  served INTEGER NOT NULL,
  rolled_back_why TEXT, -- null unless rolled back
  ties BLOB NOT NULL -- attune.v1.Incumbent with nothing but its ties
) STRICT;

CREATE UNIQUE INDEX served_incumbents ON incumbents (problem_id, device_id, policy) WHERE served = 1;

CREATE TABLE artifacts (
  compile_key TEXT NOT NULL,
  toolchain TEXT NOT NULL,
  verdict INTEGER NOT NULL,
  log TEXT NOT NULL,
  sha256 TEXT NOT NULL, -- names a file below artifacts/; empty unless OK
  entries BLOB NOT NULL, -- attune.worker.v1.CompileResponse with nothing but its entries
  compile_ms REAL NOT NULL,
  PRIMARY KEY (compile_key, toolchain)
) STRICT;

CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  kind INTEGER NOT NULL,
  request BLOB NOT NULL,
  request_id TEXT UNIQUE,
  done INTEGER NOT NULL,
  operation BLOB NOT NULL -- attune.v1.Operation
) STRICT;

CREATE INDEX unfinished_jobs ON jobs (id) WHERE done = 0;

CREATE TABLE baselines (
  id INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problems,
  device_id INTEGER NOT NULL REFERENCES devices,
  policy INTEGER NOT NULL,
  contender TEXT NOT NULL,
  message BLOB NOT NULL -- attune.v1.Baseline
) STRICT;

CREATE INDEX baselines_by_contender ON baselines (problem_id, device_id, policy, contender);
)sql";

constexpr char kRetriesPinsAndProblemsOfJobs[] = R"sql(
ALTER TABLE trials ADD COLUMN retry INTEGER NOT NULL DEFAULT 0; -- 1: does not keep its variant from being tried again

ALTER TABLE incumbents ADD COLUMN timing BLOB; -- attune.v1.Timing of the play-off that promoted it; null before this step
ALTER TABLE incumbents ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;

ALTER TABLE jobs ADD COLUMN problem_id INTEGER REFERENCES problems; -- null for sweeps, and before this step
CREATE INDEX jobs_by_problem ON jobs (problem_id) WHERE problem_id IS NOT NULL;
)sql";

constexpr char kRetention[] = R"sql(
-- When a job last asked for what is known of a problem under dependencies.
CREATE TABLE trial_uses (
  problem_id INTEGER NOT NULL REFERENCES problems,
  dependencies_id INTEGER NOT NULL REFERENCES dependencies,
  used_ns INTEGER NOT NULL,
  PRIMARY KEY (problem_id, dependencies_id)
) STRICT, WITHOUT ROWID;

ALTER TABLE jobs ADD COLUMN end_ns INTEGER; -- null until it is done; of those before this step, when that was taken
UPDATE jobs SET end_ns = CAST(strftime('%s', 'now') AS INTEGER) * 1000000000 WHERE done = 1;

ALTER TABLE artifacts ADD COLUMN put_ns INTEGER NOT NULL DEFAULT 0;
UPDATE artifacts SET put_ns = CAST(strftime('%s', 'now') AS INTEGER) * 1000000000;

-- For what is removed: what refers to it.
CREATE INDEX artifacts_by_sha256 ON artifacts (sha256) WHERE sha256 <> '';
CREATE INDEX incumbents_by_trial ON incumbents (trial_id);
CREATE INDEX trials_by_variant ON trials (variant_id);
)sql";

constexpr char kDeviceClasses[] = R"sql(
ALTER TABLE trials ADD COLUMN uuid_id INTEGER REFERENCES devices; -- of the card; null when it has none, and before this step

-- What is known of a variant on all cards of a class; in place of the index by device.
DROP INDEX trials_by_key;
CREATE INDEX trials_by_class_key ON trials (problem_id, policy, variant_id, dependencies_id, verdict);

CREATE TABLE device_classes (
  id INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE
) STRICT;

-- An incumbent is served on every card of a class: that which its trial ran on. device_id is the card's.
ALTER TABLE incumbents ADD COLUMN class_id INTEGER REFERENCES device_classes; -- never null
INSERT INTO device_classes (fingerprint)
  SELECT DISTINCT dependencies.device_fingerprint FROM incumbents JOIN trials ON trials.id = incumbents.trial_id
  JOIN dependencies ON dependencies.id = trials.dependencies_id;
UPDATE incumbents SET class_id = (SELECT device_classes.id FROM trials
  JOIN dependencies ON dependencies.id = trials.dependencies_id
  JOIN device_classes ON device_classes.fingerprint = dependencies.device_fingerprint
  WHERE trials.id = incumbents.trial_id);
DROP INDEX served_incumbents;

-- Cards of one class had incumbents of their own: the pinned one stays, or the fastest by its trial's median; the
-- others', with all before them, become history.
UPDATE incumbents SET served = 0
  WHERE served = 1 AND EXISTS (
    SELECT 1 FROM incumbents AS other JOIN trials AS others ON others.id = other.trial_id
    JOIN trials AS own ON own.id = incumbents.trial_id
    WHERE other.served = 1 AND other.problem_id = incumbents.problem_id AND other.class_id = incumbents.class_id
      AND other.policy = incumbents.policy AND other.id <> incumbents.id
      AND (-other.pinned, others.rank_us, -other.id) < (-incumbents.pinned, own.rank_us, -incumbents.id));
UPDATE incumbents SET rolled_back_why = 'another card of its device class had a faster or a pinned incumbent'
  WHERE rolled_back_why IS NULL AND EXISTS (
    SELECT 1 FROM incumbents AS other
    WHERE other.served = 1 AND other.problem_id = incumbents.problem_id AND other.class_id = incumbents.class_id
      AND other.policy = incumbents.policy AND other.device_id <> incumbents.device_id);
CREATE UNIQUE INDEX served_incumbents ON incumbents (problem_id, class_id, policy) WHERE served = 1;
)sql";

constexpr char kJobLeases[] = R"sql(
ALTER TABLE jobs ADD COLUMN identity TEXT; -- equal for requests that ask for the same; null before this step
ALTER TABLE jobs ADD COLUMN holder TEXT; -- of the last lease; null: never leased, or given back
ALTER TABLE jobs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0; -- grows with each lease
ALTER TABLE jobs ADD COLUMN lease_until_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0; -- 1: somebody has asked to end it
CREATE UNIQUE INDEX unfinished_jobs_by_identity ON jobs (identity) WHERE done = 0;

-- Of requests that made a job, and of those that joined it.
CREATE TABLE job_request_ids (
  request_id TEXT PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  identity TEXT -- of the request; null before this step
) STRICT, WITHOUT ROWID;
INSERT INTO job_request_ids (request_id, job_id) SELECT request_id, id FROM jobs WHERE request_id IS NOT NULL;
CREATE INDEX job_request_ids_by_job ON job_request_ids (job_id);

-- What was written under a job's lease, so that a write that is repeated is made once. Gone when the lease is.
CREATE TABLE job_writes (
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  write_id INTEGER NOT NULL,
  row_id INTEGER NOT NULL, -- of the trial or incumbent that it made
  PRIMARY KEY (job_id, write_id)
) STRICT, WITHOUT ROWID;
)sql";

constexpr char kPartsOfJobs[] = R"sql(
ALTER TABLE jobs ADD COLUMN parent TEXT; -- name of the job that this is a part of; null: of none, and before this step
CREATE INDEX jobs_by_parent ON jobs (parent) WHERE parent IS NOT NULL;
CREATE INDEX jobs_of_none ON jobs (id) WHERE parent IS NULL;
)sql";

constexpr char kTimesOfWhatIsServed[] = R"sql(
-- Every time of what is served, for its history.
CREATE TABLE retimings (
  id INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problems,
  device_id INTEGER NOT NULL REFERENCES devices,
  uuid_id INTEGER REFERENCES devices, -- of the card; null when it has none
  class_id INTEGER NOT NULL REFERENCES device_classes,
  policy INTEGER NOT NULL,
  finish_ns INTEGER NOT NULL,
  message BLOB NOT NULL -- attune.v1.Retiming without what has a column
) STRICT;

CREATE INDEX retimings_by_problem ON retimings (problem_id);
CREATE INDEX retimings_by_time ON retimings (finish_ns);
)sql";

constexpr char kBroughtKernels[] = R"sql(
CREATE TABLE submission_files (
  content_hash TEXT PRIMARY KEY,
  message BLOB NOT NULL -- attune.v1.Submission with nothing but its files
) STRICT;

CREATE TABLE submissions (
  id INTEGER PRIMARY KEY,
  content_hash TEXT NOT NULL REFERENCES submission_files,
  principal TEXT NOT NULL,
  loop TEXT NOT NULL, -- empty: of none
  iteration INTEGER NOT NULL, -- of the principal's loop, from 1; 0: of none
  state INTEGER NOT NULL, -- attune.v1.Submission.State
  operation TEXT NOT NULL UNIQUE, -- that it is of
  message BLOB NOT NULL -- attune.v1.Submission without files and what has a column
) STRICT;

CREATE INDEX submissions_by_loop ON submissions (principal, loop);
CREATE INDEX submissions_by_content ON submissions (content_hash);
)sql";

constexpr char kHistoryOfAProblem[] = R"sql(
CREATE INDEX incumbents_by_problem ON incumbents (problem_id);
)sql";

constexpr char kReportsOnTrials[] = R"sql(
-- What tools say of a trial's code; the last of each.
CREATE TABLE trial_reports (
  trial_id INTEGER PRIMARY KEY REFERENCES trials,
  profile BLOB, -- attune.v1.Profile
  sanitizing BLOB -- attune.v1.Sanitizing
) STRICT;
)sql";

constexpr char kBlobs[] = R"sql(
-- Files of other programs' caches. Their bytes are below blobs/.
CREATE TABLE blobs (
  id INTEGER PRIMARY KEY, -- grows with each put
  principal TEXT NOT NULL, -- who put it
  namespace TEXT NOT NULL,
  key TEXT NOT NULL,
  file TEXT NOT NULL,
  shared INTEGER NOT NULL, -- 1: others may read it
  sha256 TEXT NOT NULL, -- names a file below blobs/; several rows may have one
  bytes INTEGER NOT NULL,
  put_ns INTEGER NOT NULL,
  used_ns INTEGER NOT NULL, -- last put or got; no two rows have the same
  UNIQUE (principal, namespace, key, file)
) STRICT;

CREATE INDEX blobs_by_use ON blobs (used_ns);
CREATE INDEX blobs_by_sha256 ON blobs (sha256);
)sql";

}  // namespace

absl::Span<const std::string> Migrations() {
  static const auto& migrations = *new std::vector<std::string>{
      kInitial,     kRetriesPinsAndProblemsOfJobs, kRetention,      kDeviceClasses,     kJobLeases,
      kPartsOfJobs, kTimesOfWhatIsServed,          kBroughtKernels, kHistoryOfAProblem, kReportsOnTrials,
      kBlobs};
  return migrations;
}

}  // namespace attune::store::sqlite
