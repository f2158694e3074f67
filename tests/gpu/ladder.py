#!/usr/bin/env python3
"""The ladder: what each technique is worth, one step at a time, from a plain kernel to the fastest, each a variant that
the daemon compiles, checks and times against the incumbent, interleaved; beside them PyTorch's SDPA. On a GPU host,
from a bundle with the Python client (client/python/tests/gpu/bundle.bash); about 5 minutes, less with a tuned --data.

    python3 tests/gpu/ladder.py --bundle bundle --out out --name 2026-11-21-h200

Writes OUT/NAME-ladder.json, .md and .svg; with --report OUT/NAME-ladder.json only the last two, from the first.
"""

import argparse
import concurrent.futures
import dataclasses
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ladder_steps
from choose import Chosen, listed
from daemon import ROOT, Daemon, environment, import_client
from ladder_steps import FAMILIES, GOALS, Row, family_of

PROBLEMS = [
    "b4.h16.q4096.d128.f16",
    "b4.h16.q4096.d128.f16.causal",
    "b2.h8.q512.d64.f16",
    "b1.h32.kvh8.q1.kv65536.d128.f16",
    "b1.h1.q128.d64.f16",
]
CONTESTANTS = ("flash", "cudnn")


def bench(bundle, data, out, problems, seconds):
    """Tunes the problems and times SDPA beside them; the times stay in the daemon's database as baselines."""
    paths = [str(bundle / "site"), os.environ.get("PYTHONPATH", ""), str(ROOT / "client/python"), str(ROOT / "client/bench")]
    command = [
        *(sys.executable, "-m", "attune_bench", *problems, "--tune", f"--max-time={seconds}", "--row-time=1"),
        *(f"--families={','.join(GOALS)}", f"--contestants=attune,{','.join(CONTESTANTS)}", f"--attuned={bundle / 'attuned'}"),
        *(f"--data={data}", f"--lock-dir={data}/locks", f"--kernels={ROOT / 'kernels_src'}", f"--out={out}/bench"),
        f"--daemon-libraries={environment(bundle)['LD_LIBRARY_PATH']}",
    ]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": ":".join(filter(None, paths))}, cwd=out)
    if run.returncode != 0:
        sys.exit(f"ladder.py: attune-bench ended with {run.returncode}")


def fastest(client, problem):
    """The variant of GOALS that the ladder leads to: the one that is served, else the fastest that was tried."""
    served = client.best(problem).variant
    if served.family not in GOALS:
        tried = [client.trials(problem, family=each, verdicts=["OK"], order="fastest", limit=1) for each in GOALS]
        trials = sorted((first for first, *_ in filter(None, tried)), key=lambda trial: trial.timing.median_us)
        served = trials[0].variant if trials else None
    return Chosen(served.text, served.parameters) if served else None


def climb(attune, client, problem, sm_count):
    """{"problem", "rows", "around", "fastest", "baselines"} of one problem."""
    spaces = {family: listed(client, problem, family)[0] for family in FAMILIES}
    goal = fastest(client, problem)

    def attempt(chosen):
        try:
            trial = client.evaluate(problem, chosen.text).result().trial
        except attune.AttuneError as error:
            print(f"{problem}: {chosen.text}: {error}", flush=True)
            return "FAILED", 0.0, 0, 0
        timing, geometry, resources = trial.timing, trial.geometry, trial.resources
        us = timing.median_us if timing else 0.0
        print(f"{problem:36} {us:12.2f} us {trial.verdict.name:6} {chosen.text}", flush=True)
        return trial.verdict.name, us, geometry.ctas if geometry else 0, resources.registers if resources else 0

    rows = list(ladder_steps.climb(spaces, goal, attempt, sm_count))
    around = list(ladder_steps.around(spaces[family_of(goal)], goal, attempt)) if goal else []
    baselines = {}
    for each in client.baselines(problem):  # newest first
        if each.contender in CONTESTANTS:
            baselines.setdefault(each.contender, each.median_us)
    return {
        "problem": problem,
        "fastest": goal.text if goal else "",
        "rows": [dataclasses.asdict(row) for row in rows],
        "around": [dataclasses.asdict(row) for row in around],
        "baselines": baselines,
    }


