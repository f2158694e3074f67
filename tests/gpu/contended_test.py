"""What is checked beside a load, with a daemon and a load that are made up."""

import contextlib
import io
import pathlib
import shlex
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import contended
from contended import PROBLEMS, REASON, STEPS, Trials
from daemon import ROOT

BUSY = ["sh", "-c", "echo busy; exec sleep 600"]


class Load:
    """Whether one runs, and how it is seen."""

    def __init__(self, always=True):
        self.runs, self.always = False, always

    @contextlib.contextmanager
    def __call__(self, command):
        self.runs = True
        yield
        self.runs = False


class Daemon:
    """A Setup and its daemon in one. `flaw` names a way in which it is wrong."""

    def __init__(self, load, flaw=""):
        self.load, self.flaw, self.served, self.jobs = load, flaw, {}, {}

    def tune(self, daemon, problem, *arguments):
        beside = self.load.runs and self.flaw != "sees nothing"
        promoted = not beside or self.flaw == "promotes"
        name = f"operations/{len(self.jobs)}"
        decision = "it is the best" if promoted else f"{REASON} during the play-off: nothing is promoted"
        decision = "no reason" if self.flaw == "says nothing" and beside else decision
        time = 2.0 if self.load.runs and self.flaw == "sees nothing" else 1.0
        first = promoted and (problem not in self.served or self.flaw == "promotes")
        if first:
            self.served[problem] = {"provenance": "EXACT", "variant": "a", "latency_ms": time, "contended": beside}
        elif self.flaw == "loses the time" and beside and problem in self.served:
            self.served[problem] = {**self.served[problem], "latency_ms": 3.0}
        self.jobs[name] = beside, decision
        result = {"operation": name, "promoted": first, "decision": decision, "play_off": [{"contended": beside}],
                  "incumbent": self.served.get(problem)}  # fmt: skip
        return {
            "seconds": 1.0,
            "phases": {},
            "trials": 2,
            "compiles": 0,
            "verdicts": {},
            "result": result,
            "error": None,
        }

    def ask(self, daemon, *arguments):
        words = [word for word in arguments if not word.startswith("--quiet")]
        trial = {"verdict": "OK", "latency_ms": 1.0}
        if words[0] == "trials":
            beside = self.jobs[words[3]][0] if "--job" in words else False
            return [{**trial, "contended": beside, "variant": variant} for variant in "ab"], ""
        if words[0] == "best":
            answer = self.served.get(words[1], {"provenance": "NEAREST"})
            return [{"type": "answer", **answer}], ""
        if words[0] == "history":
            return [{"variant": "a"}] if words[1] in self.served else [], ""
        reverted = {
            "type": "evaluation",
            "decision": "REVERT",
            "trial": trial,
            "reason": f"{REASON} while it was timed",
        }
        return [reverted], ""

    def text(self, daemon, *arguments):
        return f"Play-off, by time; compared round by round:\nnot promoted: {self.jobs[arguments[1]][1]}\n"


class Checks(unittest.TestCase):
    def failed(self, flaw=""):
        load = Load()
        trials = Trials(Daemon(load, flaw), None, PROBLEMS)
        silent = contextlib.redirect_stdout(io.StringIO())
        with mock.patch.object(contended, "loaded", load), mock.patch.object(contended, "NOTICED_S", 0.01), silent:
            for step in STEPS:
                step(trials, [])
        self.assertGreater(len(trials.checks), 15)
        return [check["what"] for check in trials.checks if not check["holds"]]

    def test_a_daemon_that_does_as_it_should_fails_none(self):
        self.assertEqual(self.failed(), [])

    def test_one_that_promotes_beside_a_load_is_found(self):
        found = self.failed("promotes")
        self.assertIn(f"beside the load, nothing of {PROBLEMS[1]} is promoted", found)
        self.assertIn("what was promoted is not contended", found)

    def test_one_that_does_not_see_the_load_is_found(self):
        found = self.failed("sees nothing")
        self.assertIn("0 of 2 times are contended", found)
        self.assertTrue(any("is a quiet GPU's: +100.0 %" in what for what in found), found)

    def test_one_that_gives_no_reason_is_found(self):
        self.assertIn("the JSON says so: no reason", self.failed("says nothing"))

    def test_one_whose_answers_change_is_found(self):
        self.assertIn("the answer is the same, its time too", self.failed("loses the time"))

    def test_the_reason_is_the_daemon_s(self):
        self.assertIn(f'"{REASON} ', (ROOT / "server/promotion/promotion.cc").read_text())


class Loaded(unittest.TestCase):
    def test_runs_within_the_block_and_not_after_it(self):
        with contended.loaded(BUSY) as process:
            self.assertIsNone(process.poll())
        self.assertEqual(process.returncode, -9)

    def test_ends_with_what_is_raised_in_the_block(self):
        with self.assertRaises(SystemExit), contended.loaded(BUSY) as process:
            sys.exit("the daemon did not start")
        self.assertIsNotNone(process.returncode)

    def test_one_that_does_not_compute_ends_the_script(self):
        silent = ["sh", "-c", "exec sleep 600"]
        ends = self.assertRaisesRegex(SystemExit, f"{shlex.join(silent)} does not compute within 0.1 s")
        with mock.patch.object(contended, "LOADED_S", 0.1), ends, contended.loaded(silent):
            self.fail("it is no load")


if __name__ == "__main__":
    unittest.main()
