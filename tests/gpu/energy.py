#!/usr/bin/env python3
"""Joules a run of the fastest variant and of the thriftiest of its play-off, on a GPU host whose energy NVML counts,
from a bundle (deploy/bundle). One problem took 26 s on an H200.

    python3 tests/gpu/energy.py --bundle BUNDLE --out OUT [--problems N] [--repeats N] [--trials N] [--seconds S]

Each problem is tuned by a random draw that is always the same, then its play-off is held again, with --energy, so often
as --repeats says. Who was the fastest and the thriftiest in the first is looked for in all of them: the spread between
measurements stands beside the difference between the two.

Writes OUT/energy.json and .md after each problem. Ends with 1 where a tuning fails or measures no energy, with 3 when
the time was up first.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tuning

PROBLEMS = ["b4.h16.q4096.d128.f16", "b8.h32.kvh8.q1.kv4096.d128.f16"]


def energies(tuned):
    """{variant: its energy, with its time} of a play-off, as far as it was measured."""
    play_off = (tuned["result"] or {}).get("play_off", [])
    measured = [trial for trial in play_off if trial["energy"]]
    return {trial["variant"]: {**trial["energy"], "latency_ms": trial["latency_ms"]} for trial in measured}


def measure(setup, problem, options, scratch):
    """One problem: what each tuning measured, in order."""
    draw = ["--strategy=random", "--seed=1", f"--max-trials={options.trials}"]
    with setup.daemon(scratch) as daemon:
        tuned = [setup.tune(daemon, problem, *draw, "--energy") for _ in range(options.repeats)]
    rows = [energies(one) for one in tuned]
    first = rows[0]
    return {
        "problem": problem,
        "fastest": min(first, key=lambda variant: first[variant]["latency_ms"]) if first else None,
        "thriftiest": min(first, key=lambda variant: first[variant]["joules"]) if first else None,
        "measured": rows,
        "seconds": [one["seconds"] for one in tuned],
        "errors": [one["error"] for one in tuned if one["error"]]
        + [f"tuning {i + 1} measured no energy" for i, row in enumerate(rows) if not row],
    }


def spread(values):
    """(highest - lowest) / lowest."""
    return (max(values) - min(values)) / min(values)


def report(rows, facts):
    """Markdown."""
    device = f"{facts.get('model', '')}, driver {facts.get('driver', '')}"
    columns = ["problem", "who", "mJ a run, each time", "spread", "W", "us", "variant"]
    lines = [f"# Energy a run, {device}", "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        for who in ("fastest", "thriftiest"):
            found = [measured[row[who]] for measured in row["measured"] if row[who] in measured]
            if not found:
                continue
            joules = [one["joules"] for one in found]
            each_time = ", ".join(f"{1e3 * each:.4g}" for each in joules)
            cells = [row["problem"], who, each_time, f"{100 * spread(joules):.1f} %"]
            cells += [f"{found[0]['power_w']:.0f}", f"{1e3 * found[0]['latency_ms']:.2f}", row[who]]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning.add_options(parser)
    parser.add_argument("--problems", type=int, default=len(PROBLEMS), help="only the first so many")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1e9, help="no problem is begun that would not end before")
    options = parser.parse_args()
    setup = tuning.setup_of(options)
    problems = PROBLEMS[: options.problems]
    options.out.mkdir(parents=True, exist_ok=True)
    rows, facts = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        with setup.daemon(pathlib.Path(scratch, "facts")) as daemon:
            facts = setup.facts(daemon)
        for i, problem in enumerate(tuning.while_time(problems, options.seconds)):
            rows.append(measure(setup, problem, options, pathlib.Path(scratch, str(i))))
            (options.out / "energy.json").write_text(json.dumps({"device": facts, "rows": rows}, indent=1) + "\n")
            (options.out / "energy.md").write_text(report(rows, facts))
    print(report(rows, facts))
    errors = [f"{row['problem']}: {error}" for row in rows for error in row["errors"]]
    print("\n".join(errors))
    sys.exit(1 if errors else tuning.INCOMPLETE if len(rows) < len(problems) else 0)


if __name__ == "__main__":
    main()
