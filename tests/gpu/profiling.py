#!/usr/bin/env python3
"""attune profile, sanitize and explain against a daemon on a GPU host: python3 tests/gpu/profiling.py --bundle BUNDLE --out OUT

From a bundle (deploy/bundle); about five minutes. Three problems with different bounds are tuned for a moment, explained, profiled, and
explained again; a proper variant is sanitized, and one of tests/families/unsanitary_cuda, whose defect must be reported.
Writes OUT/profiling.json; ends with 1 where something does not hold.
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import code_paths
from daemon import ROOT, Daemon

# Problem: what bounds its fastest variant, as words of the sentence.
BOUNDS = {
    "b1.h1.q128.d64.f16": ("too few CTAs",),
    "b8.h32.kvh8.q1.kv16384.d128.f16": ("DRAM",),
    "b4.h16.q4096.d128.f16": ("shared memory", "the tensor pipe", "issue slots", "latency"),
}
TUNING = ("--family=attention_mma", "--strategy=random", "--seed=3", "--max-trials=12")
LONGEST_S = 120
DEFECT = 4  # out of bounds


class Checks:
    def __init__(self):
        self.failed = []

    def __call__(self, holds, what):
        print("ok    " if holds else "FAILED", what, flush=True)
        if not holds:
            self.failed.append(what)


def timed(daemon, *arguments):
    begin = time.monotonic()
    lines = daemon.attune(*arguments, check=False)
    return time.monotonic() - begin, lines[-1] if lines else {}


def bounds_of(explanation):
    return [finding["bound"] for finding in explanation["findings"]]


def profile(daemon, problem, words, check):
    daemon.attune("tune", problem, *TUNING)
    before = daemon.attune("explain", problem)[0]
    seconds, result = timed(daemon, "profile", problem)
    found = {"problem": problem, "seconds": seconds, "bound": result.get("bound"), "before": before["findings"]}
    if result.get("type") != "profile_result":
        check(False, f"{problem} is profiled: {result}")
        return found
    after = daemon.attune("explain", problem)[0]
    counters = {kernel["entry"]: kernel["counters"] for kernel in result["trial"]["profile"]["kernels"]}
    check(seconds < LONGEST_S, f"{problem}: profiled in {seconds:.1f} s, bound by {result['bound']}")
    check(any(word in result["bound"] for word in words), f"{problem}: bound by one of {words}")
    check(
        all({"duration_us", "sm_throughput", "occupancy", "dram_bytes", "ctas"} <= set(of) for of in counters.values()),
        f"{problem}: the minimal counters are there",
    )
    check("COUNTERS" not in bounds_of(before), f"{problem}: explain has no counters before")
    check(bounds_of(after)[0] == "COUNTERS", f"{problem}: explain begins with them after")
    stored = daemon.attune("trials", result["trial"]["trial"])[0]
    check(stored["profile"] == result["trial"]["profile"], f"{problem}: they are kept with {stored['trial']}")
    return {
        **found,
        "trial": stored["trial"],
        "variant": stored["variant"],
        "profile": stored["profile"],
        "after": after["findings"],
    }


def sanitize(daemon, bad, check):
    """Of a variant of unsanitary_cuda: 0 is proper."""
    problem, variant = code_paths.PLANTED_PROBLEM, f"unsanitary_cuda:BAD={bad}"
    daemon.attune("evaluate", problem, variant, check=False)
    seconds, result = timed(daemon, "sanitize", problem, "--variant", variant)
    if result.get("type") != "sanitize_result":
        check(False, f"{variant} is sanitized: {result}")
        return {"variant": variant, "seconds": seconds}
    errors = {run["tool"]: run["errors"] for run in result["trial"]["sanitizing"]["runs"]}
    check(seconds < LONGEST_S, f"{variant}: sanitized in {seconds:.1f} s, {result['reason']}")
    if bad:
        tool = code_paths.PLANTED[bad]
        check(errors.get(tool, 0) > 0 and not result["clean"], f"{variant}: {tool} reports it")
    else:
        check(result["clean"] and len(errors) == 4, f"{variant}: clean under all four")
    return {"variant": variant, "seconds": seconds, "clean": result["clean"], "sanitizing": result["trial"]["sanitizing"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    check = Checks()
    kernels = [ROOT / "kernels_src", ROOT / "tests/families"]
    with tempfile.TemporaryDirectory(prefix="attune-profile-") as directory:
        with Daemon(arguments.bundle.resolve(), pathlib.Path(directory), kernels) as daemon:
            result = {
                "profiles": [profile(daemon, problem, words, check) for problem, words in BOUNDS.items()],
                "sanitized": [sanitize(daemon, bad, check) for bad in (0, DEFECT)],
            }
    result["failed"] = check.failed
    (arguments.out / "profiling.json").write_text(json.dumps(result, indent=1) + "\n")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
