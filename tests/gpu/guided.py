#!/usr/bin/env python3
"""How near a short search comes to the exhaustive one, and how long it takes, on a GPU host, from a bundle
(deploy/bundle). An estimate: a minute a problem, 14 for all, most of it for tuning them whole; half of that with a
--data in which that was done.

    python3 tests/gpu/guided.py --bundle BUNDLE --out OUT [--data DIR] [--problems N] [--seconds S] [--resume FILE]

Each problem is tuned whole first, in the database of --data, where what is known is not tried again. Then, each time
with a store that knows no trial, come the searches of --runs:

- guided: `--strategy=guided --effort=standard`; default: a `tune` without options, which is that, with
  a seed of the server's choice;
- cold: nothing is compiled; warm: the store has the compiled code of the exhaustive tuning (code_only.py).

The winner plays off against the exhaustive winner (head_to_head.py). Seconds are the client's, from the command's start
to its end, opening the device included; the phases are in the JSON. Asked for are a winner that is at most 2 % slower,
warm within 5 s and cold within 15 s: of 9 in 10 of the shapes that no recording has, and of all that are named.

Writes OUT/guided.json and .md after each problem. Ends with 1 where a run misses that, and names the problems; with 3
when the time was up first: --seconds, before whose end a problem must be done that takes as long as the longest so far.
"""

import argparse
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import head_to_head
import problem_report
import tuning
from code_only import copy_code
from tuning import served, summary

# In no recording and no published result when they were chosen; lengths that no tile divides among them.
UNSEEN = [
    "b1.h16.kvh4.q1.kv6000.d128.f16",
    "b3.h32.kvh8.q1.kv1500.d128.bf16",
    "b8.h40.kvh8.q1.kv7000.d128.f16.window2000",
    "b2.h12.q600.d64.f16",
    "b5.h8.q1000.d128.f16.causal",
    "b1.h10.q3000.d64.bf16.causal",
    "b1.h28.kvh4.q700.d128.f16.causal",
    "b4.h14.kvh2.q250.kv2500.d128.bf16",
    "b2.h18.q900.d96.f16",
    "b1.h6.q2500.d256.f16",
]
NAMED = [
    "b7.h12.q197.d64.f16",
    "b1.h32.kvh8.q2048.d128.f16.causal",
    "b1.h2.q7000.d256.f16",
    "b2.h16.q2048.d256.f16.causal",
]
SEARCHES = {"guided": ["--strategy=guided", "--effort=standard"], "default": []}
LIMITS_S = {"warm": 5, "cold": 15}
RUNS = [f"{search}-{store}" for search in SEARCHES for store in LIMITS_S]
MOST_LOSS = 0.02
SHARE = 9 / 10  # of the unseen


def measure(setup, problem, options, scratch):
    """A row of the report."""
    row = {"problem": problem, "runs": {}, "error": None}
    data = options.data or scratch / "whole" / "data"
    with setup.daemon(scratch / "whole", data) as daemon:
        row["variants"] = setup.variants(daemon, problem)
        whole = setup.tune(daemon, problem, "--strategy=exhaustive")
    row["whole"] = summary(whole)
    best = served(whole)[0]
    if whole["error"] or not best:
        return row | {"error": f"tuned whole: {whole['error'] or row['whole']['decision']}"}
    compared = {}
    for run in options.runs:
        search, store = run.split("-")
        own = scratch / run
        if store == "warm":
            copy_code(data, own / "data")
        with setup.daemon(own) as daemon:
            tuned = setup.tune(daemon, problem, *SEARCHES[search], *seed_of(search, options.seed))
            winner = served(tuned)[0]
            if winner and winner not in compared:
                compared[winner] = head_to_head.compare(setup, daemon, problem, winner, best, options.play_offs)
        row["runs"][run] = {**summary(tuned), "against_whole": compared.get(winner)}
    return row


def seed_of(search, seed):
    """The default is what it is."""
    return [f"--seed={seed}"] if search != "default" else []


