"""Tests of what energy.py holds answers to, without a GPU."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import energy


def trial(us, joules):
    """Timed to the digit, its energy to 1 %."""
    timed = {"latency_low_ms": us / 1e3, "latency_ms": us / 1e3, "latency_high_ms": us / 1e3}
    spans = {"low_joules": 0.99 * joules, "joules": joules, "high_joules": 1.01 * joules, "contended": False}
    return {**timed, "energy": spans}


def answer(variant, objective):
    return {"variant": variant, "objective": objective, "artifact_sha256": "feed", "artifact_state": "READY"}


class ObjectiveTest(unittest.TestCase):
    def setUp(self):
        self.play_off = {"fast": trial(40, 0.012), "thrifty": trial(50, 0.010), "between": trial(41, 0.011)}
        self.answers = {
            "time": answer("fast", "time"),
            "energy": answer("thrifty", "energy"),
            "edp": answer("between", "edp"),
        }

    def wrong(self, objective):
        return energy.wrong(objective, self.answers, self.play_off)

    def test_what_the_play_off_says_is_right(self):
        self.assertEqual((self.wrong("energy"), self.wrong("edp")), ("", ""))

    def test_another_than_the_best_is_wrong(self):
        self.answers["energy"] = answer("between", "energy")
        self.assertEqual(self.wrong("energy"), "between is answered, and thrifty is best")

    def test_where_spans_overlap_the_fastest_is_best(self):
        self.play_off = {"fast": trial(40, 0.012), "thrifty": trial(41, 0.0119)}
        self.answers["energy"] = answer("thrifty", "energy")
        self.assertEqual(self.wrong("energy"), "thrifty is answered, and fast is best")
        self.answers["energy"] = answer("fast", "time")
        self.assertEqual(self.wrong("energy"), "")

    def test_an_energy_that_was_disturbed_does_not_count(self):
        self.play_off["thrifty"]["energy"]["contended"] = True
        self.assertEqual(self.wrong("energy"), "thrifty is answered, and between is best")

    def test_an_answer_needs_its_code(self):
        self.answers["edp"]["artifact_sha256"] = None
        self.assertEqual(self.wrong("edp"), "between has no code")

    def test_the_report_has_a_row_for_each_objective(self):
        answers = {
            name: {**self.play_off[one["variant"]], **one, "provenance_detail": None}
            for name, one in self.answers.items()
        }
        for one in answers.values():
            one["energy"] = {**one["energy"], "power_w": 300.0}
        text = energy.report_objectives([{"problem": "b1", "answers": answers}], {"model": "L4", "driver": "580"})
        self.assertIn("| b1 | energy | 10 | 50.00 | 500 | 300 | thrifty |  |", text)
        self.assertEqual(len(text.splitlines()), 2 + 2 + 3)
