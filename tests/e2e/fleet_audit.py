"""What happened to jobs and who wrote trials, in tables that triggers fill, beside the fleet's own.

A row of `jobs` says how a job is; that it ended once, and that no lease was taken before its time, only its history can
say. Each host's connections have its name among the tests as their application_name, so that a write has a writer.
"""

SCHEMA = """
CREATE TABLE audit_members (writer text PRIMARY KEY, holder text NOT NULL);

CREATE TABLE audit_jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  writer text NOT NULL DEFAULT current_setting('application_name'),
  name text NOT NULL,
  was_epoch bigint, epoch bigint NOT NULL,
  was_holder text, holder text,
  was_until timestamptz,
  was_done boolean, done boolean NOT NULL
);

CREATE TABLE audit_writes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  writer text NOT NULL DEFAULT current_setting('application_name'),
  what text NOT NULL, -- 'trials/7', 'incumbents/3'
  job text NOT NULL,
  epoch bigint, holder text -- of the job at that moment
);

CREATE FUNCTION audit_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO audit_jobs (name, epoch, holder, done) VALUES (NEW.name, NEW.epoch, NEW.holder, NEW.done);
  ELSE
    INSERT INTO audit_jobs (name, was_epoch, epoch, was_holder, holder, was_until, was_done, done)
      VALUES (NEW.name, OLD.epoch, NEW.epoch, OLD.holder, NEW.holder, OLD.lease_until, OLD.done, NEW.done);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER audit_made AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION audit_job();
CREATE TRIGGER audit_changed AFTER UPDATE ON jobs FOR EACH ROW
  WHEN (ROW(OLD.epoch, OLD.holder, OLD.done) IS DISTINCT FROM ROW(NEW.epoch, NEW.holder, NEW.done))
  EXECUTE FUNCTION audit_job();

CREATE FUNCTION audit_write() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  written text := convert_from(NEW.job, 'UTF8');
BEGIN
  INSERT INTO audit_writes (what, job, epoch, holder)
    SELECT TG_TABLE_NAME || '/' || NEW.id, written, held.epoch, held.holder
    FROM (SELECT 1) AS one LEFT JOIN jobs AS held ON held.name = written;
  RETURN NULL;
END $$;
CREATE TRIGGER audit_written AFTER INSERT ON trials FOR EACH ROW EXECUTE FUNCTION audit_write();
CREATE TRIGGER audit_written AFTER INSERT ON incumbents FOR EACH ROW EXECUTE FUNCTION audit_write();
"""

# Seconds since 1970, which Python's time.time() can be compared with: one machine, one clock.
CHANGES = """
SELECT name, writer, coalesce(members.holder, writer) AS writer_holder, was_epoch, epoch, was_holder, jobs.holder,
  was_done, done, extract(epoch FROM at)::float8 AS at, extract(epoch FROM was_until)::float8 AS was_until
FROM audit_jobs AS jobs LEFT JOIN audit_members AS members USING (writer) ORDER BY id
"""

WRITES = """
SELECT what, job, writer, coalesce(members.holder, writer) AS writer_holder, epoch, writes.holder
FROM audit_writes AS writes LEFT JOIN audit_members AS members USING (writer) ORDER BY id
"""


def histories(rows):
    """What changed of each job, in order, by its name. `rows`: runs a query."""
    jobs = {}
    for change in rows(CHANGES):
        jobs.setdefault(change["name"], []).append(change)
    return jobs


def is_lease(change):
    return change["was_epoch"] is not None and change["epoch"] > change["was_epoch"]


def is_end(change):
    return change["done"] and not change["was_done"]
