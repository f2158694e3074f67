"""Daemons with one store on PostgreSQL: what one finds out, the others answer with; each does what it was asked."""

import subprocess
import unittest

import postgresql
from harness import ATTUNED, Daemon, DaemonTest, wait_until

PROBLEM = "b1.h1.q32.d32.f16"
BUDGET = ("--strategy=random", "--max-trials=4", "--seed=3")


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class FleetTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.server = postgresql.PostgresqlServer()
        self.addCleanup(self.server.close)

    def member(self, name, start=True):
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        daemon = Daemon(directory, flags=[f"--store={self.server.target}", "--trial_timeout=10m"])
        self.addCleanup(lambda: daemon.process and daemon.process.poll() is None and daemon.kill())
        return daemon.start() if start else daemon

    def tune(self, daemon, problem=PROBLEM):
        result = daemon.json("tune", problem, *BUDGET)[-1]
        self.assertEqual(result["type"], "tuning", daemon.log)
        return result

    def provenance(self, daemon, problem=PROBLEM):
        return daemon.json("best", problem)[0]["provenance"]

    def test_what_one_finds_out_the_other_serves(self):
        one, two = self.member("one"), self.member("two")
        self.assertNotIn(self.provenance(two), ("EXACT", "TIE"))
        self.tune(one)
        # Without a restart: it sees what others promote.
        wait_until("the other's incumbent", lambda: self.provenance(two) in ("EXACT", "TIE"))
        self.assertEqual(two.json("best", PROBLEM)[0]["variant"], one.json("best", PROBLEM)[0]["variant"])

        # Its code, too, which is compiled nowhere else.
        code = self.directory / "code"
        two.attune("best", PROBLEM, f"--artifact={code}")
        self.assertGreater(code.stat().st_size, 0)
        self.assertFalse((two.data / "attune.db").exists())

        # Work that the other does can be watched.
        job = one.json("tune", "b1.h1.q64.d32.f16", "--detach", *BUDGET)[0]["operation"]
        self.assertEqual(two.json("watch", job)[-1]["type"], "tuning", two.log)

        # Every operation is listed by both, and a new start goes on where the last one was.
        self.assertEqual(len(two.json("jobs")), 2)
        two.stop()
        two = self.member("two")
        self.assertIn(self.provenance(two), ("EXACT", "TIE"))
        self.assertEqual(len(two.trials(PROBLEM)), len(one.trials(PROBLEM)))
        for daemon in (one, two):
            daemon.stop()

    def test_equal_requests_are_each_daemons_own(self):
        one, two = self.member("one"), self.member("two")
        jobs = [daemon.json("tune", PROBLEM, "--detach", *BUDGET)[0]["operation"] for daemon in (one, two)]
        self.assertNotEqual(*jobs)
        for daemon, job in zip((one, two), jobs, strict=True):
            self.assertEqual(daemon.json("watch", job)[-1]["type"], "tuning", daemon.log)
        self.assertEqual({job["operation"] for job in one.json("jobs")}, set(jobs))

    def test_the_database_may_be_away_for_a_while(self):
        daemon = self.member("one")
        self.tune(daemon)
        job = daemon.json("tune", "b1.h1.q64.d32.f16", "--detach", *BUDGET)[0]["operation"]
        self.server.stop()
        self.assertIn(self.provenance(daemon), ("EXACT", "TIE"), "what is in memory is served")
        self.server.start()
        self.assertEqual(daemon.json("watch", job)[-1]["type"], "tuning", daemon.log)
        self.assertEqual(self.server.number("SELECT count(*) FROM jobs WHERE done"), 2)
        daemon.stop()

    def test_an_interrupted_job_goes_on_at_the_next_start(self):
        daemon = self.member("one")
        job = daemon.json("tune", PROBLEM, "--detach", *BUDGET)[0]["operation"]
        wait_until("a trial", lambda: self.server.number("SELECT count(*) FROM trials") > 0)
        daemon.kill()
        other = self.member("two")
        [left] = other.json("jobs")
        self.assertEqual((left["operation"], left["done"]), (job, False), "it is not the other's to work on")
        daemon = self.member("one")
        self.assertEqual(daemon.json("watch", job)[-1]["type"], "tuning", daemon.log)
        self.assertNoneAgain(daemon.json("trials", "--limit", "0"))

    def test_check_says_what_is_wrong(self):
        def check(store):
            command = [ATTUNED, "--check=flags,store", f"--store={store}", f"--data_dir={self.directory}/data"]
            return subprocess.run(
                [*command, f"--lock_dir={self.directory}/locks"], capture_output=True, text=True, check=False
            )

        result = check(self.server.target)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("tables to be made", result.stdout)
        self.member("one").stop()
        self.assertRegex(check(self.server.target).stdout, r"store +ok: .* schema version \d+, 0 trials")
        result = check("postgresql:///attune?host=/tmp/attune_no_such_folder")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/tmp/attune_no_such_folder", result.stdout)
        self.assertEqual(check("mysql://db/attune").returncode, 1)


if __name__ == "__main__":
    unittest.main()
