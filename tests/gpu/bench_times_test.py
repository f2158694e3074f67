"""The bench's times beside those that the daemon has stored."""

import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bench_times
from bench_times import bench_command, compare, judge, told
from grid import bench_grid
from tuning import Setup


def bench_row(us=10.0, status="right", variant="f:A=1"):
    timing = {"us": {"low": us - 0.01, "median": us, "high": us + 0.01}, "samples": 7, "runs_per_sample": 200}
    result = {"status": status, "reason": "3 elements are off", "timing": timing if status == "right" else None}
    return {"type": "row", "problem": "p", "results": {"attune": result}, "served": {"variant": variant},
            "sm_clock_mhz": 1980, "input_sets": 4}  # fmt: skip


def answer(ms=0.010, provenance="EXACT"):
    return {"provenance": provenance, "variant": "f:A=1", "latency_ms": ms, "latency_low_ms": ms, "latency_high_ms": ms,
            "cycles": 3, "sm_clock_mhz": 1965}  # fmt: skip


class Compare(unittest.TestCase):
    def test_how_far_the_bench_is_off(self):
        self.assertAlmostEqual(compare(bench_row(10.1), answer())["off"], 0.01)
        self.assertAlmostEqual(compare(bench_row(9.9), answer())["off"], -0.01)

    def test_only_what_was_tuned_right_and_the_same_is_compared(self):
        for row, of, error in (
            (bench_row(), answer(provenance="NEAREST"), "was not tuned: NEAREST"),
            (bench_row(), {}, "was not tuned: no answer"),
            (bench_row(status="wrong"), answer(), "wrong: 3 elements are off"),
            (bench_row(variant="f:A=2"), answer(), "the bench timed another variant"),
        ):
            compared = compare(row, of)
            self.assertEqual((compared["off"], compared["error"]), (None, error))
            self.assertEqual(told(compared)[0][3], error)

    def test_is_told_in_cells(self):
        cells = told(compare(bench_row(10.1), answer()))[0]
        self.assertEqual(
            cells, ["p", "10.00 [10.00, 10.00]", "10.10 [10.09, 10.11]", "+1.00 %", "4", "3", "1965", "1980"]
        )


class Judge(unittest.TestCase):
    def rows(self, within, apart):
        return [compare(bench_row(10.1), answer())] * within + [compare(bench_row(10.5), answer())] * apart

    def test_34_of_38_are_enough(self):
        sentences, misses, met = judge(self.rows(34, 4))
        self.assertTrue(met)
        self.assertIn("34 of 38 are within 2 %; at least 34", sentences[0])
        self.assertEqual(misses, ["p: +5.00 %"] * 4)

    def test_33_are_not(self):
        self.assertFalse(judge(self.rows(33, 5))[2])

    def test_what_was_not_compared_is_a_miss(self):
        sentences, misses, met = judge([compare(bench_row(), {})])
        self.assertEqual((len(sentences), misses, met), (1, ["p: was not tuned: no answer"], False))
        self.assertFalse(judge([])[2])


class Command(unittest.TestCase):
    def command(self, resume=None, **given):
        known = {"out": pathlib.Path("/o"), "problem": [], "max_time": 2, "row_time": 1, "heat_time": 0, "seconds": 1e9}
        known |= {"contestants": "attune", "tuned": False}
        setup = Setup(pathlib.Path("/b"), [pathlib.Path("/k")], ["f"], "", [])
        return bench_command(setup, types.SimpleNamespace(**known | given), pathlib.Path("/d"), resume)

    def test_times_attune_alone(self):
        command = self.command()
        self.assertIn("--contestants=attune", command)
        self.assertIn("--heat-time=3", self.command(heat_time=3))
        self.assertEqual(command[3 : 3 + len(bench_grid())], bench_grid())
        self.assertFalse([word for word in command if word.startswith(("--deadline", "--resume"))])

    def test_goes_on_with_the_problems_of_the_run(self):
        command = self.command(resume=pathlib.Path("/r.jsonl"), seconds=500)
        self.assertEqual(command[-2:], ["--deadline=500", "--resume=/r.jsonl"])
        self.assertFalse(set(command) & set(bench_grid()))

    def test_tunes_unless_that_was_done_and_without_a_limit_of_its_own(self):
        self.assertTrue({"--tune", "--max-time=2"} < set(self.command()))
        tuned = self.command(tuned=True, max_time=None)
        self.assertFalse([word for word in tuned if word.startswith(("--tune", "--max-time"))])

    def test_has_options_that_the_bench_has(self):
        source = (pathlib.Path(bench_times.ROOT) / "client/bench/attune_bench/options.py").read_text()
        words = self.command(resume=pathlib.Path("/r.jsonl"), seconds=500)
        for option in {word.partition("=")[0] for word in words if word.startswith("--")}:
            self.assertIn(f'"{option.replace("--no-", "--")}"', source)


if __name__ == "__main__":
    unittest.main()
