"""The wall clock is set while a job runs: its budget and its elapsed time take no notice."""

import json
import unittest

from harness import DaemonTest, WallClock, wait_until

PROBLEM = "b1.h1.q64.d64.f16"
HOUR = 3600


class WallClockTest(DaemonTest):
    def daemon_of_this_clock(self):
        self.clock = WallClock(self.directory)
        return self.daemon(start=False).start(environment=self.clock.environment)

    def test_a_clock_that_is_set_forward_costs_a_job_neither_its_lease_nor_its_time(self):
        daemon = self.daemon_of_this_clock()
        trials = ("--strategy=random", "--max-trials=3", "--max-time=10m")
        name = daemon.json("tune", PROBLEM, *trials, "--detach")[0]["operation"]
        wait_until("a first trial", lambda: daemon.trials(PROBLEM))
        self.clock.set(HOUR)
        lines = daemon.json("watch", name)
        self.assertLess(max(line["elapsed_s"] for line in lines if line["type"] == "progress"), HOUR)
        [job] = daemon.json("jobs")
        self.assertEqual(job["state"], "SUCCEEDED", json.dumps(job))
        self.assertEqual([trial["verdict"] for trial in daemon.trials(PROBLEM)], ["OK", "OK", "OK"])
        self.assertNotIn("stale lease", daemon.log)
        daemon.stop()

    def test_a_clock_that_is_set_back_neither_prolongs_a_job_nor_makes_its_times_negative(self):
        daemon = self.daemon_of_this_clock()
        variants = sum(f["variants"] for f in daemon.json("space", PROBLEM)[0]["families"])
        name = daemon.json("tune", PROBLEM, "--max-time=3s", "--detach")[0]["operation"]

        def phase():
            return next(j for j in daemon.json("jobs") if j["operation"] == name)["phase"]

        wait_until("the job to begin", lambda: phase() != "QUEUED")
        self.clock.set(-HOUR)
        lines = daemon.json("watch", name)
        progress = [line for line in lines if line["type"] == "progress"]
        self.assertTrue(progress)
        for line in progress:
            self.assertGreaterEqual(line["elapsed_s"], 0, line)
        self.assertLess(len(daemon.trials(PROBLEM)), variants, "the budget went on for an hour")
        job = next(j for j in daemon.json("jobs") if j["operation"] == name)
        self.assertEqual(job["state"], "SUCCEEDED", json.dumps(job))
        # That the wall clock was set at all shows in the timestamps, which are wall time.
        self.assertLess(job["end_time"], job["create_time"])
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
