"""What the league computes without Kernel Tuner: runs, losses, verdicts, tables."""

import contextlib
import io
import json
import math
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kernel_tuner_league
import kernel_tuner_runs
import league_plot
import league_report
from league_report import Space

SPACE = Space("p", 100, 10.0, 40.0)  # the criterion looks at 10 trials, a small share are 5


def run(strategy="guided", seed=1, improvements=((1, 10.0),), budget=0.1, problem="p", trials=10):
    return {"problem": problem, "strategy": strategy, "budget": budget, "seed": seed, "trials": trials,
            "improvements": [list(each) for each in improvements]}  # fmt: skip


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

    def test_a_second_call_goes_on_where_the_first_was_stopped(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "runs.jsonl"
            path.write_text(json.dumps(run("mls")) + '\n{"problem": "p", "stra')
            runs = kernel_tuner_league.read_runs(path)
        self.assertEqual(len(runs), 1)
        self.assertEqual(kernel_tuner_league.wanted(runs, ["p"], ["mls", "pso"], [0.1], 2),
                         [(1, "p", "pso", 0.1), (2, "p", "mls", 0.1), (2, "p", "pso", 0.1)])  # fmt: skip

    def test_a_cache_file_says_what_its_space_is(self):
        cache = {"problem": "p", "kernel_name": "k", "problem_size": [1, 2, 3], "tune_params_keys": ["A"],
                 "tune_params": {"A": [1, 2, 3]},
                 "cache": {"1": {"A": 1, "time": 0.5}, "2": {"A": 2, "time": 0.25},
                           "3": {"A": 3, "__error__": "RuntimeFailedConfig"}}}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "p.json"
            path.write_text(json.dumps(cache))
            self.assertEqual(kernel_tuner_league.space_of(path), Space("p", 3, 250.0, 500.0))
            space = kernel_tuner_runs.Space(path)
        self.assertEqual(space.times, {"1": 500.0, "2": 250.0, "3": None})
        self.assertEqual(space.feasible, {(1,), (2,), (3,)})


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
        recorded = {path.stem for path in [*folder.glob("*.rec"), *folder.glob("h100/*.rec")]}
        self.assertTrue(names)
        self.assertEqual(set(names) - recorded, set())


if __name__ == "__main__":
    unittest.main()
