"""What is said of problems that were tuned twice, and a report that goes on from an earlier one."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import problem_report
import repeatability
from repeatability import cells, error_of, judge, search_of
from tuning import INCOMPLETE


def compared(middle, answer="UNCLEAR", error=None):
    gain = None if error else {"low": middle - 0.001, "middle": middle, "high": middle + 0.001}
    return {"gain": gain, "answer": answer, "daemon": ["UNCLEAR"], "play_offs": [], "error": error}


def tuned(variant="f:A=1", error=None):
    return {"variant": variant, "latency_ms": 0.5, "seconds": 3.0, "error": error, "decision": "the best"}


def row(problem="p", middle=0.0, flip=None, **fields):
    known = {
        "problem": problem, "variants": 300, "search": ["--strategy=guided", "--effort=quick"], "first": tuned(),
        "again": tuned(), "second": tuned("f:A=2"), "winners": compared(middle), "flip": flip, "error": None,
    }  # fmt: skip
    made = known | fields
    return made | {"error": error_of(made)}


class Judge(unittest.TestCase):
    def test_one_of_twenty_may_be_apart(self):
        rows = [row(f"p{i}", 0.009) for i in range(19)] + [row("apart", -0.02)]
        sentences, misses, met = judge(rows)
        self.assertTrue(met)
        self.assertIn("19 of 20 pairs of winners are within 1 %, at least 19", sentences[0])
        self.assertEqual(misses, ["apart: -2.00 % [-2.10, -1.90] UNCLEAR"])

    def test_two_of_twenty_may_not(self):
        rows = [row(f"p{i}") for i in range(18)] + [row("a", 0.02), row("b", -0.011)]
        self.assertFalse(judge(rows)[2])

    def test_of_fewer_none_may_be(self):
        self.assertTrue(judge([row()])[2])
        self.assertFalse(judge([row(), row("q", 0.02)])[2])

    def test_a_change_between_ties_or_to_a_slower_one_is_a_flip(self):
        for answer, met in (("SAME", False), ("SLOWER", False), ("FASTER", True), ("UNCLEAR", True)):
            sentences, misses, found = judge([row(flip=compared(0.0, answer))])
            self.assertEqual(found, met, answer)
            self.assertEqual(len(misses), 0 if met else 1)
            self.assertIn("1 serve another variant", sentences[1])

    def test_what_could_not_be_measured_is_a_miss(self):
        for broken in (
            row(first=tuned(error="ended with 6")),
            row(second=tuned(variant="")),
            row(winners=compared(0.0, error="no server")),
            row(flip=compared(0.0, error="contended")),
        ):
            _, misses, met = judge([broken])
            self.assertFalse(met)
            self.assertEqual(len(misses), 1)
            self.assertTrue(cells(broken))

    def test_nothing_measured_meets_nothing(self):
        self.assertFalse(judge([])[2])

    def test_small_spaces_are_tuned_whole(self):
        self.assertEqual(search_of(100, "quick", 100), ["--strategy=exhaustive"])
        self.assertEqual(search_of(101, "full", 100), ["--strategy=guided", "--effort=full"])


class Setup:
    """One whose daemon is nobody."""

    @contextlib.contextmanager
    def daemon(self, directory, data=None):
        yield None

    def facts(self, daemon):
        return {"model": "NVIDIA H200", "driver": "580"}


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="problem-report-test-")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def make(self, all_problems, middle=0.0, **given):
        known = {"out": self.out, "resume": None, "problem": [], "problems": None, "seconds": 1e9}
        measured = []

        def measure(setup, problem, options, directory):
            measured.append(problem)
            return row(problem, middle)

        with contextlib.redirect_stdout(io.StringIO()) as said:
            options = types.SimpleNamespace(**known | given)
            status = problem_report.make(repeatability.REPORT, all_problems, measure, Setup(), options)
        return status, measured, said.getvalue()

    def test_measures_all_and_writes_both_files(self):
        status, measured, _ = self.make(["p", "q"])
        self.assertEqual((status, measured), (0, ["p", "q"]))
        made = json.loads((self.out / "repeatability.json").read_text())
        self.assertEqual([each["problem"] for each in made["rows"]], ["p", "q"])
        text = (self.out / "repeatability.md").read_text()
        self.assertIn("# Tuned twice: NVIDIA H200, ", text)
        self.assertIn(
            "| q | 300 | guided quick | 3.0 3.0 3.0 | 500.00 | 500.00 | +0.00 % [-0.10, +0.10] UNCLEAR |", text
        )

    def test_misses_are_named_and_end_with_1(self):
        status, _, said = self.make(["p"], middle=0.05)
        self.assertEqual(status, 1)
        self.assertIn("missed: p: +5.00 %", said)

    def test_goes_on_where_an_earlier_call_ended(self):
        self.make(["p", "q"], problems=1)
        status, measured, _ = self.make(["p", "q"], resume=self.out / "repeatability.json")
        self.assertEqual((status, measured), (0, ["q"]))
        rows = json.loads((self.out / "repeatability.json").read_text())["rows"]
        self.assertEqual([each["problem"] for each in rows], ["p", "q"])

    def test_says_when_the_time_was_up(self):
        status, measured, said = self.make(["p", "q"], seconds=-1)
        self.assertEqual((status, measured), (INCOMPLETE, []))
        self.assertIn("go on with --resume", said)


if __name__ == "__main__":
    unittest.main()
