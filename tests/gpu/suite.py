"""The GPU suite: run it on a host with a GPU, from a bundle (deploy/bundle). docs/gpu-host.md has the commands.

Tunes real problems over all CUDA families, checks many shapes and features with sampled variants, proves that every
adversarial family gets its verdict, and writes

    OUT/evidence.json    source hashes, device, and verdict and error of every variant tried: commit it as
                         tests/gpu/evidence.json
    OUT/PART.jsonl.gz    every trial with its figures: docs/benchmarks are made from it (tests/gpu/toggles.py)
"""

import argparse
import collections
import concurrent.futures
import datetime
import gzip
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import evidence
from daemon import Daemon, environment
from grid import bench_grid

ROOT = evidence.ROOT

# Tuned over every variant, in this order: families by themselves, the large ones in pieces, so that daemons can share
# them. `exhausted` says whether they are all of a space.
EXHAUSTIVE = ["b1.h1.q128.d64.f16", "b2.h8.q512.d64.f16"]
PIECES = [
    ("--family=attention_hopper",),
    ("--family=attention_mma",),
    *(
        (f"--family={family}", f"--where=BLOCK_N {keys}")
        for family in ("attention_simt", "attention_wmma")
        for keys in ("< 32", "== 32", "> 32")
    ),
]

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
    "b1.h2.q1024.d128.f16",
    "b2.h8.kvh2.q40.kv900.d192.f16.causal-br.lse",
    "b4.h8.kvh2.q1.kv4097.d128.f16.lse",
    "b8.h4.q300.d64.f16.causal",
]

# The family with most code paths, by itself: teams, splits with both ways to join them, persistent, packed heads.
MMA = [
    "b1.h1.q512.d64.f16.lse",
    "b2.h8.q1024.d128.f16.causal.lse",
    "b1.h8.kvh2.q4.kv3000.d128.bf16.causal-br.lse",
    "b1.h8.kvh1.q70.kv2100.d160.f16.bshd",
    "b1.h64.q256.kv1024.d64.f16.causal-br.lse",
]

# What only that family computes: windows, softcap, sinks, any head dimension, sequences of different lengths (some
# empty, queries longer than keys), pages of any size (one key, no divisor of a tile, larger than a tile).
FEATURES = [
    "b2.h4.kvh2.q113.kv203.d64.f16.window64.lse",
    "b1.h2.q1023.kv1024.d128.bf16.window100",
    "b1.h4.q300.d128.f16.causal.softcap30.lse",
    "b1.h2.q100.kv130.d8.f16.lse",
    "b2.h4.q239.kv799.d40.f16.causal-br.bshd",
    "b1.h2.q799.kv113.d72.bf16.causal-br.lse",
    "b1.h2.q1023.kv1024.d136.f16.causal",
    "b2.h40.q515.kv300.d64.f16.window64.lse",
    "b2.h8.kvh2.q64.kv300.d64.f16.causal-br.sinks.lse",
    "b2.h8.kvh2.q1.kv3000.d128.bf16.sinks",
    "b4.h4.kvh2.q113.kv203.d64.f16.causal-br.varlen.lse",
    "b3.h8.kvh2.q1023.kv1024.d128.f16.causal.varlen.lse",
    "b8.h8.kvh2.q1.kv4097.d128.f16.varlen",
    "b4.h4.q50.kv203.d64.f16.page1.lse",
    "b4.h8.kvh2.q9.kv1000.d128.bf16.causal-br.page7",
    "b8.h8.kvh2.q1.kv4097.d128.f16.page16.lse",
    "b2.h4.q300.kv799.d64.f16.causal-br.page256",
    "b4.h8.kvh2.q113.kv1000.d128.f16.causal-br.varlen.page128.lse",
    "b4.h4.q113.kv203.d80.f16.causal-br.varlen.page32.lse",
    "b4.h8.kvh2.q70.kv500.d96.bf16.window40.softcap20.sinks.varlen.page16.lse",
]

# 8-bit K and V, of both kinds, by the families that compute them: every feature, head dimensions of one to sixteen chunks.
EIGHT_BIT = [
    "b2.h4.kvh2.q113.kv203.d64.f16.kve4m3.lse",
    "b2.h4.kvh2.q64.kv203.d128.bf16.kve5m2.causal-br.bshd",
    "b3.h8.kvh2.q1.kv1000.d128.f16.kve4m3",
    "b2.h32.kvh8.q1.kv8192.d128.bf16.kve4m3",
    "b1.h2.q1023.kv1024.d256.f16.kve5m2.causal",
    "b2.h4.q100.kv130.d16.f16.kve4m3.lse",
    "b2.h4.q239.kv799.d48.bf16.kve4m3.causal-br",
    "b2.h4.q300.d96.f16.kve4m3.window64.softcap20.sinks.lse",
    "b4.h4.kvh2.q113.kv203.d64.f16.kve5m2.causal-br.varlen.lse",
    "b8.h8.kvh2.q1.kv4097.d128.f16.kve4m3.page16.lse",
    "b4.h8.kvh2.q70.kv500.d128.bf16.kve4m3.window40.softcap20.sinks.varlen.page7.lse",
    "b1.h16.q1024.d128.f16.kve4m3",
]

