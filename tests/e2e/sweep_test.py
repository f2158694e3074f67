"""Nightly sweeps: the second night compiles nothing and reports SAME; a slowed incumbent is reported SLOWER."""

import json
import pathlib
import unittest

from harness import KERNELS, TEST_FAMILIES, DaemonTest, holds

SLOW = pathlib.Path("/tmp/attune-test-slow")

TWELVE = """
title: "twelve"
shapes {
  product { batch: 1 heads_q: [1, 2] seq_q: [16, 32, 48] head_dim: [32, 64] dtype: "f16" }
}
budget { trials_per_problem: 4 }
"""

ONE_SLOWABLE = """
title: "slowable"
shapes { problem: "b1.h1.q64.d64.f16" }
families: "slowable_opencl"
"""


class SweepTest(DaemonTest):
    def sweep(self, daemon, plan, *arguments, check=True):
        path = self.directory / "plan.textproto"
        path.write_text(plan)
        report = self.directory / "report.json"
        result = daemon.attune(
            "sweep",
            str(path),
            "--report-json",
            str(report),
            "--report-md",
            str(self.directory / "report.md"),
            *arguments,
            check=check,
        )
        return json.loads(report.read_text()), result

    def test_the_second_night_compiles_nothing_and_finds_nothing_slower(self):
        daemon = self.daemon()
        first, _ = self.sweep(daemon, TWELVE)
        self.assertEqual([row["outcome"] for row in first["rows"]], ["NEW"] * 12)
        # A plan with a budget leaves variants untried: the second night re-times incumbents where nothing changed.
        # It tries as many variants as had times that a busy machine disturbed.
        disturbed = [trial for trial in daemon.json("trials", "--limit", "0") if not holds(trial)]
        second, result = self.sweep(daemon, TWELVE, check=False)
        self.assertLessEqual(second["compiles"], len(disturbed))
        self.assertLessEqual(second["trials"], len(disturbed))
        self.assertNoneAgain(daemon.json("trials", "--limit", "0"), after=second)
        self.assertEqual(len(second["rows"]), 12)
        # Two cores shared with everything else: a row may be AMBIGUOUS or FASTER here, never NEW or FAILED.
        outcomes = {row["outcome"] for row in second["rows"]}
        self.assertLessEqual(outcomes, {"SAME", "FASTER", "AMBIGUOUS", "SLOWER"}, second)
        self.assertEqual(result.returncode, 5 if "SLOWER" in outcomes else 0)
        self.assertIn("twelve", (self.directory / "report.md").read_text())
        daemon.stop()

    def test_a_guided_night_tries_what_its_effort_allows_and_the_next_nothing_new(self):
        daemon = self.daemon()
        plan = 'shapes { problem: "b1.h1.q64.d32.f16" } strategy: KIND_EVOLUTION'
        first, _ = self.sweep(daemon, plan, "--effort", "quick")
        self.assertEqual([row["outcome"] for row in first["rows"]], ["NEW"])
        self.assertEqual(first["trials"], 24)
        disturbed = sum(not holds(trial) for trial in daemon.json("trials", "--limit", "0"))
        [planned] = daemon.json("sweep", str(self.directory / "plan.textproto"), "--effort", "quick", "--dry-run")
        self.assertLessEqual(planned["trials"], disturbed)
        second, _ = self.sweep(daemon, plan, "--effort", "quick", check=False)
        self.assertLessEqual(second["trials"], disturbed)
        self.assertNoneAgain(daemon.json("trials", "--limit", "0"), after=second)
        daemon.stop()

    def test_a_slowed_incumbent_is_a_regression_and_stays_served(self):
        self.assertFalse(SLOW.exists(), f"{SLOW} is left over; remove it")
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES])
        self.sweep(daemon, ONE_SLOWABLE)
        before = daemon.json("best", "b1.h1.q64.d64.f16")[0]
        SLOW.touch()
        self.addCleanup(lambda: SLOW.unlink(missing_ok=True))
        report, result = self.sweep(daemon, ONE_SLOWABLE, check=False)
        self.assertEqual([row["outcome"] for row in report["rows"]], ["SLOWER"])
        self.assertTrue(report["regression"])
        self.assertEqual(result.returncode, 5)
        self.assertEqual(daemon.json("best", "b1.h1.q64.d64.f16")[0]["variant"], before["variant"])
        # Both nights are in the history: the first one's time, and the cycles that confirmed the regression.
        times = daemon.json("history", "b1.h1.q64.d64.f16", "--times", "--spans", "0")
        slowed = [time for time in times if time["job"] == times[0]["job"]]
        self.assertGreaterEqual(len(slowed), 3)
        self.assertEqual({time["variant"] for time in slowed}, {before["variant"]})
        fast = times[-1]["latency_ms"]
        self.assertTrue(all(time["latency_ms"] > 1.02 * fast for time in slowed), times)
        self.assertIn("*", daemon.attune("history", "b1.h1.q64.d64.f16", "--times").stdout)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
