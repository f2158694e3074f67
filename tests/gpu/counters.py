#!/usr/bin/env python3
"""Nsight Compute's counters of the variants that a daemon serves: what bounds each. On a GPU host, from a bundle with
the Python client (client/python/tests/gpu/bundle.bash) and the database of a run that tuned them; about a minute.

    python3 tests/gpu/counters.py --bundle bundle --data data --out out --name 2026-11-21-h200

Writes OUT/NAME-counters.json and .md; with --report OUT/NAME-counters.json only the latter, from the first.
"""

import argparse
import datetime
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import jobs
import ncu
from daemon import ROOT, Daemon, import_client
from ladder import PROBLEMS

LAUNCH = pathlib.Path(__file__).resolve().parent / "launch.py"


def served(daemon, client, problem, directory):
    """(job file, variant, launches a run) of what the daemon answers; it tries first what was never tried."""
    answer = client.best(problem)
    file = directory / f"{problem}.json"
    if answer.artifact_sha256:
        artifact = daemon.artifact(answer.artifact_sha256)
        file.write_text(json.dumps(jobs.job(problem, answer.variant.text, answer.recipe, artifact)))
    else:
        jobs.evaluated(daemon, client, problem, answer.variant.text, file)
    return file, answer.variant.text, len(answer.recipe.launches)


def measure(arguments):
    bundle = arguments.bundle.resolve()
    attune = import_client(bundle)
    problems = arguments.problems or PROBLEMS
    found = []
    with tempfile.TemporaryDirectory(prefix="attune-counters-") as directory:
        scratch = pathlib.Path(directory)
        flags = ["--idle_release=1s"]
        data = arguments.data.resolve()
        with (
            Daemon(bundle, scratch, [ROOT / "kernels_src"], flags, data) as daemon,
            attune.Client(daemon.address) as client,
        ):
            device = next(each for each in client.devices() if each.id == "cuda:0")
            served_now = {problem: served(daemon, client, problem, scratch) for problem in problems}
        metrics = ncu.chosen(ncu.query())
        for problem, (file, variant, launches) in served_now.items():
            command = [sys.executable, str(LAUNCH), str(file), "--unchecked"]
            for entry, values in ncu.profile(command, metrics, launches).items():
                found.append({"problem": problem, "variant": variant, "kernel": entry, "counters": values})
                print(f"{problem} {entry}: {ncu.bound(values)}", flush=True)
    return {
        "name": arguments.name,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "device": device.model,
        "driver": device.driver,
        "metrics": metrics,
        "kernels": found,
    }


def cell(column, values):
    value = values.get(column)
    if value is None:
        return "-"
    return f"{value:,.1f}" if column == "us" or column.endswith("%") else f"{value:,.0f}"


def markdown(report):
    columns = [*ncu.COLUMNS, *ncu.LAUNCH]
    yield f"# What bounds the fastest variants: {report['device']}, {report['date'][:10]}\n"
    yield (
        f"Driver {report['driver']}. Command: `python3 tests/gpu/counters.py --bundle bundle --data data --out out "
        f"--name {report['name']}`. Nsight Compute, clocks and caches left as they are, one launch of the second "
        "run; its times are longer than docs/measuring.md's, because each of its passes is a run by itself. "
        "Percentages are of the device's peak; the last column is derived from the others by `tests/gpu/ncu.py`.\n"
    )
    yield f"| problem | kernel | {' | '.join(columns)} | stalls | bound by |"
    yield "|" + "---|" * (len(columns) + 4)
    for each in report["kernels"]:
        values = each["counters"]
        stalls = ", ".join(f"{reason} {share:.0%}" for reason, share in ncu.stalls(values))
        cells = " | ".join(cell(column, values) for column in columns)
        yield f"| {each['problem']} | {each['kernel']} | {cells} | {stalls} | {ncu.bound(values)} |"
    yield "\nVariants:\n"
    for problem, variant in dict.fromkeys((each["problem"], each["variant"]) for each in report["kernels"]):
        yield f"- {problem}: `{variant}`"
    yield "\nMetrics:\n"
    for column, metric in report["metrics"].items():
        if column in columns:
            yield f"- {column}: `{metric}`"
    yield f"- stalls: `{ncu.STALL.format('REASON')}`, shares of their sum"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "bundle")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"), help="the daemon's database")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--name", default="counters", help="first part of the files' names")
    parser.add_argument(
        "--report", type=pathlib.Path, metavar="JSON", help="write the document of a run again, and end"
    )
    parser.add_argument("problems", nargs="*", help=f"default: {' '.join(PROBLEMS)}")
    arguments = parser.parse_args()
    if arguments.report:
        report, out = json.loads(arguments.report.read_text()), arguments.report.resolve().parent
    else:
        if not ncu.EXECUTABLE:
            sys.exit("counters.py: there is no ncu in PATH or /usr/local/cuda/bin; the CUDA toolkit has it")
        arguments.out.mkdir(parents=True, exist_ok=True)
        report, out = measure(arguments), arguments.out
        (out / f"{report['name']}-counters.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / f"{report['name']}-counters.md").write_text("\n".join(markdown(report)) + "\n")


if __name__ == "__main__":
    main()
