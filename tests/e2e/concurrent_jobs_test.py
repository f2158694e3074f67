"""Several jobs on one problem at once, with different strategies and families: they share their trials, and the variant
served in the end is the one that the last play-off, against the best that any of them measured, left in front."""

import json
import re
import shutil
import unittest

from harness import KERNELS, PATIENCE, TEST_FAMILIES, DaemonTest, wait_until

PROBLEM = "b1.h1.q32.d32.f16"

# Each asks for something else, so that none joins another. Two run at a time on each lane, and others wait. The first
# two both try the two variants of one family: one of them finds what the other has tried.
JOBS = [
    ("--family=slowable_opencl",),
    ("--family=slowable_opencl", "--strategy=random", "--max-trials=2", "--seed=6"),
    ("--family=attention_opencl", "--max-trials=8"),
    ("--strategy=random", "--max-trials=3", "--seed=1"),
    ("--strategy=random", "--max-trials=5", "--seed=2", "--background"),
    ("--strategy=random", "--max-trials=1", "--seed=3"),
    ("--family=slowable_opencl", "--family=attention_opencl", "--max-trials=6", "--background"),
    ("--strategy=random", "--max-trials=2", "--seed=4"),
    ("--family=attention_opencl", "--strategy=random", "--max-trials=4", "--seed=5"),
]


class ConcurrentJobsTest(DaemonTest):
    def run_jobs(self, count):
        # A second family beside the real one; the other test families have bad variants.
        families = self.directory / "families"
        for name in ("common", "slowable_opencl"):
            shutil.copytree(TEST_FAMILIES / name, families / name)
        daemon = self.daemon(kernels=[KERNELS, families])
        names = [daemon.json("tune", PROBLEM, "--detach", *job)[0]["operation"] for job in JOBS[:count]]
        self.assertEqual(len(set(names)), count)
        results = {}
        for name in names:
            lines = daemon.json("watch", name, timeout=4 * PATIENCE)
            results[name] = lines[-1]
            self.assertEqual(lines[-1]["type"], "tuning", lines[-1])
        self.check_trials(daemon)
        self.check_served(daemon, results)
        daemon.stop()

    def check_trials(self, daemon):
        trials = daemon.trials(PROBLEM)
        self.assertEqual({t["verdict"] for t in trials}, {"OK"}, daemon.log)
        self.assertNoneAgain(trials)  # on a busy machine a disturbed trial is taken again

    def check_served(self, daemon, results):
        # In the order of the log: times of the listing are whole seconds, and two jobs may share one.
        def ended():
            return re.findall(r" job ended job=(\S+)", daemon.log)

        wait_until("the end of all to be logged", lambda: set(results) <= set(ended()))
        last = results[ended()[-1]]
        contestants = {t["variant"]: t for t in last["play_off"]}
        served = daemon.json("best", PROBLEM)[0]["variant"]
        self.assertEqual(served, last["incumbent"]["variant"])
        self.assertIn(served, contestants, json.dumps(last, indent=1))
        trials = daemon.trials(PROBLEM)
        least = min(t["latency_ms"] for t in trials)
        best = {t["variant"] for t in trials if t["latency_ms"] == least}  # several, where their code is the same
        self.assertTrue(best & set(contestants), f"the best that was measured did not play off: {best}")
        for variant, trial in contestants.items():
            self.assertGreaterEqual(
                trial["latency_high_ms"], contestants[served]["latency_low_ms"], f"{variant} is faster than {served}"
            )

    def test_two_jobs(self):
        self.run_jobs(2)

    def test_four_jobs(self):
        self.run_jobs(4)

    def test_eight_jobs(self):
        self.run_jobs(8)


if __name__ == "__main__":
    unittest.main()
