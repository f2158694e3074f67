"""Each check of a fleet's database finds what is wrong when something is, and nothing when nothing is.

The database is a real one: a gateway has made its tables, and statements plant in them what must never be there.
"""

import pathlib
import tempfile
import unittest

import fleet_audit
import fleet_invariants as invariants
import postgresql
from fleet_members import Member

JOB = "operations/1"
OTHER = "operations/2"
SECOND = "interval '1 s'"

TABLES = "jobs, job_writes, trials, trial_bodies, incumbents, problems, devices, device_classes, families, variants"
AUDITED = "dependencies, audit_jobs, audit_writes"

# What trials and incumbents refer to, each under the number 1; a second problem and variant.
TEXTS = """
INSERT INTO problems (text) VALUES ('p1'), ('p2');
INSERT INTO devices (name) VALUES ('opencl:0');
INSERT INTO device_classes (fingerprint) VALUES ('0123456789abcdef');
INSERT INTO families (name) VALUES ('f');
INSERT INTO variants (text, message) VALUES ('f:A=1', ''), ('f:A=2', '');
INSERT INTO dependencies (toolchain, driver, device_fingerprint, source_hash) VALUES ('t', 'd', 'c', 's');
"""


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class FleetInvariantsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="attune-invariants-", dir="/tmp")
        cls.addClassCleanup(directory.cleanup)
        cls.server = postgresql.PostgresqlServer()
        cls.addClassCleanup(cls.server.close)
        member = Member(directory.name, "maker", cls.server, pathlib.Path(directory.name) / "log", gateway=True)
        cls.addClassCleanup(member.close)
        member.bring_up()
        member.stop()
        cls.server.execute(fleet_audit.SCHEMA)
        cls.server.execute("INSERT INTO audit_members VALUES ('one', 'h1'), ('two', 'h2')")
        cls.server.execute("DROP INDEX incumbents_served")  # which would refuse some of what is planted

    def setUp(self):
        self.server.execute(f"TRUNCATE {TABLES}, {AUDITED} RESTART IDENTITY CASCADE; {TEXTS}")

    def rows(self, sql):
        return self.server.rows(sql)

    def make(self, name=JOB):
        self.server.execute(
            "INSERT INTO jobs (name, kind, request, done, cancelled, operation)"
            f" VALUES ('{name}', 1, '', false, false, '')"
        )

    def lease(self, writer, holder, until=f"now() + {SECOND}", name=JOB):
        self.server.execute(
            f"UPDATE jobs SET holder = '{holder}', epoch = epoch + 1, lease_until = {until} WHERE name = '{name}'",
            writer,
        )

    def end(self, writer, name=JOB):
        self.server.execute(f"UPDATE jobs SET done = true WHERE name = '{name}'", writer)

    def do_job(self, name=JOB):
        """As it should be: one loses it, another ends it."""
        self.make(name)
        self.lease("one", "h1", "now()", name)
        self.lease("two", "h2", name=name)
        self.end("two", name)

    def try_variant(self, writer="one", variant=1, job=JOB, finish=1, body=""):
        trial = self.server.number(
            "INSERT INTO trials (variant_id, rank_us, finish_ns, problem_id, device_id, family_id, dependencies_id,"
            f" bytes, policy, verdict, job) VALUES ({variant}, 1, {finish}, 1, 1, 1, 1, 1, 1, 1, '{job}') RETURNING id",
            writer,
        )
        self.server.execute(f"INSERT INTO trial_bodies VALUES ({trial}, '{body}')")
        return f"trials/{trial}"

    def promote(self, previous, served, problem=1):
        return self.server.number(
            "INSERT INTO incumbents (problem_id, class_id, device_id, policy, trial_id, promote_ns,"
            " previous_id, served, pinned,"
            f" job, why, ties) VALUES ({problem}, 1, 1, 1, 1, 1, {previous}, {served}, false, '', '', '')"
            " RETURNING id"
        )

    def test_nothing_is_wrong_with_a_job_that_another_host_went_on_with(self):
        self.do_job()
        self.assertEqual(invariants.jobs_ended_once(self.rows), [])
        self.assertEqual(invariants.leases_taken_in_turn(self.rows), [])
        self.assertEqual(invariants.nothing_is_stuck(self.rows), [])

    def test_finds_a_job_that_ended_twice(self):
        self.do_job()
        self.server.execute("UPDATE jobs SET done = false", "two")
        self.end("two")
        [twice, *changes] = invariants.jobs_ended_once(self.rows)
        self.assertEqual(twice, "operations/1 ended 2 times, by ['two', 'two']")
        self.assertEqual(changes, ["operations/1 was changed by two after its end"])

    def test_finds_a_job_that_never_ended(self):
        self.make()
        self.assertEqual(invariants.jobs_ended_once(self.rows), ["operations/1 ended 0 times, by []"])

    def test_finds_a_job_that_was_leased_after_its_end(self):
        self.do_job()
        self.lease("one", "h1")
        faults = invariants.jobs_ended_once(self.rows)
        self.assertIn("operations/1 was ended under epoch 2 by two; its last is 3", faults)
        self.assertIn("operations/1 was changed by one after its end", faults)

    def test_finds_a_job_that_another_than_its_holder_ended(self):
        self.make()
        self.lease("one", "h1")
        self.end("two")
        self.assertEqual(invariants.jobs_ended_once(self.rows), ["operations/1 was ended by two (h2), held by h1"])

    def test_finds_a_lease_that_was_taken_too_early(self):
        self.make()
        self.lease("one", "h1", "now() + interval '1 hour'")
        self.lease("two", "h2")
        [fault] = invariants.leases_taken_in_turn(self.rows)
        self.assertRegex(fault, r"^operations/1: h2 took it from h1 \d+\.\d+ s too early$")

    def test_finds_an_epoch_that_does_not_follow(self):
        self.make()
        self.server.execute("UPDATE jobs SET epoch = 2, holder = 'h1', lease_until = now()", "one")
        self.assertEqual(invariants.leases_taken_in_turn(self.rows), ["operations/1: after epoch 0 came 2, of one"])

    def test_finds_writes_of_those_that_do_not_hold_the_job(self):
        self.make()
        self.lease("two", "h2")
        self.try_variant("two")
        self.assertEqual(invariants.writes_by_holders(self.rows), [])
        self.try_variant("one")
        [fault] = invariants.writes_by_holders(self.rows)
        self.assertEqual(fault, "trials/2 of operations/1 was written by one (h1) while h2 held it under epoch 1")

    def test_finds_what_is_stuck(self):
        self.make()
        self.do_job(OTHER)
        self.server.execute("INSERT INTO job_writes SELECT id, 1, 1 FROM jobs WHERE done")
        self.assertEqual(
            invariants.nothing_is_stuck(self.rows),
            [
                "operations/1 is unfinished, epoch 0, and nobody holds it",
                "operations/2 has ended, and keeps 1 rows of job_writes",
            ],
        )
        self.lease("one", "h1")
        self.assertIn("operations/1 is unfinished, epoch 1, held by h1", invariants.nothing_is_stuck(self.rows)[0])

    def test_finds_a_session_that_stays_in_a_transaction(self):
        def rows(sql):
            session = {"pid": 7, "application_name": "one", "query": "BEGIN"}
            return [session] if "pg_stat_activity" in sql else []

        self.assertEqual(invariants.nothing_is_stuck(rows), ["session 7 of one stays in a transaction after 'BEGIN'"])

    def test_finds_what_is_served_beside_another(self):
        self.try_variant()
        self.promote("NULL", "true")
        self.assertEqual(invariants.incumbents_are_a_chain(self.rows), [])
        self.promote(1, "true")
        what = "p1, class 01234567, policy 1"
        self.assertEqual(
            invariants.incumbents_are_a_chain(self.rows), [f"{what}: incumbents [1, 2] are served; the last is 2"]
        )
        self.server.execute("UPDATE incumbents SET served = false")
        self.assertEqual(
            invariants.incumbents_are_a_chain(self.rows), [f"{what}: incumbents [] are served; the last is 2"]
        )

    def test_finds_a_history_that_is_no_chain(self):
        self.try_variant()
        self.promote("NULL", "false")
        self.promote("NULL", "true", problem=2)
        self.promote("NULL", "true")
        self.assertEqual(
            invariants.incumbents_are_a_chain(self.rows),
            ["p1, class 01234567, policy 1: incumbent 3 follows None; before it was 1"],
        )

    def test_finds_answers_that_are_not_promoted(self):
        self.try_variant()
        self.promote("NULL", "true")

        def faults(*answer, problem="p1"):
            return invariants.answers_are_promoted(self.rows, {("host1", problem): answer})

        self.assertEqual(faults("f:A=1", "EXACT"), [])
        self.assertEqual(faults("f:A=2", "NEAREST", problem="p2"), [])
        self.assertEqual(faults("f:A=2", "EXACT"), ["host1 answers p1 with f:A=2 (EXACT); promoted is f:A=1"])
        self.assertEqual(faults("f:A=1", "STALE"), ["host1 answers p1 with f:A=1 (STALE); promoted is f:A=1"])

    def test_finds_trials_that_are_lost_or_another(self):
        seen = {self.try_variant(): (JOB, "f:A=1")}
        self.assertEqual(invariants.trials_are_kept(self.rows, seen), [])
        self.assertEqual(
            invariants.trials_are_kept(self.rows, seen | {"trials/9": (JOB, "f:A=2")}),
            [f"trials/9 of {JOB} was listed and is gone"],
        )
        [fault] = invariants.trials_are_kept(self.rows, {"trials/1": (JOB, "f:A=2")})
        self.assertIn("trials/1 was listed as ('operations/1', 'f:A=2'), and is ('operations/1', 'f:A=1')", fault)

    def test_finds_a_trial_that_was_written_twice(self):
        self.try_variant()
        self.try_variant(finish=2)  # measured again
        self.try_variant(variant=2)
        self.assertEqual(invariants.trials_are_written_once(self.rows), [])
        self.try_variant()
        self.assertEqual(
            invariants.trials_are_written_once(self.rows),
            [f"{JOB}: trials/1, trials/4 are the same, written again"],
        )

    def test_finds_a_variant_that_a_job_tried_again(self):
        def trial(number, verdict="OK", job=JOB):
            return {
                "trial": f"trials/{number}",
                "job": job,
                "problem": "p1",
                "variant": "f:A=1",
                "verdict": verdict,
                "contended": False,
                "given_up": False,
            }

        right = [trial(1, "LOST"), trial(2), trial(3, job=OTHER), trial(4)]
        self.assertEqual(invariants.variants_are_tried_once(right), [])
        self.assertEqual(
            invariants.variants_are_tried_once([*right, trial(5)]),
            [f"{JOB}: trials/5 is of f:A=1, as trials/4, which holds"],
        )
        self.assertEqual(invariants.verdicts_are_right(right), [])
        self.assertEqual(invariants.verdicts_are_right([trial(5, "TIMEOUT")]), [f"trials/5 of {JOB}: f:A=1 is TIMEOUT"])

    def test_finds_ends_without_a_reason(self):
        self.make()
        self.make(OTHER)

        def faults(state, error=None, others=("SUCCEEDED",)):
            jobs = [{"operation": JOB, "state": state, "error": error}]
            jobs += [{"operation": OTHER, "state": other, "error": None} for other in others]
            return invariants.ends_have_reasons(self.rows, jobs)

        lost = "its host was lost 3 times (h1, h2, h3): what it runs may be what ends them"
        self.assertEqual(faults("SUCCEEDED"), [])
        self.assertEqual(faults("FAILED", "database away"), [f"{JOB} FAILED: database away"])
        self.assertEqual(faults("FAILED", lost), [f"{JOB} FAILED: {lost}; it was lost with []"])
        self.assertEqual(faults("CANCELLED"), [f"{JOB} is CANCELLED, and nobody has asked for that"])
        self.assertEqual(faults("SUCCEEDED", others=()), [f"{OTHER} is stored and not listed"])
        self.server.execute(f"UPDATE jobs SET lost_by = 'h1,h2,h3', cancelled = true WHERE name = '{JOB}'")
        self.assertEqual(faults("FAILED", lost), [])
        self.assertEqual(faults("CANCELLED"), [])
        self.assertEqual(faults("SUCCEEDED"), [f"{JOB} is SUCCEEDED though h1, h2, h3 were lost with it"])

    def test_finds_answers_that_were_not_kept(self):
        jobs = [{"operation": JOB, "state": "CANCELLED"}]
        self.assertEqual(invariants.answers_were_kept(jobs, [JOB], [(JOB, "CANCELLED")]), [])
        self.assertEqual(
            invariants.answers_were_kept(jobs, [OTHER], [(JOB, "SUCCEEDED")]),
            [f"{OTHER} was accepted and is gone", f"a watcher of {JOB} was told SUCCEEDED; it is CANCELLED"],
        )

    def test_finds_equal_requests_that_are_two_jobs(self):
        def faults(request_id, *names):
            return invariants.equal_requests_are_one_job(self.rows, [(request_id, names)])

        self.do_job()
        self.do_job(OTHER)
        self.assertEqual(faults("id", JOB, JOB), [])
        self.assertEqual(faults(None, OTHER, JOB), [])  # made after the first had ended
        self.assertEqual(faults("id", JOB, OTHER), [f"request_id id is of {JOB} and of {OTHER}"])
        self.assertEqual(
            faults(None, JOB, "operations/9"),
            [f"operations/9 of the equal requests {JOB} and operations/9 is gone"],
        )
        self.make("operations/3")
        self.do_job("operations/4")
        self.assertEqual(
            faults(None, "operations/3", "operations/4"),
            ["operations/4 was made while operations/3, which is the same, had not ended"],
        )


if __name__ == "__main__":
    unittest.main()
