"""attune-notify speaks when what the sweep finds has changed, and only then."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

NOTIFY = pathlib.Path(__file__).resolve().parents[2] / "deploy/systemd/attune-notify"
A, B = "b1.h1.q1.d64.f16", "b2.h1.q1.d64.f16"


class NotifyTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.hooks = self.directory / "hooks"
        self.hooks.mkdir()
        self.told = self.directory / "told"
        line = "$ATTUNE_BEFORE>$ATTUNE_STATE|$ATTUNE_SUBJECT|$ATTUNE_REPORT"
        self.hook("tell", f'echo "{line}" >> {self.told}; cat > {self.told}.text')

    def hook(self, name, script, mode=0o755):
        path = self.hooks / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(mode)

    def night(self, exit_status, slower=(), skipped=()):
        """What was told after a sweep, and the exit code."""
        before = self.told.read_text() if self.told.exists() else ""
        rows = [{"problem": problem, "outcome": "SLOWER"} for problem in slower]
        rows += [{"problem": problem, "outcome": "SKIPPED"} for problem in skipped]
        rows.append({"problem": "b9.h1.q1.d64.f16", "outcome": "SAME"})
        (self.directory / "last.json").write_text(json.dumps({"rows": rows}))
        (self.directory / "last.md").write_text("# the report\n")
        result = subprocess.run(
            [NOTIFY, "--directory", self.directory, "--hooks", self.hooks],
            env={**os.environ, "MONITOR_EXIT_STATUS": str(exit_status)},
            capture_output=True,
            text=True,
        )
        self.stderr = result.stderr
        return (self.told.read_text() if self.told.exists() else "")[len(before) :], result.returncode

    def test_speaks_on_a_change_of_state_alone(self):
        report = self.directory / "last.md"
        self.assertEqual(self.night(0), ("", 0))
        self.assertEqual(self.night(5, [A]), (f"ok>regression|attune: 1 slower: {A}|{report}\n", 0))
        self.assertEqual(self.night(5, [A]), ("", 0))
        self.assertEqual(self.night(5, [B, A])[0], f"regression>regression|attune: 1 slower: {B}|{report}\n")
        self.assertEqual(self.night(5, [B])[0], f"regression>regression|attune: 1 no longer slower: {A}|{report}\n")
        self.assertEqual(self.night(0)[0], f"regression>ok|attune: 1 no longer slower: {B}|{report}\n")
        self.assertEqual(self.night(0), ("", 0))

    def test_a_sweep_that_fails_or_does_not_finish_is_news_once(self):
        self.assertEqual(self.night(1)[0], ">failed|attune: the sweep failed|\n")
        self.assertIn("journalctl", pathlib.Path(f"{self.told}.text").read_text())
        self.assertEqual(self.night(1), ("", 0))
        self.assertEqual(self.night(0)[0].split("|")[:2], ["failed>ok", "attune: the sweep works again"])
        self.assertIn("total time did not suffice", self.night(7)[0])

    def test_what_was_not_timed_is_not_called_well(self):
        self.night(5, [A, B])
        told = self.night(7, skipped=[A, B])[0]
        self.assertIn("attune: the sweep's total time did not suffice; 2 slower before, not timed now", told)
        self.assertNotIn("no longer", told)
        self.assertEqual(
            self.night(0, skipped=[B])[0].split("|")[1],
            f"attune: 1 no longer slower: {A}; 1 slower before, not timed now: {B}",
        )
        self.assertEqual(self.night(0)[0].split("|")[1], f"attune: 1 no longer slower: {B}")

    def test_failures_beside_a_regression_do_not_hide_it(self):
        self.assertIn("attune: 1 slower", self.night(9, [A])[0])
        self.assertEqual(self.night(5, [A]), ("", 0))

    def test_a_sweep_that_fails_forgets_nothing(self):
        self.night(5, [A, B])
        self.assertEqual(self.night(1)[0], "regression>failed|attune: the sweep failed|\n")
        self.assertEqual(self.night(5, [A, B])[0].split("|")[1], f"attune: still slower: {A}, {B}")
        self.night(1)
        self.assertEqual(self.night(0)[0].split("|")[1], f"attune: 2 no longer slower: {A}, {B}")

    def test_a_subject_names_a_few(self):
        many = [f"b{batch}.h1.q1.d64.f16" for batch in range(100, 600)]
        told = self.night(5, many)[0]
        self.assertIn("500 slower: b100.h1.q1.d64.f16, ", told)
        self.assertIn(" and 492 more|", told)

    def test_the_message_has_the_report(self):
        self.night(5, [A])
        text = pathlib.Path(f"{self.told}.text").read_text()
        self.assertTrue(text.startswith(f"attune: 1 slower: {A}\n"), text)
        self.assertIn("# the report", text)

    def test_a_hook_that_fails_is_named_and_all_are_told_again(self):
        self.hook("broken", "exit 3")
        told, code = self.night(5, [A])
        self.assertIn("1 slower", told)
        self.assertEqual(code, 1)
        self.assertIn("hooks/broken failed: 3", self.stderr)
        self.hook("broken", "exit 0")
        self.assertIn("1 slower", self.night(5, [A])[0])
        self.assertEqual(self.night(5, [A]), ("", 0))

    def test_what_is_not_executable_is_no_hook(self):
        self.hook("mail.example", "exit 3", mode=0o644)
        self.assertEqual(self.night(5, [A])[1], 0)

    def test_says_what_it_lacks(self):
        environment = {name: value for name, value in os.environ.items() if name != "MONITOR_EXIT_STATUS"}
        result = subprocess.run([NOTIFY], env=environment, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--exit-status is not given", result.stderr)


class ExamplesTest(unittest.TestCase):
    def test_mail_has_the_subject_and_the_report(self):
        with tempfile.TemporaryDirectory() as directory:
            sent = pathlib.Path(directory) / "sent"
            sendmail = pathlib.Path(directory) / "sendmail"
            sendmail.write_text(f"#!/bin/sh\ncat > {sent}\n")
            sendmail.chmod(0o755)
            example = (NOTIFY.parent / "notify.d/mail.example").read_text().replace("/usr/sbin/sendmail", str(sendmail))
            subprocess.run(
                ["sh", "-c", example],
                input="the report\n",
                text=True,
                check=True,
                env={**os.environ, "ATTUNE_SUBJECT": "attune: 1 slower"},
            )
            self.assertIn("Subject: attune: 1 slower\n", sent.read_text())
            self.assertTrue(sent.read_text().endswith("\n\nthe report\n"))

    def test_the_web_hook_posts_json(self):
        with tempfile.TemporaryDirectory() as directory:
            curl = pathlib.Path(directory) / "curl"
            posted = pathlib.Path(directory) / "posted"
            curl.write_text(f"#!/bin/sh\ncat > {posted}\n")
            curl.chmod(0o755)
            subprocess.run(
                ["sh", NOTIFY.parent / "notify.d/webhook.example"],
                check=True,
                env={**os.environ, "ATTUNE_SUBJECT": 'a "b"', "PATH": f"{directory}:{os.environ['PATH']}"},
            )
            self.assertEqual(json.loads(posted.read_text()), {"text": 'a "b"'})


if __name__ == "__main__":
    unittest.main()
