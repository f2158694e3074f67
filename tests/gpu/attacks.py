#!/usr/bin/env python3
"""Kernels that attack their worker, the daemon, its host and others' results on a GPU host:

    python3 tests/gpu/attacks.py --bundle BUNDLE --out OUT

From a bundle (deploy/bundle); most of the time it waits for kernels that never end. What
tests/e2e/cage_test.py and adversarial_test.py show on a CPU, with CUDA: each attack of attacks_cuda and of the suite's
families is evaluated by one daemon, then an author's submissions are tried by it. Each must get its verdict or refusal;
after each an honest variant must be OK within 5 s, every earlier trial as it was and the incumbent served; in the end
no process, lock or file of it may be left. Writes OUT/attacks.json; ends with 1 where something does not hold.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import remains
from attacks_list import ATTACKS, REFUSED, SUBMITTED, Attack
from daemon import ROOT, Daemon, environment
from mutants import answer
from profiling import Checks
from submit import Author
from suite import ADVERSARIAL

PROBLEM = "b1.h1.q64.d64.f16"  # attacked
OTHER = "b1.h1.q128.d64.f16"  # tuned, and left alone
TUNING = ("--family=attention_mma", "--strategy=random", "--max-trials=4", "--seed=1")
FAMILY = "attacks_cuda"
SECRET = "somebody_elses_word"
FORGED = "2026-01-01T00:00:00.000Z info forged"

BACK_S = 5
TRIAL_S = 3
COMPILE_S = 20
MOST_LOG = 1 << 20  # bytes that one attack may add to the daemon's log


def write_families(directory, secret):
    """attacks_cuda for --kernels_dir, with the name of the file that it is to reach for."""
    root = directory / "families"
    shutil.copytree(ROOT / "tests/families/common", root / "common")
    shutil.copytree(pathlib.Path(__file__).resolve().parent / FAMILY, root / FAMILY)
    source = root / FAMILY / "attention.cu"
    names = f"#define SECRET <{secret}>\n#define SECRET_FROM_THE_TOOLKIT <{'../' * 16}{str(secret).lstrip('/')}>\n"
    source.write_text(names + source.read_text())
    return root


def walls(bundle, directory):
    """What `attuned --check` says of the cage; "whole" where nothing is missing."""
    command = [bundle / "attuned", "--check", f"--kernels_dir={ROOT}/kernels_src", f"--data_dir={directory}/unused"]
    told = subprocess.run(command, capture_output=True, text=True, env=environment(bundle), timeout=120).stdout
    found = re.search(r"^cage +ok: (.*)$", told, re.M)
    return found.group(1) if found else told[-500:]


class Intruder(Author):
    """An author whose kernels are an honest one, changed."""

    def kernel(self, name, change, manifest):
        folder = self.directory / name
        base = ROOT / "tests/families/hang_cuda"
        shutil.copytree(base, folder)
        (folder / "common").mkdir()
        shutil.copy(ROOT / "tests/families/common/row_cuda.cuh", folder / "common")
        text = (folder / "family.textproto").read_text()
        text = text.replace('"//common/row_cuda.cuh"', '"common/row_cuda.cuh"').replace("values: [0, 1]", "values: [0]")
        (folder / "family.textproto").write_text(manifest(text))
        (folder / "attention.cu").write_text(change((folder / "attention.cu").read_text()))
        return folder


class Siege:
    """A daemon under attack: what it must still be after each."""

    def __init__(self, daemon, directory, check):
        self.daemon, self.check = daemon, check
        self.log = directory / "attuned.log"
        self.twins = 0
        self.seen = {}  # the trials of the attacked problem, as they were listed first
        for problem in (PROBLEM, OTHER):
            daemon.attune("tune", problem, *TUNING)
            # An honest variant is tried after each attack, and its play-off would promote what is faster than this.
            daemon.attune("serve", problem, daemon.attune("best", problem)[0]["variant"], "--why=it stays what it is")
        self.served = self.incumbents()
        self.rows = []
        self.workers = set()
        self.after("before all attacks", {}, "")

    def incumbents(self):
        """(variant, provenance) of what is served for both problems, and all of it for the one that is left alone."""
        best = {problem: self.daemon.attune("best", problem)[0] for problem in (PROBLEM, OTHER)}
        return [(each["variant"], each["provenance"]) for each in best.values()], best[OTHER]

    def honest(self):
        """{verdict, seconds, ...} of an honest variant that was not tried before."""
        self.twins += 1
        return answer(self.daemon, PROBLEM, f"{FAMILY}:ATTACK=0,LAUNCH=0,TWIN={self.twins}")

    def after(self, name, row, text):
        """What must hold after an attack that ended just now; `text` is all that its author was told."""
        honest = self.honest()
        found = f"{honest['verdict']} after {honest['seconds']} s {honest['detail'][:200]}".rstrip()
        is_back = honest["verdict"] == "OK" and honest["seconds"] <= BACK_S
        self.check(is_back, f"{name}: an honest variant is OK within {BACK_S} s: {found}")
        trials = {trial["trial"]: trial for trial in self.daemon.attune("trials", PROBLEM, "--limit", "0")}
        changed = [trial for trial, was in self.seen.items() if trials.get(trial) != was]
        if changed or self.incumbents() != self.served:
            self.check(
                False, f"{name}: earlier trials and what is served are as they were: {changed} {self.incumbents()}"
            )
        self.seen = trials
        if SECRET in text:
            self.check(False, f"{name}: no word of the secret file is told: {text[:300]}")
        if self.daemon.process.poll() is not None:
            sys.exit(f"{name}: the daemon has ended")
        self.workers.update(remains.descendants(self.daemon.process.pid))
        self.rows.append({"name": name, **row, "honest": honest})

    def attack(self, attack):
        written = self.log.stat().st_size
        found = answer(self.daemon, PROBLEM, attack.variant)
        verdict = found["verdict"] or "refused"
        what = f"{attack.name}: {verdict} after {found['seconds']} s: {found['detail'][:160]}"
        self.check(verdict in attack.verdicts and attack.words in found["detail"], " ".join(what.split()))
        written = self.log.stat().st_size - written
        if written > MOST_LOG:
            self.check(False, f"{attack.name}: the log has {written} bytes more")
        row = {"expected": attack.verdicts, **found, "verdict": verdict, "log_bytes": written}
        self.after(attack.name, row, str(found))

    def submit(self, author, name, change, manifest, verdict):
        seconds, result = author.submit(author.kernel(name, change, manifest), name)
        trial = (result["rows"][0].get("trial") or {}).get("verdict") if result["rows"] else None
        what = f"submission {name}: {result['decision']}, {trial} after {seconds:.1f} s: {result['reason'][:160]}"
        self.check((result["decision"], trial) == ("REVERT", verdict), " ".join(what.split()))
        row = {"expected": [verdict], "verdict": trial, "seconds": round(seconds, 2), "detail": result["reason"]}
        self.after(f"submission {name}", row, str(result))

    def submit_what_is_refused(self, author, name, change, manifest, words):
        folder = author.kernel(name, change, manifest)
        begin = time.monotonic()
        told = author.run(*author.login, "submit", str(folder), "--problem", PROBLEM)
        seconds = round(time.monotonic() - begin, 2)
        self.check(
            told.returncode == 2 and words in told.stderr, f"submission {name}: refused: {told.stderr.strip()[:240]}"
        )
        row = {"expected": ["refused"], "verdict": f"exit {told.returncode}", "seconds": seconds, "detail": told.stderr}
        self.after(f"submission {name}", row, told.stdout + told.stderr)


def look_at_workers(daemon, check):
    """While the daemon lives: a worker of the device, compilers, and nothing that they started."""
    now = remains.descendants(daemon.process.pid)
    roles = [each.role for each in now]
    theirs = [each for each in now if each.parent != daemon.process.pid or each.role not in ("compile", "device")]
    check(roles.count("device") <= 1 and not theirs, f"workers are {sorted(roles)}, and have started {theirs}")


def look_at_the_log(log, check):
    lines = log.read_text(errors="replace").splitlines()
    forged = [line for line in lines if line.startswith(FORGED)]
    check(not forged, f"no line of the log is a kernel's own: {forged[:1]}")
    check(SECRET not in "\n".join(lines), "no word of the secret file is in the log")


def holders_of_the_secret(data):
    """Files below the data directory, the database among them, that have a word of the secret file."""
    return [str(path) for path in data.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def suites_attacks():
    return [Attack(name, f"{name}:BAD=1", [verdict]) for name, verdict in ADVERSARIAL.items()]


def besiege(bundle, directory, check):
    """Runs all of it. What was found of each attack."""
    secret = directory / "secret.h"
    secret.write_text(f"{SECRET}\n")
    cage = walls(bundle, directory)
    kernels = [ROOT / "kernels_src", ROOT / "tests/families", write_families(directory, secret)]
    both = f"--listen=unix:{directory}/attuned.sock,127.0.0.1:0"
    temporary = directory / "temporary"
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)  # the daemon's and its workers'
    limits = [
        f"--trial_timeout={TRIAL_S}s",
        f"--submission_trial_timeout={TRIAL_S}s",
        f"--compile_timeout={COMPILE_S}s",
    ]
    with Daemon(bundle, directory, kernels, [both, *limits]) as daemon:
        siege = Siege(daemon, directory, check)
        if not any("--cage" in worker.command for worker in siege.workers if worker.role == "compile"):
            cage = "not used (docs/design.md, The cage)"
        print(f"the cage of compilers is {cage}", flush=True)
        for attack in [*suites_attacks(), *ATTACKS]:
            if attack.needs_cage and cage != "whole":
                print(f"left out: {attack.name}: compilers are not caged here: {cage}", flush=True)
                continue
            siege.attack(attack)
        author = Intruder(daemon, siege.log, directory)
        for refused in REFUSED:
            siege.submit_what_is_refused(author, *refused)
        for submitted in SUBMITTED:
            siege.submit(author, *submitted)
        look_at_workers(daemon, check)
    check(daemon.process.returncode == 0, f"the daemon ended with {daemon.process.returncode}")
    left = remains.living(siege.workers)
    check(not left, f"no process is left: {left}")
    held = remains.held_locks(directory / "locks")
    check(not held, f"no lock is held: {held}")
    # The next worker removes what those that were killed have left (server/device/opencl/pocl_environment.h), and may
    # itself leave some.
    walls(bundle, directory)
    files = sorted(path.relative_to(temporary) for path in temporary.rglob("*") if path.is_file())
    check(len({path.parts[:2] for path in files}) <= 1, f"temporary files of one worker at most are left: {files}")
    look_at_the_log(siege.log, check)
    holders = holders_of_the_secret(daemon.data)
    check(not holders, f"nothing that is kept has a word of the secret file: {holders}")
    return {"cage": cage, "attacks": siege.rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    check = Checks()
    before = remains.files()
    with tempfile.TemporaryDirectory(prefix="attune-attacks-") as directory:
        found = besiege(arguments.bundle.resolve(), pathlib.Path(directory), check)
    left = sorted(remains.files() - before)
    check(not left, f"no file is left in {', '.join(remains.FOLDERS)}: {left}")
    (arguments.out / "attacks.json").write_text(json.dumps({"failed": check.failed, **found}, indent=1) + "\n")
    print(f"{len(found['attacks'])} attacks, {len(check.failed)} failures")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
