"""Two cards in one daemon, on PoCL: of one class (two of a driver) they share code, verdicts and answers, and no times;
of two classes (two drivers) they share nothing but the daemon."""

import shutil
import unittest

from harness import KERNELS, TEST_FAMILIES, DaemonTest, holds

PROBLEM = "b1.h1.q32.d32.f16"
BUDGET = ("--strategy=random", "--max-trials=6", "--seed=3")


class TwoCardsTest(DaemonTest):
    def start(self, drivers, families=()):
        kernels = [KERNELS]
        if families:
            directory = self.directory / "families"
            for name in ("common", *families):
                shutil.copytree(TEST_FAMILIES / name, directory / name)
            kernels.append(directory)
        # On a busy machine PoCL may take long for a trial.
        daemon = self.daemon(kernels=kernels, flags=["--trial_timeout=10m"], start=False)
        return daemon.start(environment={"POCL_DEVICES": drivers})

    def tune(self, daemon, device, *arguments):
        result = daemon.json("--device", device, "tune", PROBLEM, *arguments)[-1]
        self.assertEqual(result["type"], "tuning", daemon.log)
        return result

    def trials(self, daemon, device):
        return {t["variant"]: t for t in daemon.trials(PROBLEM, "--device", device)}

    def test_a_second_card_of_a_class(self):
        daemon = self.start("pthread pthread", families=["compile_error_opencl"])
        devices = [line for line in daemon.json("devices") if line["type"] == "device"]
        self.assertEqual(
            [(d["device"], d["class"]) for d in devices], [("opencl:0", "pthread"), ("opencl:1", "pthread")]
        )

        self.tune(daemon, "opencl:0", "--family=attention_opencl", *BUDGET)
        self.tune(daemon, "opencl:0", "--family=compile_error_opencl")
        on_first = self.trials(daemon, "opencl:0")
        failed = {variant for variant, trial in on_first.items() if trial["verdict"] != "OK"}
        self.assertTrue(failed)

        # Its sister's winner, at once.
        own = daemon.json("--device", "opencl:0", "best", PROBLEM)[0]
        self.assertNotIn("timed on", own["provenance_detail"] or "")
        answer = daemon.json("--device", "opencl:1", "best", PROBLEM)[0]
        self.assertEqual(answer["variant"], own["variant"])
        self.assertEqual(answer["provenance"], own["provenance"])
        self.assertIn(answer["provenance"], ("EXACT", "TIE"))
        self.assertEqual(answer["device"], "opencl:1")
        self.assertIn("timed on opencl:0, another pthread", answer["provenance_detail"])

        # Nothing is compiled or fails again; everything is timed again.
        self.tune(daemon, "opencl:1", "--family=attention_opencl", *BUDGET)
        self.tune(daemon, "opencl:1", "--family=compile_error_opencl")
        on_second = self.trials(daemon, "opencl:1")
        self.assertFalse(failed & set(on_second), "a bad verdict was tried again")
        again = set(on_first) & set(on_second)
        self.assertIn(own["variant"], again)
        for variant in again:
            self.assertIsNone(on_second[variant]["compile_ms"], variant)
            self.assertNotEqual(on_second[variant]["trial"], on_first[variant]["trial"])

        # One incumbent for both.
        served = daemon.json("--device", "pthread", "summary")
        self.assertEqual(len(served), 1, served)
        daemon.stop()

    def test_a_tuning_is_shared_by_the_cards_of_a_class(self):
        daemon = self.start("pthread pthread")
        shared = ("--cards=2", "--family=attention_opencl", "--strategy=random", "--max-trials=12", "--seed=3")
        result = self.tune(daemon, "pthread", *shared)
        self.assertEqual([card["device"] for card in result["cards"]], ["opencl:0", "opencl:1"])
        self.assertEqual(sum(card["trials"] for card in result["cards"]), 12, result["cards"])
        self.assertEqual([card["lost"] for card in result["cards"]], [None, None])
        on_first, on_second = self.trials(daemon, "opencl:0"), self.trials(daemon, "opencl:1")
        self.assertEqual(len(set(on_first) | set(on_second)), 12)
        self.assertGreater(len(on_second), 0)
        # One card decides, and has a trial of what it decides on.
        self.assertEqual(result["incumbent"]["device"], "opencl:0")
        self.assertIn(result["winner"]["variant"], on_first)
        self.assertEqual({trial["device"] for trial in result["play_off"]}, {"opencl:0"})
        # Each variant was compiled once.
        compiled = [t for t in daemon.json("trials", "--limit", "0") if t["compile_ms"]]
        self.assertEqual(len({t["variant"] for t in compiled}), len(compiled))
        # Nothing that either has tried is tried again, but for times that were disturbed.
        again = self.tune(daemon, "pthread", *shared)
        disturbed = sum(not holds(trial) for trial in (*on_first.values(), *on_second.values()))
        self.assertLessEqual(sum(card["trials"] for card in again["cards"]), disturbed)
        for card in ("opencl:0", "opencl:1"):
            self.assertNoneAgain(daemon.json("--device", card, "trials", "--limit", "0"))

        refused = daemon.attune("--device", "opencl:1", "tune", PROBLEM, "--cards=2", check=False)
        self.assertIn("cards is 2, and device_id 'opencl:1' names one card; allowed: 1", refused.stderr)
        refused = daemon.attune("tune", PROBLEM, "--cards=3", check=False)
        self.assertIn("cards is 3; allowed: 1 to 2, the cards of class 'pthread' here", refused.stderr)
        daemon.stop()

    def test_work_for_a_class_goes_to_its_cards(self):
        daemon = self.start("pthread pthread")
        jobs = [
            daemon.json("--device", "pthread", "tune", f"b1.h1.q{q}.d32.f16", "--detach", *BUDGET)[0] for q in (32, 64)
        ]
        titles = {job["title"].rsplit(" on ", 1)[1] for job in daemon.json("jobs", "--limit", "0")}
        self.assertEqual(titles, {"opencl:0", "opencl:1"})
        for job in jobs:
            self.assertEqual(daemon.json("watch", job["operation"])[-1]["type"], "tuning", daemon.log)
        daemon.stop()

    def test_a_sweep_is_shared_by_the_cards_of_a_class(self):
        daemon = self.start("pthread pthread")
        plan = self.directory / "plan.textproto"
        plan.write_text(
            "shapes { product { batch: 1 heads_q: [1, 2] seq_q: [16, 32] head_dim: 32 } }"
            " budget { trials_per_problem: 2 }"
        )
        first = daemon.json("--device", "pthread", "sweep", str(plan))[-1]
        self.assertEqual(first["device"], "opencl:0,opencl:1")
        self.assertEqual([row["outcome"] for row in first["rows"]], ["NEW"] * 4, first)
        self.assertEqual({row["device"] for row in first["rows"]}, {"opencl:0", "opencl:1"})
        trials = daemon.json("trials", "--limit", "0")
        tried = [(t["problem"], t["variant"]) for t in trials]
        self.assertEqual(sorted(tried), sorted(set(tried)), "a problem was tuned on both cards")

        # Its problems are jobs, listed under it alone.
        [sweep] = daemon.json("jobs")
        problems = daemon.json("jobs", "--sweep", sweep["operation"])
        self.assertEqual(
            {(p["problem"], p["device"], p["parent"]) for p in problems},
            {(row["problem"], row["device"], sweep["operation"]) for row in first["rows"]},
        )
        self.assertEqual(len(daemon.json("trials", "--job", sweep["operation"])), first["trials"])

        # Times are compared with the same card's.
        dry = daemon.json("--device", "all", "sweep", str(plan), "--dry-run")[0]
        self.assertEqual([row["device"] for row in dry["rows"]], [row["device"] for row in first["rows"]])
        second = daemon.json("--device", "all", "sweep", str(plan), check=False)[-1]
        self.assertEqual([row["device"] for row in second["rows"]], [row["device"] for row in first["rows"]])
        disturbed = sum(not holds(trial) for trial in trials)
        self.assertLessEqual(second["compiles"], disturbed)
        self.assertLessEqual(second["trials"], disturbed)
        self.assertNoneAgain(daemon.json("trials", "--limit", "0"), after=second)
        daemon.stop()

    def test_two_classes_do_not_mix(self):
        daemon = self.start("basic pthread")
        devices = [line for line in daemon.json("devices") if line["type"] == "device"]
        self.assertEqual([d["class"] for d in devices], ["basic", "pthread"])
        self.tune(daemon, "pthread", *BUDGET)
        answer = daemon.json("--device", "opencl:1", "best", PROBLEM)[0]
        self.assertIn(answer["provenance"], ("EXACT", "TIE"))
        self.assertNotIn("timed on", answer["provenance_detail"] or "")
        # The other class knows nothing of it.
        self.assertEqual(daemon.json("--device", "basic", "best", PROBLEM)[0]["provenance"], "HEURISTIC")
        self.assertEqual(daemon.json("--device", "basic", "preflight", PROBLEM)[0]["families"][0]["known"], 0)
        self.assertEqual(daemon.json("--device", "basic", "summary"), [])
        self.assertEqual(len(daemon.json("--device", "pthread", "summary")), 1)
        refused = daemon.attune("--device", "l4", "tune", PROBLEM, check=False)
        self.assertIn("available devices: opencl:0 (basic), opencl:1 (pthread)", refused.stderr)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
