"""Kernels that authors bring, from another process with an author's token: the faster one is kept, the others are
reverted with their reasons, and nothing of what is served changes before an admin adopts it."""

import json
import re

from harness import DaemonTest, run_attune

SERVED = "b1.h1.q64.d64.f16"
PROBLEM = "b1.h2.q64.d64.f16"

LOGIT = "    for (int d = 0; d < HEAD_DIM; ++d) logit += vload_half(d, q) * vload_half(key * HEAD_DIM + d, k);\n"


def slower(times):
    """The logit again and again: right, and late."""
    return lambda text: text.replace(
        LOGIT, f"    for (int again = 0; again < {times}; ++again) {{\n      logit = 0;\n{LOGIT}    }}\n"
    )


class SubmitTest(DaemonTest):
    def setUp(self):
        super().setUp()
        flags = (f"--listen=unix:{self.directory}/attuned.sock,127.0.0.1:0", "--submission_trial_timeout=5s")
        self.both = self.daemon(flags=flags)
        self.author = self.login()

    def login(self):
        tcp = re.search(r"address=\S*(127\.0\.0\.1:\d+)", self.both.log).group(1)
        token = self.directory / "token"
        if not token.exists():
            token.write_text(self.both.attune("token", "create", "ada", "--role", "author").stdout)
        return ("--server", tcp, "--token-file", str(token), "--format=json")

    def kernel(self, name, change=lambda text: text, manifest=lambda text: text):
        """The starter, changed."""
        folder = self.directory / name
        self.assertEqual(run_attune("new-kernel", str(folder)).returncode, 0)
        for file, edit in (("attention.cl", change), ("family.textproto", manifest)):
            before = (folder / file).read_text()
            (folder / file).write_text(edit(before))
        return folder

    def submit(self, folder, *arguments, problem=PROBLEM):
        """The verdict, and its row of the problem."""
        result = run_attune(*self.author, "submit", str(folder), "--problem", problem, *arguments)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertTrue(lines, f"{result.stderr}\n{self.both.log}")
        verdict = lines[-1]
        self.assertEqual(verdict["type"], "submit_result", f"{result.stderr}\n{self.both.log}")
        self.assertEqual(result.returncode, 0 if verdict["decision"] == "KEEP" else 5)
        return verdict, verdict["rows"][0]

    def test_each_kernel_gets_its_answer_and_nothing_else_changes(self):
        self.both.attune("tune", SERVED, "--strategy=random", "--max-trials=3")
        served = self.both.json("best", SERVED)
        families = self.both.json("families")
        in_loop = ("--loop", "tiles", "--base", "previous", "--hypothesis")

        verdict, row = self.submit(self.kernel("first", slower(16)), *in_loop, "the first")
        self.assertEqual((verdict["decision"], row["base"]), ("KEEP", None), verdict["reason"])
        first = verdict["submission"]

        verdict, row = self.submit(self.kernel("faster"), *in_loop, "each logit once")
        self.assertEqual((verdict["decision"], row["base"]), ("KEEP", first), verdict["reason"])
        self.assertGreater(row["speedup"], 1)
        faster = verdict["submission"]

        verdict, row = self.submit(self.kernel("slower", slower(24)), *in_loop, "more often still")
        self.assertEqual((verdict["decision"], row["base"]), ("REVERT", faster))
        self.assertRegex(verdict["reason"], r"% slower than the base; allowed: 2 %")
        self.assertEqual(row["gates"][0]["gate"], "regression")

        wrong = self.kernel("wrong", lambda text: text.replace("sum = sum * keep + weight", "sum = sum + weight"))
        verdict, row = self.submit(wrong, *in_loop, "no keep")
        self.assertEqual((verdict["decision"], row["trial"]["verdict"]), ("REVERT", "WRONG_RESULT"), verdict["reason"])
        self.assertRegex(verdict["reason"], r"\d")  # where, and by how much

        endless = self.kernel(
            "hangs", lambda text: text.replace(LOGIT, "    volatile int on = 1;\n    while (on) {}\n")
        )
        verdict, row = self.submit(endless, *in_loop, "for ever")
        self.assertEqual((verdict["decision"], row["trial"]["verdict"]), ("REVERT", "TIMEOUT"), verdict["reason"])
        self.assertEqual(row["gates"][0]["gate"], "time")

        broken = self.kernel("broken", lambda text: text.replace("logit *= scale;", "logit *= scales;"))
        line = (broken / "attention.cl").read_text().split("logit *= scales;")[0].count("\n") + 1
        verdict, row = self.submit(broken, *in_loop, "a typo")
        self.assertEqual((verdict["decision"], row["trial"]["verdict"]), ("REVERT", "COMPILE_ERROR"))
        diagnostic = row["diagnostics"][0]
        self.assertEqual((diagnostic["path"], diagnostic["line"]), ("attention.cl", line), row["diagnostics"])
        self.assertIn("scales", diagnostic["text"])

        # Computes in the checks, and one run in three while it is timed.
        cheat = self.kernel(
            "cheats",
            lambda text: text.replace("float scale) {", "float scale, __global int* runs) {").replace(
                "  const long head_kv",
                "  const int run = runs[row] - 0x600d0000;\n"
                "  const int counted = run >= 0 && run < 0x10000;\n"
                "  runs[row] = 0x600d0000 + (counted ? run + 1 : 0);\n"
                "  if (counted && run % 3 != 2) return;\n  const long head_kv",
            ),
            lambda text: (
                text.replace(
                    '  args { f32: "1 / sqrt(head_dim)" }\n',
                    '  args { f32: "1 / sqrt(head_dim)" }\n  args { scratch: "runs" }\n',
                )
                + 'scratch { name: "runs" bytes: "4 * rows" }\n'
            ),
        )
        verdict, row = self.submit(cheat, *in_loop, "two runs of three for nothing")
        self.assertEqual((verdict["decision"], row["trial"]["verdict"]), ("REVERT", "WRONG_RESULT"), verdict["reason"])

        history = self.summary()
        self.assertEqual([iteration["iteration"] for iteration in history], [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual([iteration["result"]["decision"] for iteration in history], ["KEEP", "KEEP"] + ["REVERT"] * 5)
        self.assertEqual(history[2]["diff_against"], faster)
        self.assertIn("+    for (int again = 0; again < 24; ++again) {", history[2]["diff"])
        self.assertEqual(self.both.json("best", SERVED), served)
        self.assertEqual(self.both.json("families"), families)
        self.both.stop()

    def summary(self):
        result = run_attune(*self.author, "summary", "--loop", "tiles")
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_it_is_served_to_others_once_it_is_adopted_also_after_a_restart(self):
        verdict, row = self.submit(self.kernel("mine"))
        self.assertEqual(verdict["decision"], "KEEP", verdict["reason"])
        name, variant = verdict["submission"], row["trial"]["variant"]
        unknown = self.both.attune("evaluate", PROBLEM, variant, check=False)
        self.assertIn("submitted_", unknown.stderr)
        refused = run_attune(*self.author, "adopt", name)
        self.assertIn("AdoptSubmission needs admin", refused.stderr)
        self.both.attune("adopt", name)
        self.both.attune("evaluate", PROBLEM, variant)
        best = self.both.json("best", PROBLEM)[0]
        self.assertEqual((best["variant"], best["provenance"]), (variant, "EXACT"))
        self.assertIn("is served for", self.both.attune("withdraw", name, check=False).stderr)
        self.both.stop()
        self.both.start()
        best = self.both.json("best", PROBLEM)[0]
        self.assertEqual((best["variant"], best["provenance"]), (variant, "EXACT"))
        out = self.directory / "fetched"
        self.both.attune("submissions", name, "--out", str(out))
        self.assertEqual((out / "attention.cl").read_text(), (self.directory / "mine/attention.cl").read_text())
        self.both.stop()

    def test_what_leads_out_of_the_folder_is_refused_before_anything_is_compiled(self):
        for include in ("/etc/passwd", "../../../etc/passwd"):
            bad = self.kernel(f"bad{len(include)}", lambda text, name=include: f'#include "{name}"\n' + text)
            refused = run_attune(*self.author, "submit", str(bad), "--problem", PROBLEM)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(f"attention.cl:1: #include '{include}'", refused.stderr)
        tuner = self.directory / "tuner"
        tuner.write_text(self.both.attune("token", "create", "ci", "--role", "tuner").stdout)
        refused = run_attune(*self.author[:2], "--token-file", str(tuner), "submit", str(bad), "--problem", PROBLEM)
        self.assertIn("token:ci has the role tuner; Submit needs author", refused.stderr)
        self.both.stop()
