"""What counts as a failure of the sanitizer run."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import code_paths
from sanitize import judge
from sanitizer import TOOLS


def entry(path="window", **fields):
    return {"family": "attention_mma", "path": path, "problem": "b1.h1.q64.d64.f16", "variant": "v", **fields}


def counts(**errors):
    tools = {**dict.fromkeys(TOOLS, 0), **errors}
    return {"tools": tools, "reports": {tool: "text" for tool, count in tools.items() if count != 0}}


class Judge(unittest.TestCase):
    def test_a_clean_path_is_right(self):
        self.assertEqual(list(judge([entry(**counts())])), [])

    def test_one_that_the_daemon_finds_wrong_is_not(self):
        self.assertIn("verdict is UNSTABLE", next(judge([entry(verdict="UNSTABLE", **counts())])))
        self.assertEqual(list(judge([entry(verdict="WRONG_RESULT", expected="WRONG_RESULT", **counts())])), [])

    def test_what_was_only_chosen_has_no_verdict(self):
        self.assertEqual(list(judge([{**entry(expected="WRONG_RESULT"), "variant": "attention_mma:BLOCK_M=64"}])), [])

    def test_errors_are_failures_with_their_text(self):
        failures = list(judge([entry(**counts(racecheck=2))]))
        self.assertEqual(failures, ["attention_mma: window: racecheck reports 2: text"])

    def test_so_is_a_tool_without_result(self):
        self.assertIn("synccheck comes to no result", next(judge([entry(**counts(synccheck=None))])))

    def test_so_is_a_path_that_the_daemon_has_no_variant_of(self):
        self.assertIn("no variant", next(judge([entry(failed="no variant of this path is offered")])))

    def test_a_seeded_defect_must_be_reported_by_its_tool(self):
        self.assertEqual(list(judge([entry("planted 1", **counts(racecheck=1))])), [])
        self.assertIn("racecheck does not report it", next(judge([entry("planted 1", **counts())])))
        self.assertIn("racecheck reports 1", next(judge([entry("planted none", **counts(racecheck=1))])))


class Paths(unittest.TestCase):
    def test_each_has_a_name_of_its_own(self):
        names = [(path.family, path.name) for path in code_paths.ALL]
        self.assertEqual(len(names), len(set(names)))

    def test_something_is_planted_for_every_tool(self):
        self.assertEqual(set(code_paths.PLANTED.values()), set(TOOLS))


if __name__ == "__main__":
    unittest.main()
