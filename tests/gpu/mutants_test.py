"""What the run of planted bugs makes of the daemon's answers."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants
from planted_all import ALL

RIGHT = {"verdict": "OK", "detail": "", "reason": "", "seconds": 1.0}


def result(verdict="WRONG_RESULT", detail="", **fields):
    given = {
        "kind": "mask",
        "name": "n",
        "family": "attention_mma",
        "problem": "p",
        "variant": "v",
        "expected": "found",
    }
    given |= {"why": "", "honest": RIGHT, "verdict": verdict, "detail": detail, "reason": "", "seconds": 1.0}
    return given | {"check": mutants.check_of(verdict, detail)} | fields


class Judge(unittest.TestCase):
    def failures(self, *results):
        return list(mutants.judge(results))

    def test_what_is_found_is_right(self):
        self.assertEqual(self.failures(result(), result("OUT_OF_BOUNDS"), result("CRASHED")), [])

    def test_a_bug_that_is_missed_is_a_failure_unless_nobody_could_find_it(self):
        self.assertIn("n is missed: OK", self.failures(result("OK"))[0])
        self.assertEqual(self.failures(result("OK", expected="missed")), [])

    def test_times_that_do_not_settle_are_no_finding(self):
        self.assertIn("is missed", self.failures(result("UNSTABLE", "its times do not settle: 1 to 3 us"))[0])

    def test_what_was_not_tried_is_a_failure(self):
        for verdict in ("", "INFEASIBLE", "COMPILE_ERROR", "LOST"):
            self.assertIn("was not tried", self.failures(result(verdict, expected="missed"))[0])

    def test_a_cheat_gets_its_verdict(self):
        self.assertEqual(self.failures(result(expected="WRONG_RESULT")), [])
        self.assertIn("should be OUT_OF_BOUNDS", self.failures(result(expected="OUT_OF_BOUNDS"))[0])

    def test_nobody_is_blamed_for_another(self):
        blamed = {**RIGHT, "verdict": "OUT_OF_BOUNDS", "detail": "changed its input K"}
        self.assertIn("its honest variant is OUT_OF_BOUNDS", self.failures(result(honest=blamed))[0])


class Checks(unittest.TestCase):
    def test_are_named_by_what_the_daemon_says(self):
        for verdict, detail, check in [
            ("WRONG_RESULT", "inputs 'counting': O[batch 0, head 1, row 2, dim 3] is 1, the reference 2", "counting"),
            ("UNSTABLE", "inputs 'normal': a second run on the same inputs gave other bits", "second run, normal"),
            ("WRONG_RESULT", "inputs 'normal': a second run on the same inputs: LSE[0] is 1", "second run, normal"),
            ("OUT_OF_BOUNDS", "inputs 'normal': scratch 'tickets' must be zero after a run and is not", "scratch"),
            ("OUT_OF_BOUNDS", "inputs 'normal': wrote 8 bytes behind O", "normal"),
            ("WRONG_RESULT", "while it was timed: run on input set 2 of 8: O[0] is 1", "after timing"),
            (
                "WRONG_RESULT",
                "while it was timed: run on input set 1 of 1, on new inputs: O",
                "after timing, new inputs",
            ),
            ("WRONG_RESULT", "second check, on fresh data: inputs 'offset mean': O", "second check, offset mean"),
            ("WRONG_RESULT", "second check, on fresh data: inputs 'normal': run 17: O", "many runs, normal"),
            ("UNSTABLE", "0.5 us is less than reading the inputs takes", "time"),
            ("CRASHED", "an illegal memory access was encountered", "worker"),
            ("OK", "", ""),
        ]:
            with self.subTest(detail):
                self.assertEqual(mutants.check_of(verdict, detail), check)


class Chunks(unittest.TestCase):
    def test_a_daemon_has_one_problem_and_a_few_mutants(self):
        chunks = list(mutants.chunks(ALL))
        self.assertEqual(sorted(each.folder for chunk in chunks for each in chunk), sorted(each.folder for each in ALL))
        for chunk in chunks:
            self.assertEqual(len({(each.problem, each.kind == "cheat") for each in chunk}), 1)
            self.assertLessEqual(len(chunk), mutants.A_DAEMONS)


class Table(unittest.TestCase):
    def test_names_what_is_missed_and_why(self):
        report = {
            "results": [result("OK", expected="missed", why="nobody sees it"), result(detail="inputs 'counting': O")]
        }
        lines = list(mutants.table(report))
        self.assertIn("**missed**: nobody sees it", lines[2])
        self.assertIn("| WRONG_RESULT | counting |", lines[3])
        self.assertEqual(next(mutants.summary(report["results"])), "2 bugs: 1 found, 1 missed as expected, 0 missed")


if __name__ == "__main__":
    unittest.main()
