"""Commands that change what is served, tried and queued, against a daemon that really tunes."""

import os
import pty
import re
import select
import subprocess
import time
import unittest

from harness import ATTUNE, KERNELS, PATIENCE, TEST_FAMILIES, DaemonTest, wait_until

PROBLEM = "b1.h1.q64.d64.f16"
OTHER = "b1.h1.q48.d64.f16"
SLOW = "b2.h4.q512.d64.f16"  # its trials take so long that a job behind them waits, however busy the machine
LONG = "b2.h4.kvh2.q30.kv50.d64.f16.causal-br.sinks.varlen.lse"
SAMPLE = ("--strategy=random", "--max-trials=4", "--seed=7")


class ServeTest(DaemonTest):
    def test_a_pinned_variant_is_served_until_it_is_unpinned(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        best = daemon.json("best", PROBLEM)[0]
        # The play-off's winner may be any of them: where all are about equal, noise decides.
        slowest = [t["variant"] for t in daemon.trials(PROBLEM, "--fastest") if t["variant"] != best["variant"]][-1]
        pinned = daemon.json("serve", PROBLEM, slowest, "--why", "as last month")[-1]
        self.assertEqual(pinned["decision"], "PINNED")
        self.assertIn("as last month", pinned["reason"])
        served = daemon.json("best", PROBLEM)[0]
        self.assertEqual((served["variant"], served["pinned"]), (slowest, True))
        daemon.attune("tune", PROBLEM, *SAMPLE)
        self.assertEqual(daemon.json("best", PROBLEM)[0]["variant"], slowest)
        daemon.stop()
        daemon.start()
        self.assertTrue(daemon.json("best", PROBLEM)[0]["pinned"], "also after a restart")
        self.assertIn("pinned", daemon.attune("history", PROBLEM).stdout)
        daemon.attune("serve", PROBLEM, "--unpin")
        self.assertFalse(daemon.json("best", PROBLEM)[0]["pinned"])
        daemon.attune("rollback", PROBLEM)
        self.assertEqual(daemon.json("best", PROBLEM)[0]["variant"], best["variant"])
        daemon.stop()

    def test_best_history_and_the_decision_have_the_same_time(self):
        daemon = self.daemon()
        tuned = daemon.json("tune", PROBLEM, *SAMPLE)[-1]
        best = daemon.json("best", PROBLEM)[0]
        history = daemon.json("history", PROBLEM)[0]
        self.assertTrue(tuned["promoted"])
        self.assertEqual(best["latency_ms"], history["latency_ms"])
        self.assertEqual(best["latency_ms"], tuned["incumbent"]["latency_ms"])
        self.assertEqual(best["measure_time"], history["promote_time"])
        self.assertTrue(tuned["decision"].startswith(f"{best['latency_ms'] * 1000:.2f} us"), tuned["decision"])
        daemon.stop()

    def test_rollback_to_a_named_incumbent(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        first = daemon.json("history", PROBLEM)[0]
        others = [t["variant"] for t in daemon.trials(PROBLEM) if t["variant"] != first["variant"]]
        for variant in others[:2]:
            daemon.attune("serve", PROBLEM, variant)
        back = daemon.json("rollback", PROBLEM, "--to", first["incumbent"], "--why", "wrong twice")[0]
        self.assertEqual(back["incumbent"], first["incumbent"])
        self.assertEqual([row["rolled_back"] for row in daemon.json("history", PROBLEM)], [True, True, False])
        wrong = daemon.attune("rollback", PROBLEM, "--to", "incumbents/999", check=False)
        self.assertEqual(wrong.returncode, 3)
        self.assertIn("to is 'incumbents/999'", wrong.stderr)
        out = daemon.json("history", PROBLEM)[0]["incumbent"]
        self.assertIn("`attune serve` pins", daemon.attune("rollback", PROBLEM, "--to", out, check=False).stderr)
        self.assertEqual(daemon.json("best", PROBLEM)[0]["variant"], first["variant"])
        daemon.stop()


class RetryTest(DaemonTest):
    def test_a_verdict_is_lifted_and_the_variant_tried_again(self):
        daemon = self.daemon(kernels=[KERNELS, TEST_FAMILIES])
        families = ("--family", "compile_error_opencl", "--family", "wrong_rows_opencl")
        daemon.attune("tune", PROBLEM, *families)
        self.assertEqual(len(daemon.trials(PROBLEM)), 4)
        retried = daemon.json("retry", "--verdict", "COMPILE_ERROR", "--problem", PROBLEM)[0]
        self.assertEqual((retried["trials"], retried["codes"], retried["problems"]), (1, 1, [PROBLEM]))
        daemon.attune("tune", PROBLEM, *families)
        self.assertEqual(len(daemon.trials(PROBLEM, "--verdict", "COMPILE_ERROR")), 2)
        self.assertNoneAgain([trial for trial in daemon.trials(PROBLEM) if trial["verdict"] != "COMPILE_ERROR"])
        refused = daemon.attune("retry", "--verdict", "OK", check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--verdict is OK; ", refused.stderr)
        self.assertIn("CRASHED", refused.stderr)
        daemon.stop()


class AnswerTest(DaemonTest):
    def test_a_near_problems_time_is_not_the_answers(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        best = daemon.json("best", PROBLEM)[0]
        self.assertIsNone(best["nearest"])
        near = daemon.json("best", OTHER)[0]
        self.assertEqual(near["provenance"], "NEAREST")
        self.assertIsNone(near["latency_ms"])
        self.assertEqual(near["nearest"]["problem"], PROBLEM)
        self.assertEqual(near["nearest"]["latency_ms"], best["latency_ms"])
        self.assertLess(near["predicted"]["latency_ms"], best["latency_ms"], "its lengths are 3/4")
        self.assertIsNone(best["predicted"])
        self.assertIn(f"measured at {PROBLEM}: ", daemon.attune("best", OTHER).stdout)
        daemon.stop()

    def test_what_opencl_does_not_report_is_null(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        for trial in daemon.trials(PROBLEM):
            self.assertEqual((trial["registers"], trial["spill_bytes"]), (None, None))
        self.assertNotIn("0 registers", daemon.attune("trials", "trials/1").stdout)
        for command in ("profile", "sanitize"):
            refused = daemon.attune(command, PROBLEM, check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertRegex(
                refused.stderr,
                r"^attune: opencl:0 \(.*\) is a device of OpenCL: Nsight Compute and compute-sanitizer know CUDA "
                r"devices alone \[FAILED_PRECONDITION method=.*\]\n$",
            )
        daemon.stop()

    def test_what_no_family_can_do_has_an_exit_code_of_its_own(self):
        daemon = self.daemon()
        for command, code in (("preflight", 8), ("best", 3), ("tune", 8)):
            self.assertEqual(daemon.attune(command, "b1.h1.q64.d33.f16", check=False).returncode, code, command)
        variant = next(line for line in daemon.json("space", PROBLEM, "--list") if line["type"] == "variant")["variant"]
        for command in ("evaluate", "serve"):
            refused = daemon.attune(command, "b1.h1.q64.d33.f16", variant, check=False)
            self.assertEqual(refused.returncode, 8, refused.stderr)
        daemon.stop()


class QueueTest(DaemonTest):
    def test_jobs_say_whom_they_wait_for_and_all_are_cancelled(self):
        daemon = self.daemon()
        first = daemon.json("tune", SLOW, "--detach")[0]["operation"]
        wait_until("the first job's turn", lambda: daemon.json("jobs")[0]["trials_done"] > 0)
        second = daemon.json("tune", OTHER, "--detach")[0]["operation"]
        wait_until("the second to wait", lambda: daemon.json("jobs", "--problem", OTHER)[0]["queue_position"])
        waiting = daemon.json("jobs", "--problem", OTHER)
        self.assertEqual([row["operation"] for row in waiting], [second])
        self.assertEqual((waiting[0]["waits_for"], waiting[0]["queue_position"]), (first, 1))
        self.assertIn(f"waiting for {first}", daemon.attune("jobs", "--active").stdout)
        daemon.attune("cancel", "--all")
        wait_until("all to end", lambda: not daemon.json("jobs", "--active"))
        self.assertEqual({row["state"] for row in daemon.json("jobs")}, {"CANCELLED"})
        self.assertEqual({row["waits_for"] for row in daemon.json("jobs")}, {None})
        daemon.stop()

    def test_many_problems_come_from_standard_input(self):
        daemon = self.daemon()
        tuned = subprocess.run(
            [str(ATTUNE), "--server", daemon.address, "tune", "-", *SAMPLE, "--format=json"],
            input=f"# shapes\n{PROBLEM}\n{OTHER}\n",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertEqual(tuned.stdout.count('"type":"tuning"'), 2)
        for problem in (PROBLEM, OTHER):
            self.assertIn(daemon.json("best", problem)[0]["provenance"], ("EXACT", "TIE"))
        daemon.stop()

    def test_a_dry_run_plans_what_the_sweep_then_does(self):
        daemon = self.tuned_daemon(PROBLEM, *SAMPLE)
        path = self.directory / "plan.textproto"
        path.write_text(f'shapes {{ problem: ["{PROBLEM}", "{OTHER}"] }} budget {{ trials_per_problem: 2 }}')
        plan = daemon.json("sweep", str(path), "--dry-run")[0]
        self.assertEqual([row["tuned"] for row in plan["rows"]], [True, False])
        self.assertEqual(plan["rows"][1]["trials"], 2)
        self.assertGreater(plan["estimate_s"], 0)
        self.assertEqual(len(daemon.json("jobs")), 1, "nothing was started")
        swept = daemon.json("sweep", str(path), check=False)
        self.assertEqual(swept[-1]["trials"], plan["trials"])
        last = [line for line in swept if line["type"] == "progress"][-1]
        self.assertEqual((last["problems_done"], last["problems_total"]), (2, 2))
        daemon.stop()


class TerminalTest(DaemonTest):
    """On a terminal of 80 columns no line is longer."""

    def lines(self, daemon, *arguments, piped=""):
        master, slave = pty.openpty()
        subprocess.run(["stty", "cols", "80", "rows", "40"], stdin=slave, check=True)
        given = self.directory / "stdin"
        given.write_text(piped)
        with given.open() as stdin:
            process = subprocess.Popen(
                [str(ATTUNE), "--server", daemon.address, "--no-color", *arguments],
                stdin=stdin,
                stdout=slave,
                stderr=slave,
            )
        os.close(slave)
        text, end = b"", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                read = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            if not read:
                break
            text += read
        os.close(master)
        process.wait(PATIENCE)
        return [re.sub(r"\x1b\[[0-9]*[A-Z]", "", line).rstrip("\r") for line in text.decode().split("\n")]

    def test_tables_and_progress_fit_eighty_columns(self):
        daemon = self.daemon()
        path = self.directory / "plan.textproto"
        path.write_text(f'shapes {{ problem: ["{PROBLEM}", "{OTHER}"] }} budget {{ trials_per_problem: 2 }}')
        daemon.attune("baseline", PROBLEM, "torch-sdpa-flash-2.11", "47.0", "--note", "by\x1b[31m hand")
        for arguments in (
            ("tune", PROBLEM, *SAMPLE),
            ("sweep", str(path)),
            ("tune", LONG, *SAMPLE),
            ("trials",),
            ("trials", PROBLEM),
            ("trials", "trials/1"),
            ("jobs",),
            ("history", PROBLEM),
            ("summary",),
            ("space", PROBLEM),
            ("preflight", PROBLEM),
            ("best", PROBLEM),
            ("best", "-"),
            ("explain", PROBLEM),
            ("devices",),
            ("families",),
            ("families", "attention_opencl"),
            ("baseline",),
            ("sweep", str(path), "--dry-run"),
            ("--help",),
            ("tune", "--help"),
            ("retry", "--verdict", "OK"),
            ("preflight", "-"),
        ):
            lines = self.lines(daemon, *arguments, piped=f"{PROBLEM}\n{LONG}\n")
            self.assertGreater(len(lines), 2, arguments)
            if arguments[0] in ("tune", "sweep"):
                self.assertNotIn("GPU", "".join(lines))
            for line in lines:
                self.assertLessEqual(len(line), 80, f"{arguments}\n{line}")
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
