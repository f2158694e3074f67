"""Tuning for real: compiled, checked, timed, stored, served; and again after a restart."""

import shutil
import unittest

from harness import KERNELS, DaemonTest, holds, wait_until, without_opencl

PROBLEM = "b1.h1.q64.d64.f16"
SAMPLE = ("--strategy=random", "--max-trials=4", "--seed=7")


class TuneTest(DaemonTest):
    def test_a_tuned_problem_is_served_with_its_proof(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        trials = daemon.trials(PROBLEM)
        self.assertEqual(len(trials), 4)
        self.assertEqual({t["verdict"] for t in trials}, {"OK"})
        for trial in trials:
            self.assertGreater(trial["latency_ms"], 0)
            # |out - ref| <= 1e-3 + 1e-3 |ref|, and nothing in the outputs exceeds a few units.
            self.assertLess(trial["max_abs_error"], 5e-3)
        best = daemon.json("best", PROBLEM)[0]
        self.assertIn(best["provenance"], ("EXACT", "TIE"))
        self.assertIn(best["variant"], {t["variant"] for t in trials})
        artifact = self.directory / "artifact"
        daemon.attune("best", PROBLEM, "--artifact", str(artifact))
        self.assertGreater(artifact.stat().st_size, 0)
        daemon.stop()

    def test_a_restarted_daemon_serves_the_same_and_tries_nothing_twice(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        best = daemon.json("best", PROBLEM)[0]
        before = daemon.trials(PROBLEM)
        daemon.stop()
        daemon.start()
        self.assertEqual(daemon.json("best", PROBLEM)[0]["variant"], best["variant"])
        daemon.attune("tune", PROBLEM, *SAMPLE)
        # The play-off re-times known variants; it appends no trial of its own.
        after = daemon.trials(PROBLEM)
        self.assertNoneAgain(after)
        self.assertLessEqual(len(after) - len(before), sum(not holds(trial) for trial in before))
        daemon.stop()

    def test_a_guided_tuning_says_how_good_its_best_is_and_goes_on_from_what_is_known(self):
        daemon = self.daemon()
        guided = ("--strategy=guided", "--effort=quick", "--seed=7", "--max-trials=12")
        claim = daemon.json("tune", PROBLEM, *guided)[-1]["claim"]
        self.assertEqual(len(daemon.trials(PROBLEM)), 12)
        self.assertEqual(claim["within"], 0.02)
        self.assertEqual(claim["tried"], 12)
        self.assertGreater(claim["variants"], 12)
        self.assertEqual(daemon.json("best", PROBLEM)[0]["claim"], claim)
        # Known trials cost none of the next one's budget, and none is made twice.
        daemon.attune("tune", PROBLEM, *guided)
        self.assertEqual(len(daemon.trials(PROBLEM)), 24)
        self.assertNoneAgain(daemon.trials(PROBLEM))
        # A near problem's search begins with what this one has found.
        daemon.attune("tune", "b1.h1.q80.d64.f16", "--strategy=evolution", "--max-trials=6")
        self.assertEqual(len(daemon.trials("b1.h1.q80.d64.f16")), 6)
        daemon.stop()

    def test_a_changed_source_makes_the_answer_stale_and_not_gone(self):
        kernels = self.directory / "kernels"
        shutil.copytree(KERNELS, kernels)
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE, kernels=[kernels])
        self.assertIn(daemon.json("best", PROBLEM)[0]["provenance"], ("EXACT", "TIE"))
        daemon.stop()
        family = "attention_opencl"
        source = next((kernels / family).glob("*.cl"))
        source.write_text(source.read_text() + "\n// changed\n")
        daemon.start()
        best = daemon.json("best", PROBLEM)[0]
        self.assertEqual(best["provenance"], "STALE")
        self.assertIn(family, best["provenance_detail"])
        daemon.stop()

    def test_a_problem_never_tuned_gets_the_nearest_or_a_guess(self):
        daemon = self.daemon()
        self.assertEqual(daemon.json("best", PROBLEM)[0]["provenance"], "HEURISTIC")
        daemon.attune("tune", PROBLEM, *SAMPLE)
        nearest = daemon.json("best", "b1.h1.q80.d64.f16")[0]
        self.assertEqual(nearest["provenance"], "NEAREST")
        daemon.stop()

    def test_sequences_of_their_own_lengths_pages_and_8_bit_keys_are_tuned_and_served(self):
        daemon = self.daemon()
        needed = {
            "b2.h4.kvh2.q30.kv50.d64.f16.causal-br.sinks.varlen.lse": {"SINKS", "Q_BOUNDS", "KV_BOUNDS"},
            "b2.h4.kvh2.q30.kv50.d64.f16.page16": {"KV_LENGTHS", "PAGE_TABLE"},
            "b2.h4.kvh2.q30.kv50.d64.f16.varlen.page16": {"Q_BOUNDS", "KV_LENGTHS", "PAGE_TABLE"},
            "b2.h4.kvh2.q30.kv50.d64.f16.kve4m3": {"K_SCALE", "V_SCALE"},
            "b2.h4.kvh2.q30.kv50.d64.f16.kve5m2": {"K_SCALE", "V_SCALE"},
        }
        for problem, roles in needed.items():
            # Of its own kind nothing has been tuned yet: what was tuned for the others is not near.
            self.assertEqual(daemon.json("best", problem)[0]["provenance"], "HEURISTIC")
            daemon.attune("tune", problem, *SAMPLE)
            self.assertEqual({t["verdict"] for t in daemon.trials(problem)}, {"OK"})
            best = daemon.json("best", problem)[0]
            self.assertEqual(best["problem"], problem)
            self.assertIn(best["provenance"], ("EXACT", "TIE"))
            bound = {arg.get("buffer") for launch in best["recipe"]["launches"] for arg in launch["args"]}
            self.assertLessEqual(roles, bound)
        daemon.stop()

    def test_identical_requests_in_flight_are_joined(self):
        daemon = self.daemon()
        first = daemon.json("tune", PROBLEM, "--detach")[0]["operation"]
        second = daemon.json("tune", PROBLEM, "--detach")[0]["operation"]
        self.assertEqual(first, second)
        daemon.attune("cancel", first)
        daemon.stop()

    def test_a_cancelled_job_keeps_its_trials(self):
        daemon = self.daemon()
        name = daemon.json("tune", PROBLEM, "--detach")[0]["operation"]
        wait_until("a first trial", lambda: daemon.trials(PROBLEM))
        daemon.attune("cancel", name)

        def state():
            return next(j for j in daemon.json("jobs", "--limit", "0") if j["operation"] == name)["state"]

        wait_until("the job to end", lambda: state() != "RUNNING")
        self.assertEqual(state(), "CANCELLED")
        self.assertTrue(daemon.trials(PROBLEM))
        daemon.stop()

    def test_without_any_device_stored_answers_are_served_and_the_reason_is_told(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        tuned = daemon.json("best", PROBLEM)[0]
        daemon.stop()
        daemon.start(environment=without_opencl(self.directory))
        devices = daemon.attune("devices").stdout
        self.assertIn("libcuda", devices)
        best = daemon.json("best", PROBLEM, "--device", tuned["device"])[0]
        self.assertEqual(best["variant"], tuned["variant"])
        refused = daemon.attune("tune", PROBLEM, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(len(refused.stderr.strip().splitlines()), 1)
        self.assertIn("no device", refused.stderr)
        daemon.stop()

    def test_a_drain_leaves_the_job_to_the_next_start(self):
        daemon = self.daemon()
        name = daemon.json("tune", PROBLEM, "--detach", *SAMPLE)[0]["operation"]
        wait_until("a first trial", lambda: daemon.trials(PROBLEM))
        daemon.stop()
        daemon.start()
        daemon.attune("watch", name)
        trials = daemon.trials(PROBLEM)
        self.assertNoneAgain(trials)
        self.assertEqual(len({trial["variant"] for trial in trials}), 4)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
