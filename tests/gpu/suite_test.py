import collections
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import suite
from suite import check_trials, is_unsettled, newest


def trial(variant, verdict, detail=""):
    return {"variant": variant, "verdict": verdict, "detail": detail, "parameters": {}}


UNSETTLED = "its times do not settle: 24.6 to 31.3 us around 24.7 us after 60 samples"


class SuiteTest(unittest.TestCase):
    def test_only_times_that_do_not_settle_are_tried_again(self):
        self.assertTrue(is_unsettled(trial("a", "UNSTABLE", UNSETTLED)))
        self.assertFalse(is_unsettled(trial("a", "UNSTABLE", "gave other bits than the first")))
        self.assertFalse(is_unsettled(trial("a", "OK")))

    def test_a_second_try_stands_for_the_first(self):
        trials = [trial("a", "OK"), trial("b", "OK"), trial("a", "UNSTABLE", UNSETTLED)]
        self.assertEqual(sorted((t["variant"], t["verdict"]) for t in newest(trials)), [("a", "OK"), ("b", "OK")])

    def test_what_does_not_settle_twice_is_a_failure(self):
        failures = []
        check_trials("p", newest([trial("a", "UNSTABLE", UNSETTLED), trial("b", "OK"), trial("a", "UNSTABLE", UNSETTLED)]), failures)
        self.assertEqual(failures, [f"p: a is UNSTABLE: {UNSETTLED}"])

    def test_shares_have_all_and_none_is_empty(self):
        self.assertEqual(suite.shares(list("abcde"), 2), [list("ace"), list("bd")])
        self.assertEqual(suite.shares(list("ab"), 8), [["a"], ["b"]])

    def test_what_daemons_shared_is_written_as_of_one(self):
        written = {}
        for at_once in ("1", "4"):
            with tempfile.TemporaryDirectory() as out:
                written[at_once] = self.evidence_of(out, at_once)
        self.assertEqual(written["1"]["parts"], written["4"]["parts"])
        self.assertEqual(set(written["4"]["parts"]), set(suite.evidence.PARTS))
        problems = written["4"]["parts"]["exhaustive"]["problems"]
        self.assertEqual(list(problems), suite.EXHAUSTIVE)
        pieces = sorted(" ".join(piece) for piece in suite.PIECES)
        self.assertEqual([[trial["variant"] for trial in trials] for trials in problems.values()], [pieces] * len(problems))

    def test_pieces_are_a_whole_space(self):
        spaces = {"p": {"a", "b"}}
        failures = []
        suite.exhausted(spaces, {"p": [trial("b", "OK"), trial("a", "OK")]}, failures)
        self.assertEqual(failures, [])
        suite.exhausted(spaces, {"p": [trial("b", "OK"), trial("c", "OK")]}, failures)
        self.assertEqual(failures, ["p: 1 variants: each was not tried: a", "p: 1 variants: each is not feasible: c"])
        suite.exhausted(spaces, {}, failures)
        self.assertEqual(failures[2:], ["p: 2 variants: each was not tried: a"])

    def evidence_of(self, out, at_once):
        def tune_all(bundle, scratch, name, runs, flags, failures):
            kept = collections.defaultdict(list)
            for problem, arguments in runs:
                kept[problem].append({"variant": " ".join(arguments), "verdict": "OK"})
            return {"device": ["a GPU"], "problems": kept}, [{"problem": problem} for problem in kept], []

        fakes = {
            "tune_all": tune_all,
            "whole_spaces": lambda *_: {p: {" ".join(piece) for piece in suite.PIECES} for p in suite.EXHAUSTIVE},
            "unit_tests": lambda *_: {"a_gpu_test": {}},
            "adversarial": lambda *_: {"hang_cuda": ["OK"]},
        }
        with (
            mock.patch.multiple(suite, **fakes),
            mock.patch("sys.argv", ["suite.py", "--out", out, "--at-once", at_once]),
            mock.patch("builtins.print"),
            self.assertRaises(SystemExit) as ended,
        ):
            suite.main()
        self.assertEqual(ended.exception.code, 0)
        return json.loads((pathlib.Path(out) / "evidence.json").read_text())


if __name__ == "__main__":
    unittest.main()
