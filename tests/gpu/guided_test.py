"""What is said of short searches beside exhaustive ones."""

import argparse
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import guided
from grid import bench_grid
from guided import NAMED, UNSEEN, judge, lines, misses_of


def run(loss=0.0, seconds=3.0, variant="f:A=1", error=None):
    against = {"gain": {"low": None, "middle": loss, "high": None}, "answer": "UNCLEAR", "daemon": [], "play_offs": [],
               "error": None}  # fmt: skip
    return {"variant": variant, "latency_ms": 0.5, "seconds": seconds, "trials": 48, "compiles": 0, "error": error,
            "decision": "the best", "against_whole": against if variant else None}  # fmt: skip


def row(problem, error=None, **runs):
    named = {name.replace("_", "-"): each for name, each in runs.items()}
    return {"problem": problem, "variants": 900, "whole": run(variant="f:A=2"), "runs": named, "error": error}


class Judge(unittest.TestCase):
    def test_one_of_ten_unseen_may_miss(self):
        rows = [row(problem, guided_warm=run()) for problem in UNSEEN[:9]] + [row(UNSEEN[9], guided_warm=run(0.03))]
        sentences, misses, met = judge(rows)
        self.assertTrue(met)
        self.assertEqual(len(sentences), 1)
        self.assertIn("guided-warm: 9 of 10 shapes that no recording has within 2 % and 5 s; at least 9", sentences[0])
        self.assertEqual(misses, [f"guided-warm {UNSEEN[9]}: 3.0 % slower than the exhaustive winner"])

    def test_two_may_not(self):
        rows = [row(problem, guided_warm=run()) for problem in UNSEEN[:8]]
        rows += [row(problem, guided_warm=run(seconds=5.1)) for problem in UNSEEN[8:]]
        self.assertFalse(judge(rows)[2])

    def test_none_of_the_named_may(self):
        rows = [row(problem, guided_warm=run()) for problem in NAMED]
        self.assertTrue(judge(rows)[2])
        rows[0]["runs"]["guided-warm"] = run(0.03)
        self.assertFalse(judge(rows)[2])

    def test_each_run_has_its_own_aim(self):
        problem = UNSEEN[0]
        self.assertTrue(judge([row(problem, guided_warm=run(seconds=5), guided_cold=run(seconds=15))])[2])
        sentences, misses, met = judge([row(problem, guided_warm=run(), guided_cold=run(seconds=15.5))])
        self.assertFalse(met)
        self.assertEqual(misses, [f"guided-cold {problem}: 15.5 s"])
        self.assertEqual(len(sentences), 2)

    def test_a_winner_faster_than_the_exhaustive_one_misses_nothing(self):
        self.assertEqual(misses_of("guided-warm", run(-0.04)), [])

    def test_one_that_failed_or_serves_nothing_or_was_not_compared_is_a_miss(self):
        self.assertEqual(misses_of("guided-warm", run(error="ended with 6")), ["ended with 6"])
        self.assertEqual(misses_of("guided-warm", run(variant="")), ["serves nothing: the best"])
        apart = run()
        apart["against_whole"] = {"gain": None, "error": "contended"}
        self.assertEqual(misses_of("guided-warm", apart), ["not compared: contended"])

    def test_a_problem_without_an_exhaustive_winner_is_a_miss(self):
        failed = row(UNSEEN[0], error="tuned whole: ended with 6")
        self.assertEqual(judge([failed])[1:], ([f"{UNSEEN[0]}: tuned whole: ended with 6"], False))
        self.assertEqual(next(lines(failed))[-1], "tuned whole: ended with 6")

    def test_is_told_run_by_run(self):
        told = list(lines(row("p", guided_warm=run(0.031), guided_cold=run(variant="f:A=2", seconds=20))))
        self.assertEqual([cells[2] for cells in told], ["exhaustive", "guided-warm", "guided-cold"])
        self.assertEqual(told[1][-2:], ["+3.10 % UNCLEAR", "3.1 % slower than the exhaustive winner"])
        self.assertEqual(told[2][-2:], ["one variant", "20.0 s"])


class Shapes(unittest.TestCase):
    def test_the_unseen_are_ten_that_are_neither_in_the_bench_nor_named(self):
        self.assertEqual(len(set(UNSEEN)), 10)
        self.assertFalse(set(UNSEEN) & {*bench_grid(), *NAMED})


class Options(unittest.TestCase):
    def test_runs_are_a_search_and_a_store(self):
        self.assertEqual(guided.runs_of("guided-warm,default-cold"), ["guided-warm", "default-cold"])
        with self.assertRaisesRegex(
            argparse.ArgumentTypeError, "'guided' is not known; it must be one of guided-warm, "
        ):
            guided.runs_of("guided")

    def test_the_default_gets_no_option(self):
        self.assertEqual(guided.seed_of("default", 1) + guided.SEARCHES["default"], [])


if __name__ == "__main__":
    unittest.main()
