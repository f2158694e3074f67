#include <array>
#include <string>

#include "server/store/postgresql/migrations.h"

namespace attune::store::postgresql {
namespace {

// Tables without a schema of their own: they are made in the first of the connection's search_path.
const std::array<std::string, 1> kSteps = {
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
)"};

}  // namespace

absl::Span<const std::string> Migrations() { return kSteps; }

}  // namespace attune::store::postgresql
