"""The GPU suite: run it on a host with a GPU, from a bundle (deploy/bundle). docs/gpu-host.md has the commands.

Tunes real problems over all CUDA families, checks many shapes and features with sampled variants, proves that every
adversarial family gets its verdict, and writes

    OUT/evidence.json    source hashes, device, and verdict and error of every variant tried: commit it as
                         tests/gpu/evidence.json
    OUT/trials.jsonl.gz  every trial with its figures: docs/benchmarks are made from it (tests/gpu/toggles.py)
"""

import argparse
import collections
import datetime
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import evidence

ROOT = evidence.ROOT

# Tuned over every variant, in this order.
EXHAUSTIVE = ["b1.h1.q128.d64.f16", "b2.h8.q512.d64.f16"]

# Checked with a random sample of variants each: lengths that no tile divides, every head dimension, both dtypes, every
# mask, grouped heads, both layouts, log-sum-exp, fully masked rows, few and many keys.
SAMPLED = [
    "b1.h1.q1.d64.f16",
    "b1.h2.q239.kv1.d64.f16.lse",
    "b1.h2.q799.kv3.d128.f16",
    "b2.h4.kvh2.q113.kv203.d96.bf16.causal-br.lse",
    "b1.h2.q203.kv113.d64.f16.causal-br.lse",
    "b1.h2.q1023.kv1024.d64.bf16.causal",
    "b1.h8.kvh1.q256.d32.f16.causal.bshd",
    "b2.h4.kvh2.q300.d256.f16.causal",
    "b1.h32.kvh8.q1.kv8192.d128.bf16",
    "b2.h2.q512.d128.f16.causal.bshd.lse",
    "b1.h2.q65.kv700.d256.bf16",
]

# One variant of each family by itself, and what the job must say of it.
ADVERSARIAL = {
    "hang_cuda": "TIMEOUT",
    "crash_cuda": "CRASHED",
    "out_of_bounds_cuda": "OUT_OF_BOUNDS",
    "wrong_rows_cuda": "WRONG_RESULT",
    "compile_error_cuda": "COMPILE_ERROR",
}


class Daemon:
    def __init__(self, bundle, directory, kernels, flags=()):
        self.bundle = bundle
        self.address = f"unix:{directory}/attuned.sock"
        self.log = open(directory / "attuned.log", "a")
        self.process = subprocess.Popen(
            [
                bundle / "attuned",
                f"--listen={self.address}",
                f"--data_dir={directory}/data",
                f"--lock_dir={directory}/locks",
                f"--worker={bundle}/attune-worker",
                "--kernels_dir=" + ",".join(str(path) for path in kernels),
                *flags,
            ],
            stderr=self.log,
        )
        end = time.monotonic() + 60
        while not (directory / "attuned.sock").exists():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"the daemon did not start:\n{(directory / 'attuned.log').read_text()}")
            time.sleep(0.05)

    def attune(self, *arguments, check=True):
        result = subprocess.run(
            [self.bundle / "attune", "--server", self.address, "--format=json", *arguments],
            capture_output=True,
            text=True,
        )
        if check and result.returncode != 0:
            sys.exit(f"attune {' '.join(arguments)} ended with {result.returncode}: {result.stderr[-2000:]}")
        return [json.loads(line) for line in result.stdout.splitlines()]

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def tune(daemon, problem, *arguments):
    start = time.monotonic()
    daemon.attune("tune", problem, "--quiet", *arguments)
    trials = daemon.attune("trials", problem, "--all")
    verdicts = collections.Counter(trial["verdict"] for trial in trials)
    print(f"{problem:48} {len(trials):6} trials in {time.monotonic() - start:6.1f} s  {dict(verdicts)}", flush=True)
    return trials


def tolerance(problem):
    return 1e-2 if "bf16" in problem else 1e-3


def check_trials(problem, trials, failures):
    """Every variant has a verdict, none is blamed on the infrastructure, and the right ones are right."""
    if not trials:
        failures.append(f"{problem}: no trial")
    for trial in trials:
        if trial["verdict"] in ("LOST", "UNKNOWN", ""):
            failures.append(f"{problem}: {trial['variant']} is {trial['verdict']}: {trial.get('detail')}")
        if trial["verdict"] in ("WRONG_RESULT", "OUT_OF_BOUNDS", "CRASHED", "TIMEOUT", "COMPILE_ERROR", "UNSTABLE"):
            failures.append(f"{problem}: {trial['variant']} is {trial['verdict']}: {trial.get('detail')}")
    if not any(trial["verdict"] == "OK" for trial in trials):
        failures.append(f"{problem}: no variant is OK")


