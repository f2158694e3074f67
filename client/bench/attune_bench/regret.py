"""How much slower first answers are than what a tuning finds: for shapes that nobody has tuned.

    python3 -m attune_bench.regret [PROBLEM ...] [--server unix:/path] [--out FILE] [--limit S] [--max-time S]

One shape after the other, in a fixed random order: the daemon is asked for the first time, and what it answers
(HEURISTIC, or NEAREST to shapes that this run has tuned before) is noted; with `attuned --on_miss=tune` what it answers
up to ten seconds later is noted, too. Then the shape is tuned by trials of the fastest families within a budget,
random ones unless told otherwise, and by a trial of each answer. Regret is the time of an answer's variant over the
best time of all trials.

A space has thousands of variants and a budget reaches some hundred: the best of those is what regret is held to, not
the best there is. The report has the number of trials.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attune
from attune.errors import AttuneError
from attune.values import Answer, Provenance, Trial

from attune_bench.progress import say

# Of few kinds of code (head dim, dtype, mask), so that what is compiled for one serves the next.
SHAPES = (
    "b1.h32.kvh8.q300.d128.bf16.causal",
    "b1.h32.kvh8.q777.d128.bf16.causal",
    "b1.h32.kvh8.q1500.d128.bf16.causal",
    "b1.h32.kvh8.q3000.d128.bf16.causal",
    "b1.h32.kvh8.q7000.d128.bf16.causal",
    "b2.h40.q1333.d128.bf16.causal",
    "b4.h16.q600.d128.bf16.causal",
    "b8.h28.kvh4.q2000.d128.bf16.causal",
    "b16.h8.q400.d128.bf16.causal",
    "b3.h64.kvh8.q1100.d128.bf16.causal",
    "b1.h32.kvh8.q1.kv700.d128.bf16",
    "b1.h32.kvh8.q1.kv3000.d128.bf16",
    "b1.h32.kvh8.q1.kv20000.d128.bf16",
    "b4.h32.kvh8.q1.kv1500.d128.bf16",
    "b7.h28.kvh4.q1.kv5000.d128.bf16",
    "b16.h64.kvh8.q1.kv2500.d128.bf16",
    "b48.h32.kvh8.q1.kv1200.d128.bf16",
    "b100.h32.kvh8.q1.kv600.d128.bf16",
    "b2.h40.q1.kv4000.d128.bf16",
    "b1.h32.kvh8.q5.kv3333.d128.bf16",
    "b1.h16.q500.d64.f16",
    "b1.h12.q197.d64.f16",
    "b8.h12.q197.d64.f16",
    "b32.h12.q512.d64.f16",
    "b2.h20.q1500.d64.f16",
    "b1.h24.q4429.d64.f16",
    "b2.h10.q4096.d64.f16",
    "b2.h10.q4096.kv77.d64.f16",
    "b4.h8.q1024.kv300.d64.f16",
    "b1.h5.q9000.d64.f16",
)
FAMILIES = ("attention_mma", "attention_hopper")
ON_MISS_S = 10.0
_TUNED = (Provenance.EXACT, Provenance.TIE)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="*", default=SHAPES)
    parser.add_argument("--server", help="address of the daemon; default: $ATTUNE_SERVER, or this host's")
    parser.add_argument("--device", default="cuda:0", help="the daemon's name of the device")
    parser.add_argument("--families", type=lambda text: text.split(","), default=FAMILIES, metavar="NAMES")
    parser.add_argument("--strategy", default="random", help="of the tuning that regret is held to")
    parser.add_argument("--max-time", type=float, default=4.0, metavar="S", help="of trials a shape")
    parser.add_argument("--max-trials", type=int, default=150, metavar="N", help="a shape")
    parser.add_argument(
        "--on-miss", action="store_true", help="the daemon runs with --on_miss=tune: wait for that first"
    )
    parser.add_argument("--limit", type=float, default=240.0, metavar="S", help="begin no shape after so many seconds")
    parser.add_argument("--out", type=Path, required=True, help="the report, written after each shape")
    return parser.parse_args(given)


def answer_of(client: attune.Client, problem: str, device: str) -> Answer:
    """The server's of now: nothing is taken from the client's cache."""
    return client.best(problem, device=device, domains=True)


def tuned_on_a_miss(client: attune.Client, problem: str, device: str) -> dict[str, Any]:
    """What the daemon answers once it has tuned the shape by itself, or after ON_MISS_S."""
    start = time.monotonic()
    while True:
        answer = answer_of(client, problem, device)
        seconds = time.monotonic() - start
        if answer.provenance in _TUNED or seconds > ON_MISS_S:
            return noted(answer) | {"seconds": round(seconds, 2)}
        time.sleep(0.1)


def noted(answer: Answer) -> dict[str, Any]:
    return {
        "provenance": answer.provenance.name,
        "detail": answer.provenance_detail,
        "variant": answer.variant.text,
        "code": answer.artifact_state.name,
    }


def best_times(trials: Sequence[Trial]) -> dict[str, float]:
    """Microseconds by variant, of those that are right."""
    times: dict[str, float] = {}
    for trial in trials:
        if trial.timing is not None:
            text = trial.variant.text
            times[text] = min(trial.timing.median_us, times.get(text, trial.timing.median_us))
    return times


def regret_of(client: attune.Client, problem: str, given: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": problem, "first": noted(answer_of(client, problem, given.device))}
    start = time.monotonic()
    if given.on_miss:
        row["on_miss"] = tuned_on_a_miss(client, problem, given.device)
        row["trials_on_a_miss"] = len(client.trials(problem, device=given.device))
    try:
        client.tune(
            problem,
            device=given.device,
            families=list(given.families),
            strategy=given.strategy,
            max_trials=given.max_trials,
            max_time=given.max_time,
            seed=1,
        ).result()
    except AttuneError as error:
        row["error"] = str(error).splitlines()[0]
    answers = [name for name in ("first", "on_miss") if name in row]
    for name in answers:
        tried = {trial.variant.text for trial in client.trials(problem, device=given.device)}
        if row[name]["variant"] not in tried:
            client.evaluate(problem, row[name]["variant"], device=given.device).result()
    trials = client.trials(problem, device=given.device, verdicts=["OK"])
    times = best_times(trials)
    fastest = min(times, key=lambda text: times[text])
    row |= {"trials": len(trials), "best": fastest, "best_us": times[fastest]}
    for name in answers:
        us = times.get(row[name]["variant"])
        row[name] |= {"us": us, "regret": us and round(us / times[fastest], 4)}
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the rows, median and worst regret by answer and by provenance."""
    found: dict[str, Any] = {"shapes": len(rows)}
    groups: dict[str, list[float]] = {}
    for row in rows:
        for name in ("first", "on_miss"):
            if row.get(name, {}).get("regret"):
                for group in (name, f"{name} {row[name]['provenance']}"):
                    groups.setdefault(group, []).append(row[name]["regret"])
    for name, regrets in sorted(groups.items()):
        found[name] = {"shapes": len(regrets), "median": statistics.median(regrets), "worst": max(regrets)}
    if rows:
        found["trials a shape, median"] = statistics.median(row["trials"] for row in rows)
    return found


def report(given: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """With what the tuning was that regret is held to."""
    tuning = {"strategy": given.strategy, "max_trials": given.max_trials, "max_time_s": given.max_time}
    return {**tuning, "families": list(given.families), "summary": summary(rows), "rows": rows}


def main(given: argparse.Namespace) -> None:
    end = time.monotonic() + given.limit
    problems = random.Random(0).sample(list(given.problem), len(given.problem))
    rows: list[dict[str, Any]] = []
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with attune.Client(given.server) as client:
        for problem in problems:
            if time.monotonic() > end:
                say(f"the limit of {given.limit:g} s came first: {len(problems) - len(rows)} shapes are left")
                break
            try:
                rows.append(regret_of(client, problem, given))
            except (AttuneError, ValueError) as error:
                say(f"{problem}: {error}")
                continue
            row = rows[-1]
            say(f"{problem}: {row['first']} on_miss {row.get('on_miss')} best {row['best_us']:.1f} of {row['trials']}")
            given.out.write_text(json.dumps(report(given, rows), indent=2) + "\n")
    say(json.dumps(summary(rows), indent=2))


if __name__ == "__main__":
    main(arguments())
