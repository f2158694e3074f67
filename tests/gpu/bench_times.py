#!/usr/bin/env python3
"""Whether the bench measures the times that the daemon has stored, on a GPU host, from a bundle with the Python client
and attune-bench in BUNDLE/site (docs/gpu-host.md); torch is the host's. An estimate: 8 minutes for the grid's 38.

    python3 tests/gpu/bench_times.py --bundle BUNDLE --out OUT [--seconds S] [--data DIR [--tuned] [--resume JSONL]]

attune-bench tunes the problems as `attune tune` does, unless they are (--tuned), the daemon ends, and the bench times
the served variants in its own process: graphs of back-to-back runs over rotating inputs, as the daemon's policy HOT, until the median's 95 % interval is narrower than 1 % of it. These times are compared with the
play-offs' that the daemon then tells (`attune best`). At least 34 of 38 must be within 2 %.

Writes OUT/bench_times.json and .md, and the bench's own files to OUT/bench. Ends with 1 where too few are within 2 %,
and names the others; with 3 when the bench had no time for all: --seconds (its --deadline), of which tuning gets half.
Such a run goes on with --resume and the same --data.
"""

import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import problem_report
import tuning
from daemon import ROOT, environment
from grid import bench_grid

WITHIN = 0.02
SHARE = 34 / 38
DEADLINE_PASSED = 3  # of attune-bench


def bench_command(setup, options, data, resume):
    """attune-bench with attune alone."""
    problems = [] if resume else options.problem or bench_grid()
    command = [sys.executable, "-m", "attune_bench", *problems, f"--contestants={options.contestants}", "--no-record"]
    command += [] if options.tuned else ["--tune"]
    command += [f"--row-time={options.row_time}", f"--heat-time={options.heat_time}"]
    command += [f"--device={setup.device or 'cuda:0'}"]
    command += [f"--max-time={options.max_time}"] if options.max_time else []
    command += [f"--attuned={setup.bundle / 'attuned'}", f"--data={data}", f"--lock-dir={data}/locks"]
    command += [f"--kernels={','.join(str(path) for path in setup.kernels)}", f"--out={options.out}/bench"]
    command += [f"--daemon-libraries={environment(setup.bundle)['LD_LIBRARY_PATH']}"]
    command += [f"--families={','.join(setup.families)}"] if setup.families else []
    command += [f"--deadline={options.seconds}"] if options.seconds < 1e9 else []
    return command + ([f"--resume={resume}"] if resume else [])