# The family for Hopper, by itself: one to three consumers, teams, persistent or not, panels of 64 and 32 columns, tails
# of rows and keys, rows that see nothing, packed heads, splits, lengths of their own, pages; every feature that it has.
HOPPER = [
    "b2.h40.q300.kv333.d64.f16.lse",
    "b4.h16.kvh4.q1023.kv1024.d128.bf16.causal-br.lse",
    "b2.h40.q203.kv113.d96.f16.causal-br.bshd.lse",
    "b1.h70.q700.d256.f16.causal",
    "b1.h70.q300.kv799.d192.bf16.window100.softcap20.sinks.lse",
    "b1.h4.q130.kv70.d64.f16.sinks",
    "b2.h8.q500.d64.f16.causal.lse",
    "b4.h32.kvh8.q32.kv4096.d128.f16.causal-br",
    "b1.h8.q100.kv5000.d96.bf16.window3000.sinks.lse",
    "b5.h8.kvh2.q300.kv799.d64.f16.causal-br.varlen.lse",
    "b4.h8.kvh2.q70.kv3000.d128.bf16.window900.softcap20.sinks.varlen.page16.lse",
    "b40.h8.kvh4.q300.kv900.d192.f16.page64.lse",
]
NEEDS = {"--family=attention_hopper": 90}  # the least compute capability; other devices skip its runs

# One variant of each family by itself, and what the job must say of it.
ADVERSARIAL = {
    "hang_cuda": "TIMEOUT",
    "crash_cuda": "CRASHED",
    "out_of_bounds_cuda": "OUT_OF_BOUNDS",
    "wrong_rows_cuda": "WRONG_RESULT",
    "compile_error_cuda": "COMPILE_ERROR",
    "late_write_cuda": "WRONG_RESULT",
    "leaves_scratch_cuda": "OUT_OF_BOUNDS",
    # These misbehave only once they are timed.
    "changes_inputs_timed_cuda": "OUT_OF_BOUNDS",
    "recognizes_poison_cuda": "WRONG_RESULT",
    "counts_runs_cuda": "WRONG_RESULT",
    "counts_runs_in_global_cuda": "WRONG_RESULT",
    "keeps_output_cuda": "WRONG_RESULT",
    "caches_results_cuda": "WRONG_RESULT",
}

# Families that are right only if launches are what their recipes say, and the least compute capability that they need.
FAITHFUL = {"tensor_map_cuda": 90}


def is_unsettled(trial):
    """UNSTABLE for its times alone; one whose results differ is UNSTABLE, too."""
    return trial["verdict"] == "UNSTABLE" and trial["detail"].startswith("its times do not settle")


def newest(trials):
    """Of each variant, from a list that is newest first."""
    return list({trial["variant"]: trial for trial in reversed(trials)}.values())


def tune(daemon, problem, *arguments):
    """The newest trial of each variant, oldest first; all variants unless the arguments name a strategy. What did not
    settle is tried once more, as the next job does: parts side by side disturb each other."""
    start = time.monotonic()
    if not any(argument.startswith("--strategy") for argument in arguments):
        arguments = ("--strategy=exhaustive", *arguments)
    for _ in range(2):
        daemon.attune("tune", problem, "--check-all", *arguments, check=False)
        trials = newest(daemon.attune("trials", problem, "--limit", "0"))
        if not any(is_unsettled(trial) for trial in trials):
            break
    verdicts = collections.Counter(trial["verdict"] for trial in trials)
    print(f"{problem:48} {len(trials):6} trials in {time.monotonic() - start:6.1f} s  {dict(verdicts)}", flush=True)
    return trials


def check_trials(problem, trials, failures):
    """Every variant has a verdict that is its own doing: OK, INFEASIBLE (it spills), or, with products accumulated in
    fp16, WRONG_RESULT, which is what the tolerance says of most of them."""
    if not any(trial["verdict"] == "OK" for trial in trials):
        failures.append(f"{problem}: no variant is OK")
    for trial in trials:
        rounds = trial["verdict"] == "WRONG_RESULT" and trial["parameters"].get("ACC") == 16
        if trial["verdict"] not in ("OK", "INFEASIBLE") and not rounds:
            failures.append(f"{problem}: {trial['variant']} is {trial['verdict']}: {trial.get('detail')}")


