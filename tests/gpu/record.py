#!/usr/bin/env python3
"""Records spaces on a GPU host for attune-replay (docs/replay.md), from a bundle with attune-replay
(deploy/bundle build bundle attune-replay):

    python3 tests/gpu/record.py --bundle BUNDLE --out OUT [--family FAMILY] [--data DIR] [--retime N] [--seconds S] \
        [PROBLEM ...]

Tunes every variant of the family for each problem and writes OUT/PROBLEM.rec. Half a minute a problem on 16 cores,
which is mostly compiling; what the database of --data knows is not tried again. With --retime the fastest 2 %, five at
least, of each are then tried again by N daemons, one after the other: a recording has the time in the middle
(docs/replay.md), and so an optimum that is no lucky draw. No problem is tuned later than --seconds; one left out so is
not recorded. Ends with 1 where one could not be recorded.
"""

import argparse
import math
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from daemon import ROOT, Daemon, ended

# Few CTAs and many, an odd number of them, masks, grouped heads, decoding, large heads.
PROBLEMS = [
    "b1.h1.q128.d64.f16",
    "b2.h8.q512.d64.f16",
    "b1.h32.kvh8.q1.kv8192.d128.f16",
    "b7.h12.q197.d64.f16",
    "b1.h1.q64.d64.f16",
    "b1.h3.q300.d64.f16.causal",
    "b1.h32.kvh8.q2048.d128.f16.causal",
    "b2.h8.q512.d64.f16.causal",
    "b4.h32.kvh4.q1.kv3000.d64.bf16",
    "b2.h16.q1024.d256.bf16",
]
RECORD_S = 120
RETIMED = 0.02  # of a space's good variants
RETIMED_LEAST = 5


def fastest(daemon, problem, family):
    """The variants to time again, fastest first."""
    options = [f"--family={family}", "--verdict=OK", "--fastest", "--limit=0"]
    good = list(dict.fromkeys(trial["variant"] for trial in daemon.attune("trials", problem, *options)))
    return good[: max(RETIMED_LEAST, math.ceil(RETIMED * len(good)))]


def try_again(daemon, problem, family, variants):
    """Each of `variants` once more, and no other."""
    required = [f"--require={variant}" for variant in variants]
    options = ["--strategy=random", f"--max-trials={len(variants)}", "--retry-known", "--check-all"]
    daemon.attune("tune", problem, f"--family={family}", *options, *required, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--family", default="attention_mma")
    parser.add_argument("--data", type=pathlib.Path, help="data directory, kept")
    parser.add_argument("--retime", type=int, default=0, metavar="N")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", default=PROBLEMS)
    options = parser.parse_args()
    bundle = options.bundle.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    failed = 0
    with tempfile.TemporaryDirectory(prefix="attune-record-") as directory:
        scratch = pathlib.Path(directory)
        data = options.data or scratch / "data"
        data.mkdir(parents=True, exist_ok=True)

        def daemon():
            return Daemon(bundle, scratch, [ROOT / "kernels_src"], data=data)

        again = {}
        with daemon() as first:
            for problem in options.problems:
                begin = time.monotonic()
                if begin > end:
                    print(f"{problem}: left out, the time is up", flush=True)
                    continue
                first.attune("tune", problem, f"--family={options.family}", "--strategy=exhaustive", check=False)
                again[problem] = fastest(first, problem, options.family) if options.retime else []
                print(f"{problem}: tuned in {time.monotonic() - begin:.1f} s", flush=True)
        for _ in range(options.retime):
            begin = time.monotonic()
            with daemon() as fresh:
                for problem, variants in again.items():
                    if variants:
                        try_again(fresh, problem, options.family, variants)
            print(f"{sum(map(len, again.values()))} timed again in {time.monotonic() - begin:.1f} s", flush=True)
        with daemon() as last:
            for problem in again:
                record = [bundle / "attune-replay", "record", "--server", last.address, "--out", options.out]
                result = ended([*record, f"--kernels={ROOT / 'kernels_src'}", problem], bundle, RECORD_S)
                words = (result.stdout + result.stderr).strip().splitlines()
                print(f"{problem}: {words[-1] if words else ''}", flush=True)
                failed += result.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
