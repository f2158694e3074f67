"""A shape that nobody tuned: asked for, listed as a miss, tuned in the background, the daemon killed in between."""

import time
import unittest

from harness import PATIENCE, DaemonTest

PROBLEM = "b1.h1.q64.d64.f16"


class OnMissTest(DaemonTest):
    def until(self, what, found):
        """The first of what `found` returns that is true."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if value := found():
                return value
            time.sleep(0.1)
        self.fail(f"{what} has not come; the daemon says:\n{self.running.log}")
        return None

    def started(self):
        """The operations that a miss began, newest first."""
        return [job for job in self.running.json("jobs") if "on a miss" in job["title"]]

    def test_a_miss_is_listed_then_tuned_although_the_daemon_is_killed_and_the_answer_is_better(self):
        daemon = self.running = self.daemon()
        self.assertEqual(daemon.json("misses"), [])
        for _ in range(3):
            self.assertEqual(daemon.json("best", PROBLEM)[0]["provenance"], "HEURISTIC")
        daemon.json("best", PROBLEM + ".causal")
        counted = {miss["problem"]: (miss["count"], miss["provenance"]) for miss in daemon.json("misses")}
        self.assertEqual(counted, {PROBLEM: (3, "HEURISTIC"), PROBLEM + ".causal": (1, "HEURISTIC")})
        self.assertEqual(daemon.json("misses", "--limit", "1")[0]["problem"], PROBLEM)
        daemon.kill()

        # A check runs what is served, once, and serves it as before.
        daemon.flags.append("--on_miss=check")
        daemon.start()
        guess = daemon.json("warm", PROBLEM)[0]["variant"]
        job = self.until("the check", lambda: [job for job in self.started() if job["done"]])[0]
        self.assertIn(f"check on a miss {PROBLEM} on ", job["title"])
        self.assertEqual([(trial["variant"], trial["verdict"]) for trial in daemon.trials(PROBLEM)], [(guess, "OK")])
        self.assertEqual(daemon.json("best", PROBLEM)[0]["provenance"], "HEURISTIC")
        daemon.stop()

        # A tuning is begun, and killed with the daemon: it goes on at the next start.
        daemon.flags[-1] = "--on_miss=tune"
        daemon.start()
        daemon.json("best", PROBLEM)
        tuning = self.until("the tuning", lambda: [job for job in self.started() if "tune" in job["title"]])[0]
        daemon.kill()
        daemon.start()
        best = self.until(
            "the better answer",
            lambda: [best for best in daemon.json("best", PROBLEM) if best["provenance"] in ("EXACT", "TIE")],
        )[0]
        self.assertEqual(best["artifact_state"], "READY")
        self.assertIsNotNone(best["latency_ms"])
        self.assertEqual(daemon.json("history", PROBLEM)[0]["job"], tuning["operation"])
        self.assertNotIn(PROBLEM, [miss["problem"] for miss in daemon.json("misses")])
        self.assertLessEqual(len(daemon.trials(PROBLEM)), 11)
        self.assertEqual(len([job for job in self.started() if "tune" in job["title"]]), 1)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