def adversarial(bundle, scratch, failures):
    """Each bad variant gets its verdict, its good twin stays OK, and the daemon answers meanwhile. All of a faithful
    family are OK."""
    directory = scratch / "adversarial"
    directory.mkdir()
    daemon = Daemon(bundle, directory, [ROOT / "kernels_src", ROOT / "tests/families"], ["--trial_timeout=5s"])
    seen = {}
    problem = "b1.h1.q64.d64.f16"
    device = next(line for line in daemon.attune("devices") if line.get("device") == "cuda:0")
    faithful = {family: "OK" for family, least in FAITHFUL.items() if device["compute_capability"] >= least}
    for family, expected in {**ADVERSARIAL, **faithful}.items():
        trials = [t for t in tune(daemon, problem, "--family", family) if t["family"] == family]
        verdicts = sorted({t["verdict"] for t in trials})
        seen[family] = verdicts
        if verdicts != sorted({"OK", expected}):
            failures.append(f"{family}: verdicts are {verdicts}, expected OK and {expected}")
    daemon.stop()
    return seen


def unit_tests(bundle, failures):
    results = {}
    for test in sorted(bundle.glob("*_gpu_test")):
        run = subprocess.run([test], capture_output=True, text=True, env=environment(bundle))
        summary = re.findall(r"\[  (?:PASSED|SKIPPED|FAILED)  \].*", run.stdout)
        results[test.name] = {"exit": run.returncode, "summary": summary}
        print(f"{test.name}: exit {run.returncode} {summary}", flush=True)
        if run.returncode != 0:
            failures.append(f"{test.name}: exit {run.returncode}\n{run.stdout[-3000:]}")
    return results


def brief(trial):
    """What the evidence keeps of a trial."""
    kept = {"variant": trial["variant"], "verdict": trial["verdict"]}
    if trial.get("max_abs_error"):
        kept["max_abs_error"] = float(f"{trial['max_abs_error']:.3g}")
    if trial["verdict"] not in ("OK", "WRONG_RESULT"):
        kept["detail"] = trial["detail"]
    return kept


def tune_all(bundle, scratch, name, runs, flags, failures):
    """Runs (problem, arguments of tune) on a daemon of its own. Returns what the evidence keeps, all trials, the
    device as the daemon sees it, and the best answers."""
    directory = scratch / name
    directory.mkdir()
    daemon = Daemon(bundle, directory, [ROOT / "kernels_src"], flags)
    device = [line for line in daemon.attune("devices") if line.get("device") == "cuda:0"]
    tried, best = {}, {}
    for problem, arguments in runs:
        if any(device[0]["compute_capability"] < NEEDS.get(argument, 0) for argument in arguments):
            continue
        tried[problem] = tune(daemon, problem, *arguments)
        check_trials(problem, tried[problem], failures)
        best[problem] = daemon.attune("best", problem, check=False)
    daemon.stop()
    kept = {problem: [brief(trial) for trial in trials] for problem, trials in tried.items()}
    return {"device": device, "problems": kept}, list(itertools.chain(*tried.values())), list(itertools.chain(*best.values()))


def whole_spaces(bundle, scratch, problems):
    """Of each problem the texts of all variants that are feasible on the device."""
    with Daemon(bundle, scratch, [ROOT / "kernels_src"]) as daemon:
        return {
            problem: {variant["variant"] for variant in daemon.attune("space", problem, "--list")} for problem in problems
        }


def exhausted(spaces, tried, failures):
    """Every variant of `spaces` is among what was tried of its problem, and nothing else."""
    for problem, variants in spaces.items():
        found = {trial["variant"] for trial in tried.get(problem, [])}
        for what, these in (("was not tried", variants - found), ("is not feasible", found - variants)):
            if these:
                failures.append(f"{problem}: {len(these)} variants: each {what}: {min(these)}")


def shares(runs, count):
    """`runs` dealt out to so many lists at most, none of them empty."""
    return [runs[first::count] for first in range(min(count, len(runs)))]


