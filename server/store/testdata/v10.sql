-- A store as schema version 10 had it: v9.sql brought to version 10, with a profile; sqlite3 attune.db .dump, and the two
-- header fields it leaves out.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE artifacts (
  compile_key TEXT NOT NULL,
  toolchain TEXT NOT NULL,
  verdict INTEGER NOT NULL,
  log TEXT NOT NULL,
  sha256 TEXT NOT NULL, -- names a file below artifacts/; empty unless OK
  entries BLOB NOT NULL, -- attune.worker.v1.CompileResponse with nothing but its entries
  compile_ms REAL NOT NULL, put_ns INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (compile_key, toolchain)
) STRICT;
INSERT INTO artifacts VALUES('key','nvrtc 13.0',7,'signal 11','',X'',0.0,1800000050000000000);
CREATE TABLE baselines (
  id INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problems,
  device_id INTEGER NOT NULL REFERENCES devices,
  policy INTEGER NOT NULL,
  contender TEXT NOT NULL,
  message BLOB NOT NULL -- attune.v1.Baseline
) STRICT;
INSERT INTO baselines VALUES(1,1,1,1,'torch-sdpa-flash 2.11',X'121262322e68382e713531322e6436342e6631361a06637564613a3020012a15746f7263682d736470612d666c61736820322e31313100000000008047404a060880a4a7da06');
CREATE TABLE dependencies (
  id INTEGER PRIMARY KEY,
  toolchain TEXT NOT NULL,
  driver TEXT NOT NULL,
  device_fingerprint TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  UNIQUE (toolchain, driver, device_fingerprint, source_hash)
) STRICT;
INSERT INTO dependencies VALUES(1,'nvrtc 13.0','580.1','l4','source 1');
CREATE TABLE devices (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO devices VALUES(1,'cuda:0');
INSERT INTO devices VALUES(2,'cuda:1');
CREATE TABLE families (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO families VALUES(1,'attention_simt');
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
, timing BLOB, pinned INTEGER NOT NULL DEFAULT 0, class_id INTEGER REFERENCES device_classes) STRICT;
INSERT INTO incumbents VALUES(1,1,1,1,1,1800000000000000000,'operations/1',NULL,'the first',1,NULL,X'',X'090000000000804340110000000000404340190000000000c04340',1,1);
INSERT INTO incumbents VALUES(2,1,1,1,2,1800000000000000000,'operations/1',1,'5 % faster',0,'slow in production',X'621b1a19617474656e74696f6e5f73696d743a424c4f434b5f4d3d3634',NULL,0,1);
INSERT INTO incumbents VALUES(3,1,2,1,4,1800000003000000000,'operations/2',NULL,'the first',0,'another card of its device class had a faster or a pinned incumbent',X'',NULL,0,1);
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  kind INTEGER NOT NULL,
  request BLOB NOT NULL,
  request_id TEXT UNIQUE,
  done INTEGER NOT NULL,
  operation BLOB NOT NULL -- attune.v1.Operation
, problem_id INTEGER REFERENCES problems, end_ns INTEGER, identity TEXT, holder TEXT, epoch INTEGER NOT NULL DEFAULT 0, lease_until_ns INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0, parent TEXT) STRICT;
INSERT INTO jobs VALUES(1,'operations/1',1,X'72657175657374','nightly',0,X'0a0c6f7065726174696f6e732f315a2174756e652062322e68382e713531322e6436342e663136206f6e20637564613a30',1,NULL,NULL,NULL,0,0,0,NULL);
INSERT INTO jobs VALUES(2,'operations/2',1,X'72657175657374',NULL,1,X'0a0c6f7065726174696f6e732f321003180152060880a4a7da065a2174756e652062322e68382e713531322e6436342e663136206f6e20637564613a306a1262322e68382e713531322e6436342e663136',1,1800000100000000000,NULL,NULL,0,0,0,NULL);
CREATE TABLE problems (
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO problems VALUES(1,'b2.h8.q512.d64.f16');
CREATE TABLE trial_bodies (
  trial_id INTEGER PRIMARY KEY REFERENCES trials,
  message BLOB NOT NULL -- attune.v1.Trial without the recipe and what has a column
) STRICT;
INSERT INTO trial_bodies VALUES(1,X'120210024207736574746c65644a09090000000000004440520909fca9f1d24d62503f5a02086062030880027a0261628a0108747269616c732f3791010000000000804240');
INSERT INTO trial_bodies VALUES(2,X'120210024207736574746c65644a09090000000000004340520909fca9f1d24d62503f5a02086062030880027a0261628a0108747269616c732f3791010000000000804240');
INSERT INTO trial_bodies VALUES(3,X'120210024207736574746c6564520909fca9f1d24d62503f5a02086062030880027a0261628a0108747269616c732f3791010000000000804240');
INSERT INTO trial_bodies VALUES(4,X'120210024207736574746c65644a09090000000000004440520909fca9f1d24d62503f5a02086062030880027a0261628a0108747269616c732f3791010000000000804240');
CREATE TABLE trial_recipes (
  trial_id INTEGER PRIMARY KEY REFERENCES trials,
  message BLOB NOT NULL -- attune.v1.LaunchRecipe
) STRICT;
INSERT INTO trial_recipes VALUES(1,X'120b0a09617474656e74696f6e');
INSERT INTO trial_recipes VALUES(2,X'120b0a09617474656e74696f6e');
INSERT INTO trial_recipes VALUES(3,X'120b0a09617474656e74696f6e');
INSERT INTO trial_recipes VALUES(4,X'120b0a09617474656e74696f6e');
CREATE TABLE trial_uses (
  problem_id INTEGER NOT NULL REFERENCES problems,
  dependencies_id INTEGER NOT NULL REFERENCES dependencies,
  used_ns INTEGER NOT NULL,
  PRIMARY KEY (problem_id, dependencies_id)
) STRICT, WITHOUT ROWID;
INSERT INTO trial_uses VALUES(1,1,1800000200000000000);
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
, retry INTEGER NOT NULL DEFAULT 0, uuid_id INTEGER REFERENCES devices) STRICT;
INSERT INTO trials VALUES(1,1,1,1,1,1,1,1,40.0,'operations/1',1800000000123456789,0,NULL);
INSERT INTO trials VALUES(2,1,1,1,2,1,1,1,38.0,'operations/1',1800000000123456789,0,NULL);
INSERT INTO trials VALUES(3,1,1,1,3,1,6,1,1e999,'operations/1',1800000000123456789,1,NULL);
INSERT INTO trials VALUES(4,1,2,1,2,1,1,1,35.0,'operations/2',1800000000123456789,0,NULL);
CREATE TABLE variants (
  id INTEGER PRIMARY KEY,
  family_id INTEGER NOT NULL REFERENCES families,
  text TEXT NOT NULL UNIQUE,
  message BLOB NOT NULL -- attune.v1.Variant
) STRICT;
INSERT INTO variants VALUES(1,1,'attention_simt:BLOCK_M=64',X'0a0e617474656e74696f6e5f73696d74120b0a07424c4f434b5f4d10401a19617474656e74696f6e5f73696d743a424c4f434b5f4d3d3634');
INSERT INTO variants VALUES(2,1,'attention_simt:BLOCK_M=128',X'0a0e617474656e74696f6e5f73696d74120c0a07424c4f434b5f4d1080011a1a617474656e74696f6e5f73696d743a424c4f434b5f4d3d313238');
INSERT INTO variants VALUES(3,1,'attention_simt:BLOCK_M=32',X'0a0e617474656e74696f6e5f73696d74120b0a07424c4f434b5f4d10201a19617474656e74696f6e5f73696d743a424c4f434b5f4d3d3332');
CREATE TABLE device_classes (
  id INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO device_classes VALUES(1,'l4');
CREATE TABLE job_request_ids (
  request_id TEXT PRIMARY KEY,
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  identity TEXT -- of the request; null before this step
) STRICT, WITHOUT ROWID;
INSERT INTO job_request_ids VALUES('nightly',1,NULL);
CREATE TABLE job_writes (
  job_id INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
  write_id INTEGER NOT NULL,
  row_id INTEGER NOT NULL, -- of the trial or incumbent that it made
  PRIMARY KEY (job_id, write_id)
) STRICT, WITHOUT ROWID;
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
INSERT INTO retimings VALUES(1,1,1,NULL,1,1,1800000060000000000,X'');
CREATE TABLE submission_files (
  content_hash TEXT PRIMARY KEY,
  message BLOB NOT NULL -- attune.v1.Submission with nothing but its files
) STRICT;
INSERT INTO submission_files VALUES('content 1',X'');
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
INSERT INTO submissions VALUES(1,'content 1','uid:1000','tiles',1,1,'operations/2',X'');
CREATE TABLE trial_reports (
  trial_id INTEGER PRIMARY KEY REFERENCES trials,
  profile BLOB, -- attune.v1.Profile
  sanitizing BLOB -- attune.v1.Sanitizing
) STRICT;
INSERT INTO trial_reports VALUES(1,X'1a0c6f7065726174696f6e732f31',NULL);
CREATE INDEX trials_by_problem_rank ON trials (problem_id, device_id, policy, rank_us);
CREATE INDEX trials_by_rank ON trials (rank_us);
CREATE INDEX trials_by_problem ON trials (problem_id);
CREATE INDEX trials_by_job ON trials (job);
CREATE INDEX unfinished_jobs ON jobs (id) WHERE done = 0;
CREATE INDEX baselines_by_contender ON baselines (problem_id, device_id, policy, contender);
CREATE INDEX jobs_by_problem ON jobs (problem_id) WHERE problem_id IS NOT NULL;
CREATE INDEX artifacts_by_sha256 ON artifacts (sha256) WHERE sha256 <> '';
CREATE INDEX incumbents_by_trial ON incumbents (trial_id);
CREATE INDEX trials_by_variant ON trials (variant_id);
CREATE INDEX trials_by_class_key ON trials (problem_id, policy, variant_id, dependencies_id, verdict);
CREATE UNIQUE INDEX served_incumbents ON incumbents (problem_id, class_id, policy) WHERE served = 1;
CREATE UNIQUE INDEX unfinished_jobs_by_identity ON jobs (identity) WHERE done = 0;
CREATE INDEX job_request_ids_by_job ON job_request_ids (job_id);
CREATE INDEX jobs_by_parent ON jobs (parent) WHERE parent IS NOT NULL;
CREATE INDEX jobs_of_none ON jobs (id) WHERE parent IS NULL;
CREATE INDEX retimings_by_problem ON retimings (problem_id);
CREATE INDEX retimings_by_time ON retimings (finish_ns);
CREATE INDEX submissions_by_loop ON submissions (principal, loop);
CREATE INDEX submissions_by_content ON submissions (content_hash);
CREATE INDEX incumbents_by_problem ON incumbents (problem_id);
COMMIT;
PRAGMA application_id=1635021934;
PRAGMA user_version=10;
