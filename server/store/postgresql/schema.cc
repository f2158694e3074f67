#include <array>
#include <string>

#include "server/store/postgresql/migrations.h"

namespace attune::store::postgresql {
namespace {

// Tables without a schema of their own: they are made in the first of the connection's search_path.
const std::array<std::string, 3> kSteps = {
    // 1: the queue of jobs.
    R"(
CREATE TABLE attune_schema (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version bigint NOT NULL
);
INSERT INTO attune_schema (version) VALUES (0);

-- Renewals and progress change no indexed column, and find room in their page.
CREATE TABLE jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE,
  parent_id bigint REFERENCES jobs,
  kind bigint NOT NULL,
  request bytea NOT NULL,
  request_id text,
  identity bytea,
  problem text,
  done boolean NOT NULL,
  cancelled boolean NOT NULL,
  operation bytea NOT NULL,
  holder text,
  epoch bigint NOT NULL DEFAULT 0,
  lease_until timestamptz,
  created timestamptz NOT NULL DEFAULT now(),
  CHECK (holder IS NULL OR (epoch > 0 AND lease_until IS NOT NULL))
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX jobs_identity ON jobs (identity) WHERE NOT done;
CREATE INDEX jobs_queued ON jobs (id) WHERE NOT done AND holder IS NULL;
CREATE INDEX jobs_held ON jobs (id) WHERE NOT done AND holder IS NOT NULL;
CREATE INDEX jobs_unfinished ON jobs (id) WHERE NOT done AND parent_id IS NULL;
CREATE INDEX jobs_of_parent ON jobs (parent_id, id) WHERE parent_id IS NOT NULL;
CREATE INDEX jobs_of_problem ON jobs (problem, id) WHERE problem IS NOT NULL;

-- Every request_id that asked for a job, of those that joined it too; identity: of what it asked for.
CREATE TABLE job_request_ids (
  request_id text PRIMARY KEY,
  job_id bigint NOT NULL REFERENCES jobs,
  identity bytea
);

-- The writes made under a job's last lease, and the rows that they made.
CREATE TABLE job_writes (
  job_id bigint NOT NULL REFERENCES jobs,
  write_id bigint NOT NULL,
  row_id bigint NOT NULL,
  PRIMARY KEY (job_id, write_id)
);
)",
    // 2: results. Times are nanoseconds since 1970 by the clock of the host that wrote them; enums are the protos'
    // numbers; bytea is a serialised message of attune.v1, or text that nobody searches and that may hold any byte.
    R"(
-- Texts that repeat, once each.
CREATE TABLE problems (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL UNIQUE);
CREATE TABLE devices (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE device_classes (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, fingerprint text NOT NULL UNIQUE);
CREATE TABLE families (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE variants (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  text text NOT NULL UNIQUE,
  message bytea NOT NULL -- Variant
);
CREATE TABLE dependencies (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  toolchain text NOT NULL,
  driver text NOT NULL,
  device_fingerprint text NOT NULL,
  source_hash text NOT NULL,
  seen timestamptz, -- when a host last said that these are today's
  UNIQUE (toolchain, driver, device_fingerprint, source_hash)
);

-- Append-only. Narrow, so that a scan is cheap; what is only read, never searched, is beside it.
CREATE TABLE trials (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  variant_id bigint NOT NULL REFERENCES variants,
  rank_us double precision NOT NULL, -- the median of a timed OK trial, infinity for any other
  finish_ns bigint,
  problem_id integer NOT NULL REFERENCES problems,
  device_id integer NOT NULL REFERENCES devices,
  uuid_id integer REFERENCES devices, -- of the card; null when it has none
  family_id integer NOT NULL REFERENCES families,
  dependencies_id integer NOT NULL REFERENCES dependencies,
  bytes integer NOT NULL, -- of its body and recipe
  policy smallint NOT NULL,
  verdict smallint NOT NULL,
  retry boolean NOT NULL DEFAULT false, -- does not keep its variant from being tried again
  job bytea NOT NULL
);
CREATE INDEX trials_by_class_key ON trials (problem_id, policy, variant_id, dependencies_id, verdict);
CREATE INDEX trials_by_problem_rank ON trials (problem_id, device_id, policy, rank_us);
CREATE INDEX trials_by_rank ON trials (rank_us, id);
CREATE INDEX trials_by_problem ON trials (problem_id, id);
CREATE INDEX trials_by_job ON trials (job);
CREATE INDEX trials_by_variant ON trials (variant_id);
CREATE TABLE trial_bodies (
  trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
  message bytea NOT NULL -- Trial without the recipe and what has a column
);
CREATE TABLE trial_recipes (
  trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
  message bytea NOT NULL -- LaunchRecipe
);
-- What tools say of a trial's code; the last of each.
CREATE TABLE trial_reports (
  trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
  profile bytea, -- Profile
  sanitizing bytea -- Sanitizing
);
-- When a job last asked for what is known of a problem under dependencies.
CREATE TABLE trial_uses (
  problem_id integer NOT NULL REFERENCES problems,
  dependencies_id integer NOT NULL REFERENCES dependencies,
  used_ns bigint NOT NULL,
  PRIMARY KEY (problem_id, dependencies_id)
);

-- A history: at most one is served for a problem, class and policy.
CREATE TABLE incumbents (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  problem_id integer NOT NULL REFERENCES problems,
  class_id integer NOT NULL REFERENCES device_classes,
  device_id integer NOT NULL REFERENCES devices, -- of the card that timed it
  policy smallint NOT NULL,
  trial_id bigint NOT NULL REFERENCES trials,
  promote_ns bigint NOT NULL,
  previous_id bigint REFERENCES incumbents,
  served boolean NOT NULL,
  pinned boolean NOT NULL,
  job bytea NOT NULL,
  why bytea NOT NULL,
  rolled_back_why bytea, -- null unless rolled back
  ties bytea NOT NULL, -- Incumbent with nothing but its ties and claim
  timing bytea, -- Timing of the play-off that promoted it
  changed timestamptz NOT NULL DEFAULT clock_timestamp() -- when it was last put in, taken out or unpinned
);
CREATE INDEX incumbents_by_change ON incumbents (changed);
CREATE UNIQUE INDEX incumbents_served ON incumbents (problem_id, class_id, policy) WHERE served;
CREATE INDEX incumbents_by_problem ON incumbents (problem_id, id);
CREATE INDEX incumbents_by_trial ON incumbents (trial_id);

-- Every time of what is served, for its history.
CREATE TABLE retimings (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  problem_id integer NOT NULL REFERENCES problems,
  device_id integer NOT NULL REFERENCES devices,
  uuid_id integer REFERENCES devices, -- of the card; null when it has none
  class_id integer NOT NULL REFERENCES device_classes,
  policy smallint NOT NULL,
  finish_ns bigint NOT NULL,
  message bytea NOT NULL -- Retiming without what has a column
);
CREATE INDEX retimings_by_problem ON retimings (problem_id, id);
CREATE INDEX retimings_by_time ON retimings (finish_ns);

CREATE TABLE baselines (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  problem_id integer NOT NULL REFERENCES problems,
  device_id integer NOT NULL REFERENCES devices,
  policy smallint NOT NULL,
  contender text NOT NULL,
  message bytea NOT NULL -- Baseline
);
CREATE INDEX baselines_by_contender ON baselines (problem_id, device_id, policy, contender, id);

-- What each compile key gave under each toolchain, good or bad.
CREATE TABLE artifacts (
  id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  compile_key text NOT NULL,
  toolchain text NOT NULL,
  verdict smallint NOT NULL,
  sha256 text NOT NULL, -- of its code; empty unless OK
  compile_ms double precision NOT NULL,
  put_ns bigint NOT NULL,
  log bytea NOT NULL,
  entries bytea NOT NULL, -- attune.worker.v1.CompileResponse with nothing but its entries
  PRIMARY KEY (compile_key, toolchain)
);
CREATE INDEX artifacts_by_sha256 ON artifacts (sha256) WHERE sha256 <> '';
-- Compiled code, by its own hash.
CREATE TABLE artifact_code (
  sha256 text PRIMARY KEY,
  used_ns bigint NOT NULL, -- last put or read, to the minute
  bytes bytea NOT NULL
);
ALTER TABLE artifact_code ALTER bytes SET STORAGE EXTERNAL;

CREATE TABLE submission_files (
  content_hash text PRIMARY KEY,
  message bytea NOT NULL -- Submission with nothing but its files
);
CREATE TABLE submissions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  content_hash text NOT NULL REFERENCES submission_files,
  principal text NOT NULL,
  loop text NOT NULL, -- empty: of none
  iteration bigint NOT NULL, -- of the principal's loop, from 1; 0: of none
  state smallint NOT NULL, -- Submission.State
  operation text NOT NULL UNIQUE, -- that it is of
  message bytea NOT NULL -- Submission without files and what has a column
);
CREATE INDEX submissions_by_loop ON submissions (principal, loop, id);
CREATE INDEX submissions_by_content ON submissions (content_hash);

-- Files of other programs' caches.
CREATE TABLE blob_contents (
  sha256 text PRIMARY KEY,
  data bytea NOT NULL
);
ALTER TABLE blob_contents ALTER data SET STORAGE EXTERNAL;
CREATE TABLE blobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- grows with each put
  principal text NOT NULL, -- who put it
  namespace text NOT NULL,
  key text NOT NULL,
  file text NOT NULL,
  shared boolean NOT NULL,
  sha256 text NOT NULL REFERENCES blob_contents,
  bytes bigint NOT NULL,
  put_ns bigint NOT NULL,
  used_ns bigint NOT NULL, -- last put or got
  UNIQUE (principal, namespace, key, file)
);
CREATE INDEX blobs_by_use ON blobs (used_ns);
CREATE INDEX blobs_by_sha256 ON blobs (sha256);
-- What all blobs take.
CREATE TABLE blob_space (one boolean PRIMARY KEY DEFAULT true CHECK (one), space bigint NOT NULL);
INSERT INTO blob_space (space) VALUES (0);

-- Of the host that was asked for it, whose devices its request names; empty: of any. Hosts join no job of another's.
ALTER TABLE jobs ADD COLUMN home text NOT NULL DEFAULT '';
DROP INDEX jobs_identity;
CREATE UNIQUE INDEX jobs_identity ON jobs (identity, home) WHERE NOT done;
ALTER TABLE jobs ADD COLUMN end_ns bigint; -- null until it is done; of those before this step, when that was taken
UPDATE jobs SET end_ns = extract(epoch FROM now())::bigint * 1000000000 WHERE done;
CREATE INDEX jobs_ended ON jobs (end_ns) WHERE done;
ALTER TABLE job_request_ids DROP CONSTRAINT job_request_ids_job_id_fkey,
  ADD FOREIGN KEY (job_id) REFERENCES jobs ON DELETE CASCADE;
CREATE INDEX job_request_ids_by_job ON job_request_ids (job_id);
ALTER TABLE job_writes DROP CONSTRAINT job_writes_job_id_fkey,
  ADD FOREIGN KEY (job_id) REFERENCES jobs ON DELETE CASCADE;
)",
    // 3: hosts, and jobs that any host with cards of a class may take.
    R"(
CREATE TABLE hosts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL UNIQUE, -- "hosts/..."
  incarnation bigint NOT NULL, -- of its last start
  described bytea NOT NULL, -- Host, as it registered
  started timestamptz NOT NULL,
  seen timestamptz NOT NULL,
  stopped boolean NOT NULL DEFAULT false,
  draining boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- With a class, home is whose cards the request names: others take it only while that host is away.
ALTER TABLE jobs ADD COLUMN device_class text, ADD COLUMN priority smallint NOT NULL DEFAULT 0,
  ADD COLUMN lost_by text NOT NULL DEFAULT ''; -- holders, with commas between
DROP INDEX jobs_queued;
CREATE INDEX jobs_of_home ON jobs (home, id) WHERE NOT done AND device_class IS NULL;
CREATE INDEX jobs_of_class ON jobs (device_class, priority, id)
  WHERE NOT done AND holder IS NULL AND device_class IS NOT NULL;
)"};

}  // namespace

absl::Span<const std::string> Migrations() { return kSteps; }

}  // namespace attune::store::postgresql