def loss_of(run):
    """How much slower than the exhaustive winner; None where they were not compared."""
    gain = (run["against_whole"] or {}).get("gain")
    return gain["middle"] if gain else None


def misses_of(name, run):
    """What is wrong with a run, in words; empty: nothing."""
    if run["error"] or not run["variant"]:
        return [run["error"] or f"serves nothing: {run['decision']}"]
    loss, limit = loss_of(run), LIMITS_S[name.split("-")[1]]
    found = []
    if loss is None:
        found.append(head_to_head.text_of(run["against_whole"]))
    elif loss > MOST_LOSS:
        found.append(f"{100 * loss:.1f} % slower than the exhaustive winner")
    if run["seconds"] > limit:
        found.append(f"{run['seconds']:.1f} s")
    return found


def judge(rows):
    """(a sentence on each kind of run and group of problems, what misses, whether the aims are met)."""
    sentences, misses, met = [], [], bool(rows)
    measured = [row for row in rows if not row["error"]]
    misses += [f"{row['problem']}: {row['error']}" for row in rows if row["error"]]
    met = met and not misses
    for name in RUNS:
        for named, words in ((False, "that no recording has"), (True, "that are named")):
            group = [row for row in measured if (row["problem"] in NAMED) == named and name in row["runs"]]
            if not group:
                continue
            wrong = {row["problem"]: misses_of(name, row["runs"][name]) for row in group}
            hits = sum(not found for found in wrong.values())
            least = len(group) if named else math.ceil(SHARE * len(group) - 1e-9)
            sentences.append(
                f"{name}: {hits} of {len(group)} shapes {words} within 2 % and {LIMITS_S[name.split('-')[1]]} s; "
                f"at least {least} are asked for"
            )
            misses += [f"{name} {problem}: {', '.join(found)}" for problem, found in wrong.items() if found]
            met = met and hits >= least
    return sentences, misses, met


def lines(row):
    """The cells of each run, the exhaustive one first."""
    for name, run in {"exhaustive": row["whole"], **row["runs"]}.items():
        us = f"{1e3 * run['latency_ms']:.2f}" if run["latency_ms"] else ""
        slower, missed = "", row["error"] or ""
        if name != "exhaustive":
            slower = head_to_head.text_of(run["against_whole"]) if run["against_whole"] else ""
            slower = "one variant" if run["variant"] == row["whole"]["variant"] else slower
            missed = ", ".join(misses_of(name, run))
        cells = [row["problem"], str(row["variants"]), name, f"{run['seconds']:.1f}", str(run["trials"])]
        yield [*cells, str(run["compiles"]), us, slower, missed]


def runs_of(text):
    names = text.split(",")
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        raise argparse.ArgumentTypeError(f"run {unknown[0]!r} is not known; it must be one of {', '.join(RUNS)}")
    return names


REPORT = problem_report.Report(
    name="guided",
    told=lines,
    judge=judge,
    title="Short searches beside exhaustive ones",
    text="Each run begins with a store that knows no trial, of this problem or any other. Slower is how much slower "
    "its winner is than the exhaustive one, with the interval of several play-offs (tests/gpu/head_to_head.py).",
    columns=["problem", "variants", "run", "s", "trials", "compiles", "winner us", "slower", "missed"],
)


def main():
    parser = problem_report.parser_for(__doc__)
    tuning.add_options(parser)
    problem_report.add_options(parser)
    parser.add_argument("--data", type=pathlib.Path, help="data directory of the exhaustive tunings, kept")
    runs = "guided-warm,guided-cold"
    parser.add_argument("--runs", type=runs_of, default=runs_of(runs), help=f"of {', '.join(RUNS)}; default: {runs}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--play-offs", type=int, default=3, metavar="N", help="of each pair; default: 3")
    options = parser.parse_args()
    return problem_report.make(REPORT, UNSEEN + NAMED, measure, tuning.setup_of(options), options)


if __name__ == "__main__":
    sys.exit(main())
