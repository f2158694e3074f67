#!/usr/bin/env python3
"""What attention_mma compiles to for an L4, without one. Writes Markdown.

    tests/space/l4.py --build build                  # the variants that a prior picks for every problem of the grid
    tests/space/l4.py --build build --every 8        # and one in 8 of all codes of the grid's spaces, for spills

Compiles with NVRTC for sm_89 on as many cores as there are: one to two codes a second and core. The picks of a problem
are the daemon's own guess and the variants that tests/space/roofline.py ranks first.
"""

import argparse
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/space"), str(ROOT / "tests/gpu")]
import roofline
import space_reports
from grid import bench_grid

FAMILY = "attention_mma"
TILE = ("BLOCK_M", "BLOCK_N", "WARPS_M", "WARPS_N")


def parameters(variant):
    return {name: int(value) for name, value in re.findall(r"(\w+)=(-?\d+)", variant)}


def tile(variant):
    return tuple(parameters(variant)[name] for name in TILE)


def picks(rows, count):
    """The guess, then the prior's first `count` with other tiles, of one problem's rows. Yields (row, Estimate)."""
    problem = roofline.Problem(rows[0]["problem"])

    def estimate(row):
        return roofline.estimate(problem, parameters(row["variant"]), int(row["ctas"]), int(row["shared_bytes"]))

    guess = next(row for row in rows if row["guess"] == "1")
    yield guess, estimate(guess)
    seen = {tile(guess["variant"])}
    of = {row["variant"]: row for row in rows}
    ranked = roofline.order([({**parameters(text), "text": text}, estimate(row)) for text, row in of.items()])
    for chosen, estimated in ranked:
        if len(seen) > count:
            return
        if tile(chosen["text"]) not in seen:
            seen.add(tile(chosen["text"]))
            yield of[chosen["text"]], estimated


def short(values):
    """128x64 4x1 K2V1, then what is not off."""
    get = values.get
    text = f"{get('BLOCK_M')}x{get('BLOCK_N')} {get('WARPS_M')}x{get('WARPS_N')} K{get('K_STAGES')}V{get('V_STAGES')}"
    named = {
        "Q_REGISTERS": "Q",
        "KV_CONVERT": "convert{}",
        "WARP_SKIP": "skip",
        "MIN_CTAS": "min{}",
        "PACK_GQA": "pack",
        "KV_SPLITS": "s{}",
        "PERSISTENT": "P{}",
        "LONGEST_FIRST": "longest",
    }
    plain = {"MIN_CTAS": 1, "KV_SPLITS": 1}
    text += "".join(f" {name.format(get(key))}" for key, name in named.items() if get(key, 0) > plain.get(key, 0))
    return text + {0: "", 1: " joined by a launch", 2: " joined by the last CTA"}[get("COMBINE", 0)]


def report(build, *options):
    return space_reports.report(build, "l4", FAMILY, space_reports.KERNELS, *options)


def pick_all(build, problems, count, scratch):
    """[(row, Estimate)] of all problems, and each one's guess first."""
    report(build, "--compile=false", f"--csv={scratch}/spaces.csv", *problems)
    spaces = {}
    for row in space_reports.read(scratch / "spaces.csv"):
        spaces.setdefault(row["problem"], []).append(row)
    return [pick for problem in problems for pick in picks(spaces[problem], count)]


def table(chosen, compiled):
    yield (
        "| problem | picked by | variant | registers | spilled bytes | shared bytes | CTAs an SM | occupancy | CTAs | "
        "waves on 58 SMs | estimate (us) | mostly |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    before = None
    for row, estimated in chosen:
        found = compiled[row["problem"], row["variant"]]
        yield (
            f"| {row['problem'] if row['problem'] != before else ''} | {'guess' if row['guess'] == '1' else 'prior'} | "
            f"{short(parameters(row['variant']))} | {found['registers']} | {found['spill_bytes']} | "
            f"{int(found['shared_bytes']):,} | {found['ctas_per_sm']} | {float(found['occupancy']):.0%} | "
            f"{int(found['ctas']):,} | {float(found['waves']):.2f} | {estimated.seconds * 1e6:,.1f} | {estimated.by} |"
        )
        before = row["problem"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="space_report, attune-worker")
    parser.add_argument("--picks", type=int, default=2, help="variants of the prior beside the guess")
    parser.add_argument("--every", type=int, default=0, help="also compile every n-th code of the grid; 0: none")
    parser.add_argument("problems", nargs="*", help="instead of the bench's grid")
    arguments = parser.parse_args()
    build, problems = arguments.build.resolve(), arguments.problems or bench_grid()
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        chosen = pick_all(build, problems, arguments.picks, scratch)
        only = scratch / "only.txt"
        only.write_text("".join(f"{row['problem']} {row['variant']}\n" for row, _ in chosen))
        totals = report(build, f"--only={only}", f"--csv={scratch}/picks.csv").splitlines()
        compiled = {(row["problem"], row["variant"]): row for row in space_reports.read(scratch / "picks.csv")}
        print(f"{totals[0]}; {len(chosen)} picks for {len(problems)} problems.\n")
        print("\n".join(table(chosen, compiled)))
        if arguments.every:
            print(f"\nOne in {arguments.every} of all codes of these problems' spaces:\n", flush=True)
            print(report(build, f"--every={arguments.every}", *problems).split("\n\n", 1)[1], end="")


if __name__ == "__main__":
    main()
