"""What the league computes without Kernel Tuner: runs, losses, verdicts, tables."""

import argparse
import contextlib
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kernel_tuner_league
import kernel_tuner_runs
import league_plot
import league_report
from league_report import Space

SPACE = Space("p", 100, 10.0, 40.0)  # the criterion looks at 10 trials, a small share are 5


def run(strategy="guided", seed=1, improvements=((1, 10.0),), budget=0.1, problem="p", trials=10, device="a card"):
    return {"device": device, "problem": problem, "strategy": strategy, "budget": budget, "seed": seed,
            "trials": trials, "improvements": [list(each) for each in improvements]}  # fmt: skip


class Loss(unittest.TestCase):
    def test_is_nothing_where_the_first_trial_is_the_optimum(self):
        self.assertEqual(league_report.loss(run(), SPACE), 0)

    def test_is_the_mean_over_the_first_tenth(self):
        improvements = [(3, 20.0), (8, 10.0)]  # 2 trials of 40 us, 5 of 20, 3 of 10
        expected = (2 * math.log(4) + 5 * math.log(2)) / 10
        self.assertAlmostEqual(league_report.loss(run(improvements=improvements), SPACE), expected)

    def test_what_comes_later_does_not_count(self):
        early, late = run(improvements=[(1, 20.0)]), run(improvements=[(1, 20.0), (11, 10.0)])
        self.assertEqual(league_report.loss(early, SPACE), league_report.loss(late, SPACE))

    def test_a_run_without_a_time_is_as_slow_as_the_slowest(self):
        self.assertAlmostEqual(league_report.loss(run(improvements=[]), SPACE), math.log(4))


class TrialsTo(unittest.TestCase):
    def test_counts_from_the_first_that_is_near_enough(self):
        one = run(improvements=[(2, 10.5), (6, 10.2), (9, 10.0)])
        self.assertEqual([league_report.trials_to(one, SPACE, share) for share in (0.05, 0.02, 0.01)], [2, 6, 9])
        self.assertIsNone(league_report.trials_to(run(improvements=[(2, 11.0)]), SPACE, 0.05))

    def test_a_quantile_beyond_the_budget_is_none(self):
        self.assertEqual(league_report.quantile([5, None, 3], 0.5), 5)
        self.assertIsNone(league_report.quantile([5, None, 3], 0.95))

    def test_near_early_counts_the_first_twentieth(self):
        runs = [run(improvements=[(5, 10.2)]), run(improvements=[(6, 10.2)]), run(improvements=[(1, 10.3)])]
        self.assertAlmostEqual(league_report.near_early(runs, SPACE), 1 / 3)


class Verdict(unittest.TestCase):
    def test_needs_a_difference_that_seeds_do_not_explain(self):
        low, high = [0.10, 0.11, 0.12] * 5, [0.20, 0.21, 0.22] * 5
        self.assertEqual(league_report.verdict(low, high), "BEATS")
        self.assertEqual(league_report.verdict(high, low), "LOSES")
        self.assertEqual(league_report.verdict(low, low), "NO DIFFERENCE")
        self.assertEqual(league_report.verdict([0.1, 0.5] * 5, [0.2, 0.45] * 5), "NO DIFFERENCE")


class Rows(unittest.TestCase):
    def runs(self):
        fast, slow = [(1, 12.0), (2, 10.0)], [(1, 40.0), (9, 10.0)]
        return [run(name, seed, improvements) for seed in range(1, 9)
                for name, improvements in (("guided", fast), ("mls", slow))]  # fmt: skip

    def test_each_strategy_has_a_row_and_the_best_comes_first(self):
        rows = league_report.rows(self.runs(), [SPACE])
        self.assertEqual([(row["strategy"], row["guided"]) for row in rows], [("guided", ""), ("mls", "BEATS")])
        self.assertEqual(rows[1]["trials"], [(9, 9)] * 3)

    def test_the_criterion_is_of_the_least_budget_and_trials_of_the_greatest(self):
        longer = [run("mls", seed, [(1, 40.0), (15, 10.0)], budget=0.25, trials=25) for seed in range(1, 9)]
        row = next(row for row in league_report.rows(self.runs() + longer, [SPACE]) if row["strategy"] == "mls")
        self.assertEqual(row["trials"][0], (15, 15))
        self.assertAlmostEqual(row["loss"], 0.8 * math.log(4))

    def test_the_report_parts_problems_that_settings_were_chosen_on(self):
        rows = league_report.rows(self.runs(), [SPACE])
        unable = [{"problem": "p", "strategy": "skopt", "budget": 0.1, "why": "TimeoutError: no end after 60 s"}]
        text = league_report.report(rows, {"p"}, unable)
        self.assertIn("### Its settings were chosen on these: 1 problems", text)
        self.assertNotIn("were not chosen", text)
        self.assertIn("| mls | 1 | 0 | 0 |", text)
        self.assertIn("- `skopt` is left out of p (10 %): TimeoutError: no end after 60 s", text)
        self.assertIn("### Its settings were not chosen on these: 1 problems", league_report.report(rows, set(), []))

    def test_what_guided_did_not_play_is_left_out(self):
        self.assertEqual(league_report.rows([run("mls")], [SPACE]), [])


