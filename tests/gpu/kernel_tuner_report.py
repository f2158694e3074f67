"""What a run of beside_kernel_tuner.py shows: rates, results that both found right, times of the same variants."""

import statistics

# Verdicts of variants whose results are right: UNSTABLE's time did not settle, SLOW was given up after one checked run.
RIGHT = ("OK", "UNSTABLE", "SLOW")
AIM = 10  # times the other's variants a second


def right_by_both(trials, rows):
    """Variants that both found right, and those of which one alone did: [(variant, the daemon's verdict, the other's)].
    INFEASIBLE variants, which the daemon does not run, are neither."""
    both, apart = [], []
    for row in rows:
        verdict = trials[row["variant"]]["verdict"]
        if verdict == "INFEASIBLE":
            continue
        if row["right"] and verdict in RIGHT:
            both.append(row["variant"])
        elif row["right"] or verdict in RIGHT:
            apart.append((row["variant"], verdict, row["error"] or row["why"] or "right"))
    return both, apart


def agreement(trials, rows):
    """How Kernel Tuner's times compare with the daemon's of the same variants; None where no variant has both.

    `median`, `low` and `high`: the ratio's median and its middle half; `least`: the ratio's median with the least of
    Kernel Tuner's times of a variant in place of their mean. `chosen`: how much more time, by the daemon's clock,
    Kernel Tuner's fastest takes than the fastest of these, as a ratio.
    """
    mine = {
        text: trial["median_us"]
        for text, trial in trials.items()
        if trial["verdict"] in ("OK", "SLOW") and trial["median_us"]
    }
    timed = [row for row in rows if row["right"] and row["time_us"] and row["variant"] in mine]
    if not timed:
        return None
    ratios = sorted(row["time_us"] / mine[row["variant"]] for row in timed)
    low, median, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    fastest = min(timed, key=lambda row: row["time_us"])["variant"]
    return {
        "variants": len(timed),
        "median": median,
        "low": low,
        "high": high,
        "least": statistics.median(row["least_us"] / mine[row["variant"]] for row in timed),
        "chosen": mine[fastest] / min(mine[row["variant"]] for row in timed),
    }


def rates(row):
    """(variants a second of the whole operation, of its trials alone) of the daemon's row (throughput.py)."""
    return row["trials"] / row["seconds"], row["trials_per_s"]


def other_rates(run):
    """Likewise of Kernel Tuner's run: its trials are what it tells of: compiling, checking, timing, the rest."""
    parts = sum(parts_of(run).values())
    return len(run["rows"]) / run["seconds"], len(run["rows"]) / parts if parts else None


def parts_of(run):
    """Seconds of Kernel Tuner's run by what they went for."""
    names = ("compile", "verification", "benchmark", "framework")
    return {name: sum(row[f"{name}_s"] for row in run["rows"]) for name in names}


def figure(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def table(columns, rows):
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def rate_rows(found):
    """Of one problem."""
    for kind, row in found["attune"].items():
        where = ", ".join(f"{name} {taken:.2f}" for name, taken in row["phases"].items())
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in row["verdicts"].items())
        verdicts += f"; {row['others']} not of the list" if row.get("others") else ""
        cells = [f"{row['seconds']:.2f}", *map(figure, rates(row)), "", "", f"{where} ({verdicts})"]
        yield [found["problem"], "attune", kind, f"{row['trials']} of {len(found['trials'])}", *cells]
    for run in found["kernel_tuner"]:
        mine = rates(found["attune"][run["kind"]])
        ratios = [
            f"{me / other:.1f}x" if me and other else "" for me, other in zip(mine, other_rates(run), strict=True)
        ]
        where = ", ".join(f"{name} {taken:.2f}" for name, taken in parts_of(run).items())
        cells = [f"{run['seconds']:.2f}", *map(figure, other_rates(run)), *ratios, where]
        count = f"{len(run['rows'])} of {len(found['trials'])}"
        yield [found["problem"], f"Kernel Tuner, {run['backend']}", run["kind"], count, *cells]


def agreement_rows(found):
    for run in found["kernel_tuner"]:
        both, apart = right_by_both(found["trials"], run["rows"])
        of = agreement(found["trials"], run["rows"])
        name = f"{run['backend']}, {run['kind']}"
        cells = [""] * 5
        if of:
            cells = [of["variants"], figure(of["median"]), f"{of['low']:.2f} to {of['high']:.2f}", figure(of["least"])]
            cells.append(f"{100 * (of['chosen'] - 1):.1f} %")
        yield [found["problem"], name, len(both), len(apart), *cells]


RATE_COLUMNS = ["problem", "tuner", "", "variants", "s", "a second", "in its trials"]
RATE_COLUMNS += ["attune's", "in its trials", "where, s"]
AGREEMENT_COLUMNS = ["problem", "Kernel Tuner", "right by both", "by one alone", "timed by both"]
AGREEMENT_COLUMNS += ["its time / attune's", "middle half", "its least / attune's", "its fastest loses"]

RATES = f"""\
`attune's`: how many times Kernel Tuner's variants a second attune tries, of the whole operation and of the trials
alone; to reach: {AIM}x, cold. Kernel Tuner compiles in the process that times, one variant after the other; its
parallel mode gives each worker a GPU of its own, so that nothing overlaps on one. Its check is one run on one set of
inputs; attune's is that of what is SLOW, and of the others two runs on each of five sets, and another after timing, to
the same tolerance (docs/measuring.md). INFEASIBLE are variants that attune does not run: they spill registers or cannot
be resident.
"""

TIMES = """\
Kernel Tuner's time of a variant is the mean of 7 launches, each between two events on an idle stream, on the same
inputs; attune's is the median of graphs of back-to-back runs on rotating inputs. `its fastest loses`: how much more
time the variant that Kernel Tuner finds fastest takes than the fastest of the same variants, by attune's times.
"""


def toolchains(results):
    """What attune compiled with: one, unless something changed between the problems."""
    return sorted({trial["toolchain"] for found in results["problems"] for trial in found["trials"].values()})


def markdown(results, heading):
    """The document, from what beside_kernel_tuner.py has written."""
    yield f"# {heading}\n"
    yield (
        f"{results['device']}, driver {results['driver']}, {results['cores']} cores; attune with "
        f"{' and '.join(toolchains(results))}; {', '.join(map(' '.join, results['versions'].items()))}.\n"
        "Both tuned the same list of variants of attention_mma, of one launch each, from the same source, on the same\n"
        "device, one after the other. Cold: nothing was compiled before; warm: again, with compiled code at hand.\n"
    )
    yield from table(RATE_COLUMNS, (row for found in results["problems"] for row in rate_rows(found)))
    yield RATES
    yield from table(AGREEMENT_COLUMNS, (row for found in results["problems"] for row in agreement_rows(found)))
    yield TIMES


def failures(results):
    """What does not hold: an error, lists that differ, results that one alone finds right."""
    for found in results["problems"]:
        name = found["problem"]
        for kind, row in found["attune"].items():
            if row["error"]:
                yield f"{name}, attune {kind}: {row['error']}"
            if row["trials"] != len(found["trials"]):
                yield f"{name}, attune {kind}: {row['trials']} trials of a list of {len(found['trials'])}"
        for error in found["errors"]:
            yield f"{name}: {error}"
        for run in found["kernel_tuner"]:
            for variant, verdict, why in right_by_both(found["trials"], run["rows"])[1]:
                yield f"{name}, {run['backend']} {run['kind']}, {variant}: attune says {verdict}, Kernel Tuner {why}"
