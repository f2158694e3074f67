#!/usr/bin/env python3
"""Joules a run of the fastest variant and of the thriftiest of its play-off, on a GPU host whose energy NVML counts,
from a bundle (deploy/bundle). One problem took 26 s on an H200.

    python3 tests/gpu/energy.py --bundle BUNDLE --out OUT [--problems N] [--repeats N] [--trials N] [--seconds S]
                                [--objective]

Each problem is tuned by a random draw that is always the same, then its play-off is held again, with --energy, so often
as --repeats says. Who was the fastest and the thriftiest in the first is looked for in all of them: the spread between
measurements stands beside the difference between the two.

With --objective each problem is tuned by that draw with --objective=energy and every variant checked, in the place of
the repetitions, and then asked for by all three objectives: the fastest beside what is answered to each of the others, their joules
and times. It is an error where an answer is none that the play-off speaks for, or has no code.

Writes OUT/energy.json and .md after each problem. Ends with 1 where a tuning fails or measures no energy, or an answer
is wrong, with 3 when the time was up first.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tuning

OBJECTIVES = ["time", "energy", "edp"]
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


def amount(objective, timed):
    """(least, middle, most) that is compared: us, joules, or joule seconds."""
    names = ("latency_low_ms", "latency_ms", "latency_high_ms")
    times = [1e3 * timed[name] for name in names]
    if objective == "time":
        return times
    joules = [timed["energy"][name] for name in ("low_joules", "joules", "high_joules")]
    return joules if objective == "energy" else [each * 1e-6 * us for each, us in zip(joules, times, strict=True)]


def wrong(objective, answers, play_off):
    """Why the answer to an objective is not what the play-off says; empty: it is. `play_off`: its trials by variant."""
    fastest, given = answers["time"]["variant"], answers[objective]
    if not given["artifact_sha256"] or given["artifact_state"] != "READY":
        return f"{given['variant']} has no code"
    if given["variant"] not in play_off:
        return f"{given['variant']} was in no play-off"
    below = {
        variant: amount(objective, trial)
        for variant, trial in play_off.items()
        if trial["energy"]
        and not trial["energy"]["contended"]
        and amount(objective, trial)[2] < amount(objective, play_off[fastest])[0]
    }
    best = min(below, key=lambda variant: below[variant][1], default=fastest)
    if given["variant"] != best:
        return f"{given['variant']} is answered, and {best} is best"
    if (given["objective"] == objective) != (best != fastest):
        return f"{best} is said to be best by {given['objective']}"
    return ""


def measure_objectives(setup, problem, options, scratch):
    """One problem: what is answered by each objective, and whether the play-off says so."""
    draw = ["--strategy=random", "--seed=1", f"--max-trials={options.trials}", "--check-all", "--objective=energy"]
    with setup.daemon(scratch) as daemon:
        tuned = setup.tune(daemon, problem, *draw)
        play_off = {trial["variant"]: trial for trial in (tuned["result"] or {}).get("play_off", [])}
        answers, errors = {}, [tuned["error"]] if tuned["error"] else []
        for objective in OBJECTIVES:
            lines, error = setup.ask(daemon, "best", problem, f"--objective={objective}")
            errors += [f"best --objective={objective}: {error}"] if not lines else []
            answers[objective] = lines[0] if lines else None
    if not errors and not play_off[answers["time"]["variant"]]["energy"]:
        errors = ["the tuning measured no energy of the fastest"]
    if not errors:
        found = {objective: wrong(objective, answers, play_off) for objective in OBJECTIVES[1:]}
        errors = [f"best --objective={objective}: {why}" for objective, why in found.items() if why]
    kept = ("variant", "objective", "provenance", "provenance_detail")
    kept += ("latency_ms", "latency_low_ms", "latency_high_ms", "energy")
    return {
        "problem": problem,
        "answers": {name: {key: one[key] for key in kept} for name, one in answers.items() if one},
        "contestants": len(play_off),
        "decision": (tuned["result"] or {}).get("decision"),
        "seconds": [tuned["seconds"]],
        "errors": errors,
    }


def report_objectives(rows, facts):
    """Markdown."""
    device = f"{facts.get('model', '')}, driver {facts.get('driver', '')}"
    columns = ["problem", "best by", "mJ a run", "us", "nJ s", "W", "variant", "why"]
    lines = [f"# Best by each objective, {device}", "", "| " + " | ".join(columns) + " |"]
    lines.append("|---" * len(columns) + "|")
    for row in rows:
        for objective, answer in row["answers"].items():
            energy = answer["energy"]
            figures = ["-", f"{1e3 * answer['latency_ms']:.2f}", "-", "-"]
            if energy:
                figures[0] = f"{1e3 * energy['joules']:.4g}"
                figures[2] = f"{1e9 * amount('edp', answer)[1]:.4g}"
                figures[3] = f"{energy['power_w']:.0f}"
            cells = [row["problem"], objective, *figures, answer["variant"], answer["provenance_detail"] or ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


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
    parser.add_argument("--objective", action="store_true", help="tune by energy, and ask for the best by each objective")
    parser.add_argument("--seconds", type=float, default=1e9, help="no problem is begun that would not end before")
    options = parser.parse_args()
    setup = tuning.setup_of(options)
    problems = PROBLEMS[: options.problems]
    options.out.mkdir(parents=True, exist_ok=True)
    measured, reported = (measure_objectives, report_objectives) if options.objective else (measure, report)
    rows, facts = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        with setup.daemon(pathlib.Path(scratch, "facts")) as daemon:
            facts = setup.facts(daemon)
        for i, problem in enumerate(tuning.while_time(problems, options.seconds)):
            rows.append(measured(setup, problem, options, pathlib.Path(scratch, str(i))))
            (options.out / "energy.json").write_text(json.dumps({"device": facts, "rows": rows}, indent=1) + "\n")
            (options.out / "energy.md").write_text(reported(rows, facts))
    print(reported(rows, facts))
    errors = [f"{row['problem']}: {error}" for row in rows for error in row["errors"]]
    print("\n".join(errors))
    sys.exit(1 if errors else tuning.INCOMPLETE if len(rows) < len(problems) else 0)


if __name__ == "__main__":
    main()