def markdown(report):
    yield f"# What each technique is worth: {report['device']}, {report['date'][:10]}\n"
    yield f"Driver {report['driver']}. Command: `{report['command']}`\n"
    yield (
        "Each row is a variant that differs from the row before in what its name says, and in what the family's "
        "constraints then ask for (column *changes*); `tests/gpu/ladder_steps.py` has the steps. The daemon checked "
        "each and timed it interleaved with the variant that it serves (policy HOT, docs/measuring.md). SDPA's times "
        "are of CUDA graphs, too (docs/bench.md).\n"
    )
    for each in report["problems"]:
        rows, around = [Row(**row) for row in each["rows"]], [Row(**row) for row in each["around"]]
        yield f"## {each['problem']}\n"
        yield f"The fastest, which the daemon serves; a neighbour within 1 % is as fast: `{each['fastest']}`\n"
        yield from ladder_steps.table(rows, each["baselines"])
        yield ""
        last = next((row for row in reversed(rows) if row.verdict == "OK" and row.variant == each["fastest"]), None)
        if around and last:
            yield from ladder_steps.around_table(around, last)
            yield ""
    yield f"![The ladder]({report['name']}-ladder.svg)"


def plot(report, path):
    """A bar a step, the shorter the faster; lines for SDPA. Nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return print("ladder.py: no matplotlib: no plot", file=sys.stderr)
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "attune"  # the same run gives the same file
    from matplotlib import pyplot

    heights = [1 + sum(row["verdict"] == "OK" for row in each["rows"]) for each in report["problems"]]
    figure, panels = pyplot.subplots(
        len(heights),
        1,
        figsize=(10, 0.28 * sum(heights) + len(heights)),
        squeeze=False,
        layout="constrained",
        gridspec_kw={"height_ratios": heights},
    )
    for axes, each in zip(panels[:, 0], report["problems"]):
        rows = [row for row in each["rows"] if row["verdict"] == "OK"][::-1]
        bars = axes.barh([row["step"] for row in rows], [row["us"] for row in rows], color="#4477AA", height=0.7)
        axes.bar_label(bars, [f" {row['us']:,.1f}" for row in rows], fontsize=8)
        for (name, us), colour in zip(sorted(each["baselines"].items()), ("#009E73", "#D55E00")):
            axes.axvline(us, color=colour, linewidth=1.5, label=f"SDPA {name}: {us:,.1f}")
        if each["baselines"]:
            axes.legend(fontsize=8, loc="upper right")
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.tick_params(labelsize=8)
        axes.set_title(f"{each['problem']} (us)", fontsize=9, family="monospace")
    figure.suptitle(f"{report['device']}, {report['date'][:10]}", fontsize=10)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return None


def write(report, out):
    prefix = f"{report['name']}-ladder"
    (out / f"{prefix}.md").write_text("\n".join(markdown(report)) + "\n")
    plot(report, out / f"{prefix}.svg")


def measure(arguments):
    bundle, out = arguments.bundle.resolve(), arguments.out.resolve()
    attune = import_client(bundle)
    problems = arguments.problems or PROBLEMS
    with tempfile.TemporaryDirectory(prefix="attune-ladder-") as directory:
        scratch = pathlib.Path(directory)
        data = arguments.data.resolve() if arguments.data else scratch / "data"
        if arguments.tune > 0:
            bench(bundle, data, out, problems, arguments.tune)
        with (
            Daemon(bundle, scratch, [ROOT / "kernels_src"], data=data) as daemon,
            attune.Client(daemon.address) as client,
            concurrent.futures.ThreadPoolExecutor(2) as pool,  # one compiles while the other has the device
        ):
            device = next(each for each in client.devices() if each.id == "cuda:0")
            found = list(pool.map(lambda problem: climb(attune, client, problem, device.compute_units), problems))
    return {
        "name": arguments.name,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": " ".join(["python3 tests/gpu/ladder.py", *sys.argv[1:]]),
        "device": device.model,
        "driver": device.driver,
        "problems": found,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "bundle")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--name", default="ladder", help="first part of the files' names")
    parser.add_argument(
        "--data", type=pathlib.Path, help="the daemon's database, of a bench run; default: an empty one"
    )
    parser.add_argument(
        "--tune", type=float, default=10, help="seconds of trials a problem; 0: --data has SDPA's times, too"
    )
    parser.add_argument(
        "--report", type=pathlib.Path, metavar="JSON", help="write the documents of a run again, and end"
    )
    parser.add_argument("problems", nargs="*", help=f"default: {' '.join(PROBLEMS)}")
    arguments = parser.parse_args()
    if arguments.report:
        write(json.loads(arguments.report.read_text()), arguments.report.resolve().parent)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = measure(arguments)
    (arguments.out / f"{report['name']}-ladder.json").write_text(json.dumps(report, indent=1) + "\n")
    write(report, arguments.out)


if __name__ == "__main__":
    main()
