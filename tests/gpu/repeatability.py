#!/usr/bin/env python3
"""Whether a tuning comes out the same twice, on a GPU host, from a bundle (deploy/bundle). An estimate: 40 s a
problem with the defaults, 14 minutes for all 20, in two calls, the second with --resume.

    python3 tests/gpu/repeatability.py --bundle BUNDLE --out OUT [--problems N] [--seconds S] [--resume FILE]

Each problem is tuned by two daemons, each of which has never timed anything: a search with its own seed, or all
variants where there are few. The second one begins with the first one's compiled code and nothing else of it
(code_only.py). Then

- the first one tunes once more (--retry-known). Where another variant is served afterwards, the two play off: a change
  between variants that are the SAME, or to a slower one, is a flip;
- the two winners play off (head_to_head.py) beside the second daemon's database.

Writes OUT/repeatability.json and .md after each problem. Ends with 1 where fewer than 19 of 20 pairs of winners are
within 1 %, or something flips, and names them; with 3 when the time was up first: --seconds, before whose end a problem
must be done that takes as long as the longest so far.
"""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import head_to_head
import problem_report
import tuning
from code_only import copy_code
from tuning import served, summary

PROBLEMS = [
    "b1.h1.q32.d64.f16",
    "b1.h1.q128.d64.f16",
    "b1.h1.q512.d64.f16",
    "b2.h8.q512.d64.f16",
    "b2.h8.q512.d64.f16.causal",
    "b7.h12.q197.d64.f16",
    "b16.h32.q1024.d64.f16",
    "b8.h16.q2048.d128.f16",
    "b16.h16.q1024.d128.f16.causal",
    "b1.h32.kvh8.q2048.d128.f16.causal",
    "b2.h16.q2048.d96.f16",
    "b2.h16.q2048.d256.f16.causal",
    "b2.h16.q1024.d256.bf16",
    "b4.h32.kvh4.q1.kv3000.d64.bf16",
    "b1.h32.kvh8.q1.kv1024.d128.f16",
    "b1.h32.kvh8.q1.kv8192.d128.f16",
    "b8.h32.kvh8.q1.kv4096.d128.f16",
    "b128.h32.kvh8.q1.kv1024.d128.f16",
    "b8.h32.kvh8.q8.kv4096.d128.f16",
    "b1.h32.kvh8.q128.kv8192.d128.f16",
]
WITHIN = 0.01
SHARE = 19 / 20


def search_of(variants, effort, few):
    """The options of a tuning of a space with so many variants, but for the seed."""
    return ["--strategy=exhaustive"] if variants <= few else ["--strategy=guided", f"--effort={effort}"]


def measure(setup, problem, options, scratch):
    """A row of the report."""
    row = {"problem": problem, "error": None}
    with setup.daemon(scratch / "first") as daemon:
        row["variants"] = setup.variants(daemon, problem)
        row["search"] = search_of(row["variants"], options.effort, options.few)
        first = setup.tune(daemon, problem, *row["search"], f"--seed={options.seeds[0]}")
        again = setup.tune(daemon, problem, *row["search"], f"--seed={options.seeds[0]}", "--retry-known")
        row |= {"first": summary(first), "again": summary(again), "flip": None}
        before, after = served(first)[0], served(again)[0]
        if before and after and before != after:
            row["flip"] = head_to_head.compare(setup, daemon, problem, before, after, options.play_offs)
    copy_code(scratch / "first" / "data", scratch / "second" / "data")
    with setup.daemon(scratch / "second") as daemon:
        second = setup.tune(daemon, problem, *row["search"], f"--seed={options.seeds[1]}")
        row["second"] = summary(second)
        pair = served(second)[0], before
        if all(pair):
            row["winners"] = head_to_head.compare(setup, daemon, problem, *pair, options.play_offs)
    return row | {"error": error_of(row)}


def error_of(row):
    """Why there is nothing to judge; None where there is."""
    for name in ("first", "again", "second"):
        if row[name]["error"] or not row[name]["variant"]:
            return f"{name} tuning: {row[name]['error'] or row[name]['decision']}"
    return row["winners"]["error"] or (row["flip"] or {}).get("error")


def is_within(row):
    return not row["error"] and abs(row["winners"]["gain"]["middle"]) <= WITHIN


def is_flip(row):
    """Whether another variant took the place of one that it ties with, or that is faster."""
    return bool(row["flip"]) and row["flip"]["answer"] in ("SAME", "SLOWER")


def judge(rows):
    """(a sentence on each aim, what misses it by itself, whether the aims are met)."""
    within, flips = [row for row in rows if is_within(row)], [row for row in rows if is_flip(row)]
    same = sum(not row["error"] and row["winners"]["answer"] == "SAME" for row in rows)
    changed = [row for row in rows if row["flip"]]
    unclear = [row for row in changed if row["flip"]["answer"] not in ("SAME", "SLOWER", "FASTER")]
    least = math.ceil(SHARE * len(rows) - 1e-9)
    sentences = [
        f"{len(within)} of {len(rows)} pairs of winners are within 1 %, at least {least} are asked for; "
        f"of {same} the whole interval is",
        f"tuned again, {len(changed)} serve another variant, {len(flips)} of them one that is the same or slower; "
        f"of {len(unclear)} it is unclear",
    ]
    misses = [f"{row['problem']}: {row['error'] or head_to_head.text_of(row['winners'])}" for row in rows
              if not is_within(row)]  # fmt: skip
    misses += [f"{row['problem']}: tuned again, flips: {head_to_head.text_of(row['flip'])}" for row in flips]
    return sentences, misses, len(within) >= least and not flips and bool(rows)


def cells(row):
    search = " ".join(option.partition("=")[2] for option in row["search"])
    seconds = " ".join(f"{row[name]['seconds']:.1f}" for name in ("first", "again", "second"))
    times = [f"{1e3 * row[name]['latency_ms']:.2f}" if row[name]["latency_ms"] else "" for name in ("first", "second")]
    if row["error"]:
        gain, daemon = row["error"], ""
    else:
        same = row["first"]["variant"] == row["second"]["variant"]
        gain = "one variant" if same else head_to_head.text_of(row["winners"])
        daemon = " ".join(row["winners"]["daemon"])
    again = f"another: {head_to_head.text_of(row['flip'])}" if row["flip"] else "the same"
    return [row["problem"], str(row["variants"]), search, seconds, *times, gain, daemon, again]


REPORT = problem_report.Report(
    name="repeatability",
    told=lambda row: [cells(row)],
    judge=judge,
    title="Tuned twice",
    text="Each problem is tuned by two daemons that know nothing, with another seed each; the winners then play off. "
    "The gain is that of the first one's winner over the second one's, with the interval of several play-offs "
    "(tests/gpu/head_to_head.py).",
    columns=["problem", "variants", "search", "s", "first us", "second us", "gain", "daemon says", "tuned again"],
)


def main():
    parser = problem_report.parser_for(__doc__)
    tuning.add_options(parser)
    problem_report.add_options(parser)
    parser.add_argument("--effort", default="quick", choices=("quick", "standard", "full"), help="default: quick")
    parser.add_argument(
        "--few", type=int, default=100, metavar="N", help="tune N variants or fewer whole; default: 100"
    )
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 2), metavar="SEED")
    parser.add_argument("--play-offs", type=int, default=5, metavar="N", help="of each pair; default: 5")
    options = parser.parse_args()
    return problem_report.make(REPORT, PROBLEMS, measure, tuning.setup_of(options), options)


if __name__ == "__main__":
    sys.exit(main())
