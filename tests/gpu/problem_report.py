"""A report that grows problem by problem, is written after each, and goes on from an earlier call's."""

import argparse
import dataclasses
import datetime
import json
import pathlib
import shlex
import sys
import tempfile
from collections.abc import Callable

from tuning import INCOMPLETE, while_time


@dataclasses.dataclass(frozen=True)
class Report:
    """What is said of rows, each of which has its "problem"."""

    name: str  # of the files
    told: Callable  # row: lists of cells
    judge: Callable  # rows: (sentences, what misses the aims, whether they are met)
    title: str
    text: str  # what a reader must know
    columns: list


def add_options(parser):
    parser.add_argument("problem", nargs="*", help="default: those that are in this file")
    parser.add_argument("--problems", type=int, metavar="N", help="only the first N of those that are left")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument(
        "--resume", type=pathlib.Path, metavar="FILE", help="the JSON of an earlier call: goes on there"
    )


def parser_for(description):
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def make(report, problems, measure, setup, options):
    """Measures what is left of `problems`, or of those that `options` name, and returns the exit status.

    `measure` makes a row of (setup, problem, options, an empty directory).
    """
    options.out.mkdir(parents=True, exist_ok=True)
    rows = json.loads(options.resume.read_text())["rows"] if options.resume else []
    done = {row["problem"] for row in rows}
    wanted = [problem for problem in options.problem or problems if problem not in done][: options.problems]
    made = {"date": now(), "command": shlex.join(sys.argv), "device": {}, "rows": rows}
    with tempfile.TemporaryDirectory(prefix=f"attune-{report.name}-") as scratch:
        scratch = pathlib.Path(scratch)
        with setup.daemon(scratch / "facts") as daemon:
            made["device"] = setup.facts(daemon)
        for problem in while_time(wanted, options.seconds):
            with tempfile.TemporaryDirectory(dir=scratch) as own:
                rows.append(measure(setup, problem, options, pathlib.Path(own)))
            write(report, made, options.out)
            print("\n".join("  ".join(cells) for cells in report.told(rows[-1])), flush=True)
    write(report, made, options.out)
    sentences, misses, met = report.judge(rows)
    print("\n".join([*sentences, *(f"missed: {miss}" for miss in misses)]))
    incomplete = not {row["problem"] for row in rows} >= set(wanted)
    if incomplete:
        print("the time was up before all problems were measured; go on with --resume")
    return 1 if rows and not met else INCOMPLETE if incomplete else 0


def write(report, made, out):
    (out / f"{report.name}.json").write_text(json.dumps(made, indent=1) + "\n")
    (out / f"{report.name}.md").write_text("\n".join(markdown(report, made)) + "\n")


def markdown(report, made):
    sentences, misses, _ = report.judge(made["rows"])
    device = made["device"]
    yield f"# {report.title}: {device.get('model', '')}, {made['date'][:10]}\n"
    yield f"Driver {device.get('driver', '')}. Command: `{made['command']}`\n"
    yield f"{report.text}\n"
    yield from (f"- {sentence}" for sentence in sentences)
    yield "\n| " + " | ".join(report.columns) + " |"
    yield "|---" * len(report.columns) + "|"
    for row in made["rows"]:
        yield from ("| " + " | ".join(cell.replace("\n", " ") for cell in cells) + " |" for cells in report.told(row))
    if misses:
        yield "\nMissed:\n"
        yield from (f"- {miss}" for miss in misses)
