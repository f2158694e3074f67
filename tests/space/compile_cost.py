#!/usr/bin/env python3
"""What compiling a kernel family costs, and whether a change of its sources changes its code. Writes Markdown.

    tests/space/compile_cost.py --build build --kernels before/kernels_src --kernels kernels_src

Compiles some variants of the problems' spaces from each folder of kernel sources in turn, by the daemon's own compile
workers, and counts the processor time of all of them: the clock's would be that of a busy machine. Needs NVRTC
and no GPU. The first folder is what the others are compared with, variant by variant: registers, spilled bytes, CTAs an
SM.
"""

import argparse
import pathlib
import random
import resource
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import space_reports
from space_reports import KERNELS, ROOT

PROBLEMS = (
    "b2.h8.q4096.d64.f16",
    "b1.h16.q4096.d128.f16.causal",
    "b8.h32.kvh8.q1.kv8192.d128.f16",
    "b1.h8.q2048.d256.bf16.causal",
)
COMPARED = ("registers", "spill_bytes", "ctas_per_sm")


def processor_seconds():
    """Of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def codes_of(report):
    """How many codes were compiled, by the last line of space_report's table."""
    return int(report.splitlines()[-1].split("|")[4])


def changes(before, after):
    """{column: [(before, after, variants)]} of rows of space_report's CSV, for the columns that differ."""
    of = {(row["problem"], row["variant"]): row for row in before}
    found = {}
    for row in after:
        old = of[row["problem"], row["variant"]]
        for column in COMPARED:
            if old[column] != row[column]:
                pair = int(old[column]), int(row[column])
                counts = found.setdefault(column, {})
                counts[pair] = counts.get(pair, 0) + 1
    return {column: sorted((*pair, count) for pair, count in counts.items()) for column, counts in found.items()}


def summary(found, variants):
    """`changes` in words, a line each column."""
    for column in COMPARED:
        pairs = found.get(column, [])
        differ = sum(count for _, _, count in pairs)
        steps = [after - before for before, after, _ in pairs]
        more = sum(count for before, after, count in pairs if after > before)
        span = f", {more} of them more; by {min(steps):+d} to {max(steps):+d}" if pairs else ""
        yield f"- {column}: {differ} of {variants} variants differ{span}"


def choose(rows, count):
    """The same `count` of all variants each time, or all; as lines of space_report's --only."""
    chosen = rows if count >= len(rows) else random.Random(0).sample(rows, count)
    return "".join(f"{row['problem']} {row['variant']}\n" for row in chosen)


def report_of(arguments, kernels, path, *options):
    """What space_report says of those sources; its CSV at `path`."""
    return space_reports.report(arguments.build, arguments.profile, arguments.family, kernels, f"--csv={path}", *options)


def compile_all(arguments, kernels, path, only):
    """Compiles; (processor seconds a code, codes)."""
    begin = processor_seconds()
    codes = codes_of(report_of(arguments, kernels, path, f"--only={only}"))
    return (processor_seconds() - begin) / codes, codes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="space_report, attune-worker")
    parser.add_argument("--kernels", type=pathlib.Path, action="append", help="a folder of sources; may be repeated")
    parser.add_argument("--profile", default="h200", help="the device's limits and target")
    parser.add_argument("--family", default="attention_mma", help="what is compiled")
    parser.add_argument("--variants", type=int, default=60, help="how many of all problems are compiled")
    parser.add_argument("--repeat", type=int, default=3, help="rounds, each over all folders")
    parser.add_argument("problems", nargs="*", help="instead of d64, d128 causal, d128 decode and d256")
    arguments = parser.parse_args()
    if arguments.variants < 1 or arguments.repeat < 1:
        parser.error(f"--variants is {arguments.variants} and --repeat {arguments.repeat}: both must be at least 1")
    arguments.build = arguments.build.resolve()
    folders = [folder.resolve() for folder in arguments.kernels or [KERNELS]]
    with tempfile.TemporaryDirectory() as directory:
        paths = [pathlib.Path(directory) / f"{number}.csv" for number in range(len(folders))]
        report_of(arguments, folders[0], paths[0], "--compile=false", *(arguments.problems or PROBLEMS))
        only = pathlib.Path(directory) / "only.txt"
        only.write_text(choose(space_reports.read(paths[0]), arguments.variants))
        costs = [[] for _ in folders]
        for _ in range(arguments.repeat):
            for number, folder in enumerate(folders):
                cost, codes = compile_all(arguments, folder, paths[number], only)
                costs[number].append(cost)
        rows = [space_reports.read(path) for path in paths]
    print(f"{arguments.family}, {arguments.profile}, {codes} codes, {arguments.repeat} rounds\n")
    print("| kernels | core-seconds a code, median | least | most |\n|---|---|---|---|")
    for number, cost in enumerate(costs):
        print(f"| {number + 1} | {statistics.median(cost):.3f} | {min(cost):.3f} | {max(cost):.3f} |")
    for number in range(1, len(folders)):
        print(f"\n{number + 1} against 1:\n")
        print("\n".join(summary(changes(rows[0], rows[number]), len(rows[number]))))


if __name__ == "__main__":
    main()
