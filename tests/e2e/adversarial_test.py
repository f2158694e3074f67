"""Kernels that hang, crash, write where they must not or are wrong: each gets its verdict, its good counterpart is OK,
and queries are answered meanwhile."""

import datetime
import re
import threading
import unittest

from harness import BACK_WITHIN, KERNELS, TEST_FAMILIES, DaemonTest

PROBLEM = "b1.h1.q64.d64.f16"

EXPECTED = {
    "hang_opencl": "TIMEOUT",
    "crash_opencl": "CRASHED",
    "out_of_bounds_opencl": "OUT_OF_BOUNDS",
    "wrong_rows_opencl": "WRONG_RESULT",
    "nan_rows_opencl": "WRONG_RESULT",
    "compile_error_opencl": "COMPILE_ERROR",
    "stale_output_opencl": "WRONG_RESULT",  # the two runs start from different poisons
    "late_write_opencl": "WRONG_RESULT",
    "leaves_scratch_opencl": "OUT_OF_BOUNDS",
    "changes_inputs_opencl": "OUT_OF_BOUNDS",
    "nondeterministic_opencl": "UNSTABLE",
}

# Right whenever they are checked. So small a problem is run often enough to be timed, however busy the host.
SMALL_PROBLEM = "b1.h1.q16.d16.f16"
EXPECTED_WHEN_TIMED = {
    "changes_inputs_timed_opencl": "OUT_OF_BOUNDS",
    "recognizes_poison_opencl": "WRONG_RESULT",
    "counts_runs_opencl": "WRONG_RESULT",
    "keeps_output_opencl": "WRONG_RESULT",
    "caches_results_opencl": "WRONG_RESULT",
    "recognizes_pointers_opencl": "WRONG_RESULT",
    "skips_runs_opencl": "WRONG_RESULT",
}


EVENTS = re.compile(r"^(\S+)Z \w+ (?:(worker lost|worker started) worker=\"device|(promoted) )", re.MULTILINE)


class AdversarialTest(DaemonTest):
    def test_every_bad_variant_gets_its_verdict_and_harms_nothing_else(self):
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES], flags=["--trial_timeout=8s"])
        stop, answered, failed = threading.Event(), [], []

        def ask():
            while not stop.is_set():
                result = daemon.attune("best", PROBLEM, check=False)
                (answered if result.returncode == 0 else failed).append(result)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            families = [argument for name in EXPECTED for argument in ("--family", name)]
            daemon.attune("tune", PROBLEM, "--strategy=exhaustive", *families, check=False)
        finally:
            stop.set()
            asking.join()
        trials = daemon.trials(PROBLEM)
        for name, expected in EXPECTED.items():
            verdicts = {(t["parameters"]["BAD"], t["verdict"]) for t in trials if t["family"] == name}
            self.assertEqual(verdicts, {(0, "OK"), (1, expected)}, f"{name}\n{daemon.log}")
        self.assertEqual(failed, [])
        self.assertGreater(len(answered), 3)
        best = daemon.json("best", PROBLEM)[0]
        self.assertEqual(best["parameters"]["BAD"], 0)
        daemon.stop()

    def test_a_variant_that_misbehaves_only_when_timed_is_blamed_and_those_after_it_are_not(self):
        # One compile worker hands the variants on in the order of the manifests, the bad ones first.
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES], flags=["--compile_workers=1"])
        families = [argument for name in EXPECTED_WHEN_TIMED for argument in ("--family", name)]
        daemon.attune("tune", SMALL_PROBLEM, "--strategy=exhaustive", *families, check=False)
        for name, expected in EXPECTED_WHEN_TIMED.items():
            trials = {t["parameters"]["BAD"]: t for t in daemon.trials(SMALL_PROBLEM) if t["family"] == name}
            self.assertEqual(trials[1]["verdict"], expected, f"{trials[1]}\n{daemon.log}")
            self.assertIn("while it was timed: ", trials[1]["detail"])
            self.assertEqual(trials[0]["verdict"], "OK", f"{trials[0]}\n{daemon.log}")
            number = {bad: int(t["trial"].removeprefix("trials/")) for bad, t in trials.items()}
            self.assertLess(number[1], number[0])
        self.assertEqual(daemon.json("best", SMALL_PROBLEM)[0]["parameters"]["BAD"], 0)
        daemon.stop()

    def test_after_a_hang_the_next_worker_soon_answers(self):
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES], flags=["--trial_timeout=8s"])
        daemon.attune("tune", SMALL_PROBLEM, "--strategy=exhaustive", "--family", "hang_opencl")
        trials = {t["parameters"]["BAD"]: t["verdict"] for t in daemon.trials(SMALL_PROBLEM)}
        self.assertEqual(trials, {0: "OK", 1: "TIMEOUT"}, daemon.log)
        events = [
            (datetime.datetime.fromisoformat(when), worker or what) for when, worker, what in EVENTS.findall(daemon.log)
        ]
        # The play-off is what the worker after the second try is asked for.
        names = [what for _, what in events]
        self.assertEqual(
            names[-5:], ["worker lost", "worker started", "worker lost", "worker started", "promoted"], daemon.log
        )
        for lost, started in (events[-5:-3], events[-3:-1]):
            self.assertLess((started[0] - lost[0]).total_seconds(), BACK_WITHIN, daemon.log)
        daemon.stop()

    def test_a_variant_that_is_seldom_wrong_is_not_served_though_it_is_the_fastest(self):
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES])
        daemon.attune("tune", SMALL_PROBLEM, "--family", "rarely_wrong_opencl")
        seldom = [t for t in daemon.trials(SMALL_PROBLEM) if t["parameters"].get("BAD") == 1]
        self.assertIn("WRONG_RESULT", [t["verdict"] for t in seldom], daemon.log)
        self.assertEqual(daemon.json("best", SMALL_PROBLEM)[0]["parameters"]["BAD"], 0)
        daemon.stop()

    def test_a_quarantined_variant_is_not_tried_again(self):
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES], flags=["--trial_timeout=8s"])
        for _ in range(2):
            daemon.attune("tune", PROBLEM, "--family", "crash_opencl", "--family", "compile_error_opencl")
        self.assertNoneAgain(daemon.trials(PROBLEM))
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