def bench(setup, options, data):
    """The file of JSON lines that attune-bench writes, and whether all problems are in it."""
    folder = options.out / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    resume = pathlib.Path(shutil.copy(options.resume, folder)) if options.resume else None
    packages = [
        str(setup.bundle / "site"),
        os.environ.get("PYTHONPATH", ""),
        f"{ROOT}/client/python",
        f"{ROOT}/client/bench",
    ]
    variables = {**os.environ, "PYTHONPATH": ":".join(filter(None, packages)), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(bench_command(setup, options, data, resume), env=variables)
    if run.returncode not in (0, DEADLINE_PASSED):
        sys.exit(f"bench_times.py: attune-bench ended with {run.returncode}")
    newest = max(folder.glob("*-bench.jsonl"), key=lambda path: path.stat().st_mtime)
    return newest, run.returncode == 0


def bench_rows(path):
    """Those of a run's file."""
    return [row for row in map(json.loads, path.read_text().splitlines()) if row["type"] == "row"]


def compare(row, answer):
    """A row of the report, from one of the bench and the daemon's answer."""
    result = row["results"]["attune"]
    timing = result["timing"]
    own = answer.get("provenance") in ("EXACT", "TIE")
    compared = {
        "problem": row["problem"],
        "variant": answer.get("variant"),
        "stored_us": us(answer, "latency_ms") if own else None,
        "stored_low_us": us(answer, "latency_low_ms") if own else None,
        "stored_high_us": us(answer, "latency_high_ms") if own else None,
        "cycles": answer.get("cycles"),
        "stored_mhz": answer.get("sm_clock_mhz"),
        "bench_us": timing["us"]["median"] if timing else None,
        "bench_low_us": timing["us"]["low"] if timing else None,
        "bench_high_us": timing["us"]["high"] if timing else None,
        "bench_mhz": row["sm_clock_mhz"] or None,
        "input_sets": row["input_sets"],
        "off": None,
        "error": None,
    }
    if not own:
        return compared | {"error": f"was not tuned: {answer.get('provenance') or 'no answer'}"}
    if result["status"] != "right" or not timing:
        return compared | {"error": f"{result['status']}: {result['reason']}"}
    if row["served"]["variant"] != answer["variant"]:
        return compared | {"error": "the bench timed another variant"}
    return compared | {"off": compared["bench_us"] / compared["stored_us"] - 1}


def us(answer, key):
    return 1e3 * answer[key] if answer.get(key) is not None else None


def judge(rows):
    """(what came of it in sentences, the misses, whether enough are within WITHIN)."""
    within = [row for row in rows if row["off"] is not None and abs(row["off"]) <= WITHIN]
    least = math.ceil(SHARE * len(rows) - 1e-9)
    sentences = [f"{len(within)} of {len(rows)} are within {100 * WITHIN:g} %; at least {least} are asked for"]
    apart = [row for row in rows if row["off"] is not None]
    if apart:
        middle = sorted(row["off"] for row in apart)[len(apart) // 2]
        sentences.append(f"the median of the bench's time over the stored one is {100 * middle:+.2f} %")
    misses = [f"{row['problem']}: {told_off(row)}" for row in rows if row not in within]
    return sentences, misses, bool(rows) and len(within) >= least


def told(row):
    """The cells of a row."""

    def time(name):
        middle, low, high = (row[f"{name}{end}_us"] for end in ("", "_low", "_high"))
        return f"{middle:.2f} [{low:.2f}, {high:.2f}]" if middle else ""

    clocks = [str(round(row[key])) if row[key] else "" for key in ("stored_mhz", "bench_mhz")]
    times = [time("stored"), time("bench"), told_off(row)]
    return [[row["problem"], *times, str(row["input_sets"]), str(row["cycles"] or ""), *clocks]]


def told_off(row):
    return row["error"] or f"{100 * row['off']:+.2f} %"


REPORT = problem_report.Report(
    name="bench_times",
    told=told,
    judge=judge,
    title="The bench's times beside the stored ones",
    text="Stored is the time of the last play-off (policy HOT, docs/measuring.md), the mean of its cycles' medians "
    "with its interval; the bench's is the median of its samples with its own (docs/bench.md). The daemon counts "
    "clocks on the device, the bench asks NVML.",
    columns=["problem", "stored us", "bench us", "off", "input sets", "cycles", "stored MHz", "bench MHz"],
)


def main():
    parser = problem_report.parser_for(__doc__)
    tuning.add_options(parser)
    parser.add_argument("problem", nargs="*", help="default: the bench's grid")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--data", type=pathlib.Path, help="data directory of the daemon, kept")
    parser.add_argument("--tuned", action="store_true", help="the database of --data has the problems' winners: tune none")
    parser.add_argument("--resume", type=pathlib.Path, metavar="JSONL", help="the bench's file of an earlier call")
    parser.add_argument("--max-time", type=float, metavar="S", help="of trials a problem; default: no limit")
    parser.add_argument("--contestants", default="attune", help="of the bench; default: attune")
    parser.add_argument("--row-time", type=float, default=1, metavar="S", help="of samples a problem; default: 1")
    parser.add_argument("--heat-time", type=float, default=0, metavar="S", help="of the bench, before each problem's samples")
    options = parser.parse_args()
    setup = tuning.setup_of(options)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="attune-bench-times-") as scratch:
        scratch = pathlib.Path(scratch)
        data = (options.data or scratch / "data").resolve()
        path, whole = bench(setup, options, data)
        made = {"date": problem_report.now(), "command": shlex.join(sys.argv), "rows": []}
        with setup.daemon(scratch, data) as daemon:
            made["device"] = setup.facts(daemon)
            for row in bench_rows(path):
                lines, _ = setup.ask(daemon, "best", row["problem"])
                answer = lines[0] if lines and lines[0]["type"] == "answer" else {}
                made["rows"].append(compare(row, answer))
    problem_report.write(REPORT, made, options.out)
    print("\n".join("  ".join(cells) for row in made["rows"] for cells in told(row)))
    sentences, misses, met = judge(made["rows"])
    print("\n".join([*sentences, *(f"missed: {miss}" for miss in misses)]))
    if not whole:
        print(f"the time was up before all problems were timed; go on with --resume {path} and the same --data")
    return 1 if made["rows"] and not met else 0 if whole else tuning.INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