class Curve(unittest.TestCase):
    def test_is_the_median_over_runs_of_the_best_so_far(self):
        runs = [run(improvements=[(1, 20.0), (3, 10.0)]), run(improvements=[(2, 10.0)]), run(improvements=[(1, 15.0)])]
        self.assertEqual(league_plot.median_curve(runs, SPACE, 3), [2.0, 1.5, 1.0])

    def test_draws_ours_and_the_best_of_the_others(self):
        table = [{"problem": problem, "strategy": name} for problem in "pq" for name in "abcdef"]
        self.assertEqual([name for name in league_plot.drawn(table) if name not in league_plot.OURS], list("abcd"))


class Runs(unittest.TestCase):
    def test_a_failure_costs_a_trial(self):
        times = {"1": None, "2": 9.0, "3": 11.0, "4": 7.0}
        self.assertEqual(kernel_tuner_runs.improvements(["1", "2", "3", "4"], times), [[2, 9.0], [4, 7.0]])

    def test_a_beginning_that_no_variant_has_is_not_allowed(self):
        projections = kernel_tuner_runs.Projections({(1, 5, 7), (1, 6, 8)})
        self.assertTrue(projections.allow((0, 1), [1, 6]))
        self.assertFalse(projections.allow((1, 2), [5, 8]))
        self.assertFalse(projections.allow((0, 1, 2), [1, 5, 8]))

    def test_a_budget_is_a_share_of_the_space_and_at_least_a_trial(self):
        self.assertEqual(kernel_tuner_runs.trials_of(0.1, 598), 60)
        self.assertEqual(kernel_tuner_runs.trials_of(0.1, 4), 1)

    def test_what_does_not_end_is_stopped(self):
        with self.assertRaisesRegex(TimeoutError, "no end after 0.05 s"), kernel_tuner_runs.within(0.05):
            while True:
                pass

    def test_ours_are_cut_to_each_budget(self):
        lines = ["space,strategy,seed,trial,best_us", "p,guided,1,1,12", "p,guided,1,15,10"]
        runs = kernel_tuner_league.our_runs(lines, [SPACE], [0.1, 0.25], 1)
        guided = {one["budget"]: one["improvements"] for one in runs if one["strategy"] == "guided"}
        self.assertEqual(guided, {0.1: [[1, 12.0]], 0.25: [[1, 12.0], [15, 10.0]]})

    def test_a_cache_file_says_what_its_space_is(self):
        cache = {"problem": "p", "device_name": "a card", "kernel_name": "k", "problem_size": [1, 2, 3],
                 "tune_params_keys": ["A"], "tune_params": {"A": [1, 2, 3]},
                 "cache": {"1": {"A": 1, "time": 0.5}, "2": {"A": 2, "time": 0.25},
                           "3": {"A": 3, "__error__": "RuntimeFailedConfig"}}}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.json"
            path.write_text(json.dumps(cache))
            self.assertEqual(kernel_tuner_league.space_of(path), Space("p", 3, 250.0, 500.0))
            space = kernel_tuner_runs.Space(path)
        self.assertEqual(space.device, "a card")
        self.assertEqual(space.times, {"1": 500.0, "2": 250.0, "3": None})
        self.assertEqual(space.feasible, {(1,), (2,), (3,)})