def adversarial(bundle, scratch, failures):
    """Each bad variant gets its verdict, its good twin stays OK, and the daemon answers meanwhile."""
    directory = scratch / "adversarial"
    directory.mkdir()
    daemon = Daemon(
        bundle, directory, [ROOT / "kernels_src", ROOT / "tests/families"], ["--trial_timeout=5s"]
    )
    seen = {}
    problem = "b1.h1.q64.d64.f16"
    for family, expected in ADVERSARIAL.items():
        trials = [t for t in tune(daemon, problem, "--families", family) if t["family"] == family]
        verdicts = sorted({t["verdict"] for t in trials})
        seen[family] = verdicts
        if verdicts != sorted({"OK", expected}):
            failures.append(f"{family}: verdicts are {verdicts}, expected OK and {expected}")
    daemon.stop()
    return seen


def unit_tests(bundle, failures):
    results = {}
    for test in sorted(bundle.glob("*_gpu_test")):
        run = subprocess.run([test], capture_output=True, text=True)
        summary = re.findall(r"\[  (?:PASSED|SKIPPED|FAILED)  \].*", run.stdout)
        results[test.name] = {"exit": run.returncode, "summary": summary}
        print(f"{test.name}: exit {run.returncode} {summary}", flush=True)
        if run.returncode != 0:
            failures.append(f"{test.name}: exit {run.returncode}\n{run.stdout[-3000:]}")
    return results


def brief(trial):
    """What the evidence keeps of a trial."""
    kept = {"variant": trial["variant"], "verdict": trial["verdict"]}
    for key in ("max_abs_error", "detail"):
        if trial.get(key):
            kept[key] = trial[key]
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=int, default=60, help="variants tried of each sampled problem")
    parser.add_argument("--skip-exhaustive", action="store_true", help="for a quick look; writes no evidence")
    arguments = parser.parse_args()
    bundle = arguments.bundle.resolve()
    os.environ["LD_LIBRARY_PATH"] = f"{bundle}:/usr/local/cuda/lib64:" + os.environ.get("LD_LIBRARY_PATH", "")
    arguments.out.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="attune-gpu-"))
    failures = []
    report = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": "tests/gpu/suite.py --bundle BUNDLE --out OUT",
        "sources": evidence.source_hashes(),
        "unit_tests": unit_tests(bundle, failures),
    }

    main_directory = scratch / "main"
    main_directory.mkdir()
    daemon = Daemon(bundle, main_directory, [ROOT / "kernels_src"])
    report["device"] = [line for line in daemon.attune("devices") if line.get("id") == "cuda:0"]
    everything, report["problems"] = [], {}
    for problem in [] if arguments.skip_exhaustive else EXHAUSTIVE:
        everything += tune(daemon, problem)
    for problem in SAMPLED:
        everything += tune(daemon, problem, "--strategy=random", f"--trials={arguments.samples}")
    best = {problem: daemon.attune("best", problem) for problem in EXHAUSTIVE + SAMPLED} if everything else {}
    daemon.stop()

    # The L4's code path: its limits, and compute_89 PTX that the driver compiles.
    emulated_directory = scratch / "l4"
    emulated_directory.mkdir()
    daemon = Daemon(bundle, emulated_directory, [ROOT / "kernels_src"], ["--emulate=l4"])
    emulated = []
    for problem in EXHAUSTIVE + SAMPLED:
        emulated += tune(daemon, problem, "--strategy=random", f"--trials={arguments.samples}")
    daemon.stop()

    for name, trials in (("problems", everything), ("problems_as_l4", emulated)):
        by_problem = collections.defaultdict(list)
        for trial in trials:
            by_problem[trial["problem"]].append(trial)
        report[name] = {}
        for problem, of_problem in by_problem.items():
            check_trials(problem, of_problem, failures)
            report[name][problem] = [brief(trial) for trial in of_problem]
    report["adversarial"] = adversarial(bundle, scratch, failures)
    report["failures"] = failures

    with gzip.open(arguments.out / "trials.jsonl.gz", "wt") as out:
        for trial in everything:
            out.write(json.dumps(trial) + "\n")
    (arguments.out / "best.json").write_text(json.dumps(best, indent=1))
    if not arguments.skip_exhaustive:
        (arguments.out / "evidence.json").write_text(json.dumps(report, separators=(",", ":")).replace('},{"variant"', '},\n{"variant"') + "\n")
    for failure in failures[:40]:
        print(f"FAILED {failure}")
    print(f"{len(everything) + len(emulated)} trials, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
