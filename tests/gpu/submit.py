#!/usr/bin/env python3
"""Kernels of an author's on a GPU host: python3 tests/gpu/submit.py --bundle BUNDLE --out OUT

What tests/e2e/submit_test.py shows on a CPU, with CUDA (a bundle: deploy/bundle); about two minutes. From another process
with an author's token a faster kernel is kept, and one that is slower, wrong, without end, not to be compiled or
that cheats is reverted with its reason, each within 5 s but for the one without end, which has two trials' time; what
is served stays as it was. Writes OUT/submit.json; ends with 1 where something does not hold.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from daemon import ROOT, Daemon, ended

SERVED = "b1.h1.q128.d64.f16"
PROBLEM = "b1.h2.q128.d64.f16"
TRIAL_S = 2  # a trial's limit of time
LONGEST_S = 5
COMMAND_S = 600  # what is late ends here, whatever hangs

LOGIT = "    for (int d = 0; d < kMine; ++d) logit += query[d] * __half2float(k[key * HEAD_DIM + 32 * d]);\n"
SCALE = '  args { f32: "1 / sqrt(head_dim)" }\n'


def often(times):
    """The logit again and again: right, and late."""
    again = (
        f"    for (volatile int again = 0; again < {times}; again = again + 1) {{\n      logit = 0;\n{LOGIT}    }}\n"
    )
    return lambda text: text.replace(LOGIT, again)


def forgetful(text):
    """Computes in the checks, and one run in three while it is timed."""
    text = text.replace("int visible, float scale) {", "int visible, float scale, int* runs) {")
    count = """  int run = 0;
  if (lane == 0) {
    run = runs[row] - 0x600d0000;
    if (run < 0 || run >= 0x10000) run = -1;
    runs[row] = 0x600d0000 + run + 1;
  }
  run = __shfl_sync(0xffffffff, run, 0);
  if (run >= 0 && run % 3 != 2) return;
"""
    return text.replace("  const long long head_kv", count + "  const long long head_kv")


def with_runs(manifest):
    return (
        manifest.replace(SCALE, SCALE + '  args { scratch: "runs" }\n') + 'scratch { name: "runs" bytes: "4 * rows" }\n'
    )


def same(text):
    return text


# Name, hypothesis, change of the starter's source, of its manifest, decision, verdict of the trial (None: any).
SUBMISSIONS = [
    ("first", "the first", often(8), same, "KEEP", "OK"),
    ("faster", "each logit once", same, same, "KEEP", "OK"),
    ("slower", "more often still", often(12), same, "REVERT", "OK"),
    (
        "wrong",
        "no keep",
        lambda text: text.replace("sum = sum * keep + weight", "sum = sum + weight"),
        same,
        "REVERT",
        "WRONG_RESULT",
    ),
    (
        "endless",
        "for ever",
        lambda text: text.replace(LOGIT, "    for (;;) __nanosleep(1000);\n"),
        same,
        "REVERT",
        "TIMEOUT",
    ),
    (
        "broken",
        "a typo",
        lambda text: text.replace(
            "query[d] = __half2float(q[32 * d]) * scale", "query[d] = __half2float(q[32 * d]) * scales"
        ),
        same,
        "REVERT",
        "COMPILE_ERROR",
    ),
    ("cheat", "two runs of three for nothing", forgetful, with_runs, "REVERT", "WRONG_RESULT"),
]


class Author:
    """Another process's view: a token, TCP and nothing else."""

    def __init__(self, daemon, log, directory):
        self.daemon, self.directory = daemon, directory
        token = directory / "token"
        created = self.run("--server", daemon.address, "token", "create", "ada", "--role", "author")
        if created.returncode:
            sys.exit(f"token create: {created.stderr}")
        token.write_text(created.stdout)
        address = re.search(r"address=\S*(127\.0\.0\.1:\d+)", log.read_text()).group(1)
        self.login = ("--server", address, "--token-file", str(token), "--format=json")

    def run(self, *arguments):
        bundle = self.daemon.bundle
        return ended([bundle / "attune", *arguments], bundle, COMMAND_S)

    def kernel(self, name, change, manifest):
        """The starter, changed."""
        folder = self.directory / name
        made = self.run("new-kernel", str(folder), "--backend", "cuda")
        if made.returncode:
            sys.exit(f"new-kernel: {made.stderr}")
        for file, edit in (("attention.cu", change), ("family.textproto", manifest)):
            before = (folder / file).read_text()
            after = edit(before)
            if edit is not same and after == before:
                sys.exit(f"{name}: {file} has nothing to change")
            (folder / file).write_text(after)
        return folder

    def submit(self, folder, hypothesis):
        begin = time.monotonic()
        loop = ("--loop", "gpu", "--base", "previous", "--sanitize-every", "0", "--hypothesis", hypothesis)
        result = self.run(*self.login, "submit", str(folder), "--problem", PROBLEM, *loop)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        if not lines or lines[-1]["type"] != "submit_result":
            sys.exit(f"submit {folder.name}: {result.stdout[-2000:]} {result.stderr[-2000:]}")
        return time.monotonic() - begin, lines[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed, found = [], []

    def check(holds, what):
        print("ok    " if holds else "FAILED", what, flush=True)
        if not holds:
            failed.append(what)

    with tempfile.TemporaryDirectory(prefix="attune-submit-") as name:
        directory = pathlib.Path(name)
        both = f"--listen=unix:{directory}/attuned.sock,127.0.0.1:0"
        flags = [both, f"--submission_trial_timeout={TRIAL_S}s"]
        with Daemon(arguments.bundle.resolve(), directory, [ROOT / "kernels_src"], flags) as daemon:
            daemon.attune("tune", SERVED, "--strategy=random", "--max-trials=4", "--seed=1")
            served, families = daemon.attune("best", SERVED), daemon.attune("families")
            author = Author(daemon, directory / "attuned.log", directory)
            for name, hypothesis, change, manifest, decision, verdict in SUBMISSIONS:
                seconds, result = author.submit(author.kernel(name, change, manifest), hypothesis)
                row = result["rows"][0]
                found.append({"name": name, "seconds": round(seconds, 2), "result": result})
                trial = (row.get("trial") or {}).get("verdict")
                what = f"{name}: {result['decision']} after {seconds:.1f} s, {trial}: {result['reason'][:200]}"
                check((result["decision"], trial) == (decision, verdict), what)
                longest = LONGEST_S + (2 * TRIAL_S if verdict == "TIMEOUT" else 0)
                check(seconds <= longest, f"{name}: within {longest} s")
            check(daemon.attune("best", SERVED) == served, "what is served is as it was")
            check(daemon.attune("families") == families, "so are the families")
            history = author.run(*author.login, "summary", "--loop", "gpu").stdout.splitlines()
            check(len(history) == len(SUBMISSIONS), f"the loop has {len(history)} iterations")
    (arguments.out / "submit.json").write_text(json.dumps({"failed": failed, "submissions": found}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
