"""Tunings as a client sees them, by a fake of the client; and a list that ends with the time."""

import os
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import tuning

PROGRESS = (
    '{"type": "progress", "phase": "%s", "message": %s, "trials_done": %d, "trials_reused": 2, "compiles_done": 3, '
    '"verdicts": {"OK": 5}}'
)
RESULT = (
    '{"type": "tuning", "operation": "operations/1", "promoted": true, "decision": "the best", "claim": null, '
    '"anchor_moved": null, "incumbent": {"variant": "f:A=1", "latency_ms": 0.5}}'
)


class Follow(unittest.TestCase):
    def follow(self, script, limit_s=30):
        return tuning.follow(["/bin/sh", "-c", script], dict(os.environ), limit_s)

    def lines(self, *lines):
        return "; ".join(f"echo '{line}'" for line in lines)

    def test_counts_what_was_tried_and_keeps_the_result(self):
        script = self.lines(PROGRESS % ("trials", "null", 4), PROGRESS % ("done", '"done"', 7), RESULT)
        tuned = self.follow(script)
        self.assertEqual((tuned["trials"], tuned["compiles"], tuned["verdicts"]), (5, 3, {"OK": 5}))
        self.assertIsNone(tuned["error"])
        self.assertEqual(tuning.served(tuned), ("f:A=1", 0.5))

    def test_time_goes_to_the_phase_that_was_told_before(self):
        told = self.lines(PROGRESS % ("reference", '"inputs"', 0), PROGRESS % ("trials", "null", 2), RESULT)
        begun, inputs, trials, result, end = 0, 1, 11, 13, 14
        with unittest.mock.patch("time.monotonic", side_effect=[begun, inputs, trials, result, end, end]):
            tuned = self.follow(told, limit_s=None)
        self.assertEqual(tuned["phases"], {"connecting": 1, "inputs": 10, "trials": 3})
        self.assertEqual(tuned["seconds"], 14)

    def test_a_failed_one_says_why_and_serves_nothing(self):
        tuned = self.follow("echo 'attune: no such device' >&2; exit 3")
        self.assertEqual(tuned["error"], "ended with 3: attune: no such device")
        self.assertEqual(tuning.served(tuned), ("", None))
        self.assertIsNone(tuning.summary(tuned)["decision"])

    def test_one_that_hangs_is_ended(self):
        tuned = self.follow("exec sleep 600", limit_s=0.2)
        self.assertRegex(tuned["error"], "^ended with -9")
        self.assertLess(tuned["seconds"], 60)


class Command(unittest.TestCase):
    def test_names_device_and_families(self):
        setup = tuning.Setup(pathlib.Path("/b"), [], ["one", "two"], "cuda:1", [])
        daemon = types.SimpleNamespace(address="unix:/s")
        command = setup.command(daemon, "best", "p", *setup.family_options())
        words = ["/b/attune", "--server", "unix:/s", "--format=json", "--device", "cuda:1"]
        self.assertEqual(command, [*words, "best", "p", "--family=one", "--family=two"])

    def test_what_people_read_is_no_json(self):
        setup = tuning.Setup(pathlib.Path("/b"), [], [], "", [])
        command = setup.command(types.SimpleNamespace(address="a"), "watch", "1", json_lines=False)
        self.assertEqual(command, ["/b/attune", "--server", "a", "watch", "1"])

    def test_answers_are_there_whatever_the_exit_status(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "attune")
            program.write_text('#!/bin/sh\necho \'{"type": "evaluation"}\'\necho slower >&2\nexit 5\n')
            program.chmod(0o755)
            setup = tuning.Setup(pathlib.Path(folder), [], [], "", [])
            lines = setup.ask(types.SimpleNamespace(address="a"), "evaluate")
        self.assertEqual(lines, ([{"type": "evaluation"}], "slower"))


class WhileTime(unittest.TestCase):
    def taken(self, lengths, seconds):
        now, done = [0.0], []
        for length in tuning.while_time(lengths, seconds, lambda: now[0]):
            now[0] += length
            done.append(length)
        return done

    def test_ends_before_one_as_long_as_the_longest_would_not_fit(self):
        self.assertEqual(self.taken([3, 1, 1, 1], 5.5), [3])
        self.assertEqual(self.taken([3, 1, 1, 1], 6.5), [3, 1])

    def test_takes_all_where_there_is_time(self):
        self.assertEqual(self.taken([3, 1, 1], 100), [3, 1, 1])

    def test_the_first_is_taken_at_once(self):
        self.assertEqual(self.taken([9, 1], 1), [9])


if __name__ == "__main__":
    unittest.main()