def joined(runs, made):
    """tune_all's results of the shares of `runs` as if they were of one."""
    found = collections.defaultdict(list)
    for kept, _, _ in made:
        for problem, trials in kept["problems"].items():
            found[problem] += trials
    problems = {p: sorted(found[p], key=lambda trial: trial["variant"]) for p in dict(runs) if p in found}
    everything = [trial for _, trials, _ in made for trial in trials]
    return {"device": made[0][0]["device"], "problems": problems}, everything, [each for *_, best in made for each in best]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=int, default=60, help="variants tried of each sampled problem")
    parser.add_argument(
        "--exhaustive", nargs="+", default=EXHAUSTIVE, metavar="PROBLEM", help="tuned over every variant: minutes each"
    )
    parser.add_argument("--parts", nargs="+", choices=evidence.PARTS, default=evidence.PARTS, help="run only these")
    parser.add_argument("--join", type=pathlib.Path, help="evidence of the other parts, from the same sources")
    parser.add_argument(
        "--at-once",
        type=int,
        default=1,
        help="daemons side by side, which share the problems of each part: sooner done, but timings are contended",
    )
    arguments = parser.parse_args()
    bundle = arguments.bundle.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="attune-gpu-"))
    sources = evidence.source_hashes()
    report = {"command": " ".join(["tests/gpu/suite.py", *sys.argv[1:]]), "sources": sources, "parts": {}, "failures": []}
    if arguments.join:
        report = json.loads(arguments.join.read_text())
        if report.get("sources") != sources:
            sys.exit(f"{arguments.join} was made from other sources; run its parts again")
    failures = report["failures"]
    report["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")

    sample = ("--strategy=random", f"--max-trials={arguments.samples}", "--seed=1")
    pair = ("--strategy=random", "--max-trials=2", "--seed=1")
    samples = [(problem, sample) for problem in SAMPLED]
    samples += [(problem, (*sample, "--family=attention_mma")) for problem in MMA + FEATURES]
    samples += [(problem, sample) for problem in EIGHT_BIT]
    runs = {
        "exhaustive": ([(problem, piece) for problem in arguments.exhaustive for piece in PIECES], []),
        "sampled": (samples + [(problem, (*sample, "--family=attention_hopper")) for problem in HOPPER], []),
        # The L4's code path: its limits, and compute_89 PTX that the driver compiles.
        "as_l4": ([(problem, sample) for problem in EXHAUSTIVE] + samples, ["--emulate=l4"]),
        # And on the bench's whole grid: the guess of the family that is fastest there, and another of its variants.
        "l4_grid": ([(problem, (*pair, "--family=attention_mma")) for problem in bench_grid()], ["--emulate=l4"]),
    }

    def tasks(part):
        """What is to be run of a part, each on a daemon of its own."""
        if part == "unit_tests":
            return [lambda: unit_tests(bundle, failures)]
        if part == "adversarial":
            return [lambda: adversarial(bundle, scratch, failures)]
        problems, flags = runs[part]
        return [
            lambda i=i, share=share: tune_all(bundle, scratch, f"{part}-{i}", share, flags, failures)
            for i, share in enumerate(shares(problems, arguments.at_once))
        ]

    def found(part, made):
        """What the evidence keeps of a part, and what goes into its own file."""
        if part not in runs:
            return made[0], []
        kept, trials, best = joined(runs[part][0], made)
        return kept, trials + best

    begun = time.monotonic()

    def keep(part, made):
        report["parts"][part], lines = found(part, made)
        if part == "exhaustive":
            (scratch / "spaces").mkdir()
            spaces = whole_spaces(bundle, scratch / "spaces", arguments.exhaustive)
            exhausted(spaces, report["parts"][part]["problems"], failures)
        print(f"== {part} done after {time.monotonic() - begun:.0f} s", flush=True)
        if lines:
            with gzip.open(arguments.out / f"{part}.jsonl.gz", "wt") as out:
                for line in lines:
                    out.write(json.dumps(line) + "\n")
        evidence.write(report, arguments.out / "evidence.json")

    # One of the unit tests is that nobody else computes on the device.
    alone = [part for part in arguments.parts if part == "unit_tests"]
    for part in alone:
        keep(part, [task() for task in tasks(part)])
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        # One that mostly waits for what hangs comes first.
        first = sorted(arguments.parts, key=lambda part: part != "adversarial")
        started = {part: [pool.submit(task) for task in tasks(part)] for part in first if part not in alone}
        # A part's evidence is there as soon as its last task is done: a run that is stopped keeps whole parts.
        left = dict(started)
        while left:
            concurrent.futures.wait(
                [task for of in left.values() for task in of if not task.done()],
                return_when=concurrent.futures.FIRST_COMPLETED,
            )
            for part in [part for part, of in left.items() if all(task.done() for task in of)]:
                keep(part, [task.result() for task in left.pop(part)])
    for failure in failures[:40]:
        print(f"FAILED {failure}")
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