class Resumption(unittest.TestCase):
    """Calls of the league with one directory. `played`: (device, strategy, seed) of the runs that were made."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="league-test-")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        self.played = []
        self.too_slow = set()  # strategies

    def call(self, strategies, seeds=1, device="a card", most_seconds=60):
        def run_of(space, strategy, budget, seed, most_s):
            if strategy in self.too_slow:
                raise kernel_tuner_runs.Unable(f"TimeoutError: no end after {most_s} s")
            self.played.append((space.device, strategy, seed))
            return run(strategy, seed, device=space.device)

        space = argparse.Namespace(problem="p", device=device)
        options = argparse.Namespace(budgets=[0.1], seeds=seeds, most_seconds=most_seconds)
        with mock.patch.object(kernel_tuner_runs, "run_of", run_of):
            return kernel_tuner_league.run_kernel_tuner({"p": space}, strategies, options, self.out)

    def runs(self):
        return kernel_tuner_league.read_runs(self.out / "kernel_tuner.jsonl")

    def test_a_second_call_goes_on_where_the_first_was_stopped(self):
        (self.out / "kernel_tuner.jsonl").write_text(json.dumps(run("mls")) + '\n{"problem": "p", "stra')
        self.call(["mls", "pso"], seeds=2)
        self.assertEqual(self.played, [("a card", "pso", 1), ("a card", "mls", 2), ("a card", "pso", 2)])
        self.assertEqual([(each["strategy"], each["seed"]) for each in self.runs()],
                         [("mls", 1), ("pso", 1), ("mls", 2), ("pso", 2)])  # fmt: skip

    def test_runs_on_another_devices_recording_are_others(self):
        self.call(["mls"])
        self.call(["mls"], device="another")
        self.call(["mls"], device="another")
        self.assertEqual(self.played, [("a card", "mls", 1), ("another", "mls", 1)])

    def test_what_was_too_slow_is_tried_again_when_it_may_take_longer(self):
        self.too_slow = {"skopt"}
        self.assertEqual([each["most_seconds"] for each in self.call(["skopt"], most_seconds=20)], [20])
        self.too_slow = set()
        self.assertEqual(len(self.call(["skopt"], most_seconds=10)), 1)
        self.assertEqual(self.played, [])
        self.assertEqual(self.call(["skopt"], most_seconds=60), [])
        self.assertEqual(self.played, [("a card", "skopt", 1)])


class Export(unittest.TestCase):
    def test_two_recordings_of_one_problem_are_refused(self):
        lines = "p: 5 variants of k\nq: 5 variants of k\np: 6 variants of k\n"
        exported = subprocess.CompletedProcess([], 0, stdout=lines)
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(subprocess, "run", return_value=exported):
            options = kernel_tuner_league.parse(["--out", folder, "h100/p.rec", "h100/q.rec", "h200/p.rec"])
            with self.assertRaisesRegex(SystemExit, "p is in several of the recordings"):
                kernel_tuner_league.export(options, options.out)


class Main(unittest.TestCase):
    def test_linear_algebra_is_on_one_core_before_it_is_imported(self):
        without = mock.patch.dict(sys.modules, {"kernel_tuner": None})
        with mock.patch.dict(os.environ), without, self.assertRaisesRegex(SystemExit, "needs Kernel Tuner"):
            os.environ.pop("OMP_NUM_THREADS", None)
            try:
                kernel_tuner_league.main(["--out", "out", "a.rec"])
            finally:
                self.assertEqual(os.environ.get("OMP_NUM_THREADS"), "1")


class Options(unittest.TestCase):
    def refused(self, *arguments):
        text = io.StringIO()
        with contextlib.redirect_stderr(text), self.assertRaises(SystemExit):
            kernel_tuner_league.parse(["--out", "out", "a.rec", *arguments])
        return text.getvalue()

    def test_mistakes_are_named(self):
        self.assertIn("--strategies has 'annealing'; allowed: random_sample, ", self.refused("--strategies=annealing"))
        self.assertIn("--seeds is 0; it must be at least 1", self.refused("--seeds=0"))
        self.assertIn("--budgets: one must be at least 0.1", self.refused("--budgets=0.05"))
        self.assertIn("--budgets must be shares", self.refused("--budgets=2"))

    def test_the_problems_that_settings_were_chosen_on_are_recorded(self):
        names = kernel_tuner_league.named(kernel_tuner_league.CHOSEN)
        folder = kernel_tuner_league.HERE
        recorded = {path.stem for path in [*folder.glob("*.rec"), *folder.glob("*/*.rec")]}
        self.assertTrue(names)
        self.assertEqual(set(names) - recorded, set())


if __name__ == "__main__":
    unittest.main()
