"""A run as a Markdown document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attune_bench.jsonl import Run
from attune_bench.markdown import error, factor, figure, table
from attune_bench.records import FLASH, OURS, TORCH, Header, Result, Row, Status
from attune_bench.reference_times import ReferenceTime, reference_table
from attune_bench.statistics import Interval, geometric_mean

_KINDS = (("prefill", "Prefill"), ("decode", "Decode"))


def report(run: Run, plots: dict[str, str], reference: Sequence[ReferenceTime]) -> str:
    """The whole document. `plots` are file names by title; `reference` are earlier times on the same kind of device."""
    sections = [
        _head(run),
        _floors(run.header),
        _summary(run),
        *(_times(run, kind, title) for kind, title in _KINDS),
        *([f"![{title}]({name})"] for title, name in plots.items()),
        _eager(run),
        _correctness(run),
        _misses(run),
        *([reference_table(run, reference)] if reference else []),
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _head(run: Run) -> list[str]:
    header = run.header
    missing = len(header.problems) - len(run.rows)
    clocks = sorted(row.sm_clock_mhz for row in run.rows if row.sm_clock_mhz)
    throttles = sorted({row.throttle for row in run.rows if row.throttle})
    state = "unknown without NVML"
    if clocks:
        powers = [row.power_w for row in run.rows]
        state = f"{clocks[0]} to {clocks[-1]} MHz, {min(powers):.0f} to {max(powers):.0f} W right after a row's samples"
        state += f"; throttled by: {', '.join(throttles)}" if throttles else "; nothing throttled"
    fields = [
        ("device", f"{header.device}, {header.sm_count} SMs, L2 {header.l2_bytes >> 20} MiB"),
        ("driver", header.driver),
        ("libraries", ", ".join(f"{name} {version}" for name, version in header.libraries.items())),
        ("date", header.date),
        ("command", f"`{header.command}`"),
        ("clock and power", state),
        ("problems", f"{len(run.rows)} of {len(header.problems)}" + (f", {missing} MISSING" if missing else "")),
    ]
    title = f"# attune beside PyTorch: {header.device}, {header.date[:10]}"
    words = "GPU time of one run in a CUDA graph, median, microseconds. docs/bench.md says how each figure is measured."
    return [title, "", words, "", *table(("", ""), fields, left=2)]


def _floors(header: Header) -> list[str]:
    def cells(what: str, interval: Interval, unit: str) -> tuple[str, ...]:
        return what, figure(interval.median, 4), f"{figure(interval.low, 4)} to {figure(interval.high, 4)}", unit

    floors = header.floors
    rows = [
        cells("launch overhead: an empty kernel in a graph", floors.launch_us, "us"),
        cells("reading device memory", floors.read_gbs, "GB/s"),
        cells("`mma.sync` m16n8k16, f16 in, f32 out", floors.mma_tflops, "TFLOP/s"),
    ]
    return ["## What the device reaches", "", *table(("", "median", "95 % interval", "unit"), rows)]


def _summary(run: Run) -> list[str]:
    others = [name for name in run.header.contestants if name != OURS]
    if OURS not in run.header.contestants:
        return []
    rows = []
    for kind, title in (*_KINDS, (None, "all")):
        chosen = [row for row in run.rows if kind in (None, row.kind)]
        speedups = [_mean_speedup(chosen, name) for name in others]
        best = geometric_mean([s for row in chosen if (s := row.speedup(row.best_of_torch()))])
        roof = geometric_mean([p for row in chosen if (p := row.percent_of_roof(OURS))])
        wins = sum(1 for row in chosen if (row.speedup(row.best_of_torch()) or 0) > 1)
        rows.append((title.lower(), *speedups, factor(best), f"{wins} of {len(chosen)}", figure(roof)))
    words = (
        "Geometric means of the others' time over attune's, over the problems that both got right; above 1 is faster."
    )
    columns = ("", *others, "the fastest of them", "faster than all", "percent of roofline")
    return ["## attune's speed-up", "", words, "", *table(columns, rows)]


def _mean_speedup(rows: Sequence[Row], name: str) -> str:
    speedups = [speedup for row in rows if (speedup := row.speedup(name))]
    mean = geometric_mean(speedups)
    return "" if mean is None else f"{factor(mean)} ({len(speedups)})"


def _times(run: Run, kind: str, title: str) -> list[str]:
    rows = [row for row in run.rows if row.kind == kind]
    if not rows:
        return []
    names = run.header.contestants
    columns = (
        "problem",
        *names,
        "vs sdpa",
        "vs flash",
        "vs fastest",
        "TFLOP/s",
        "GB/s",
        "% of roofline",
        "roofline us",
        "bound",
        "CTAs",
    )
    lines = [
        (
            row.problem,
            *(_time(row, name) for name in names),
            factor(row.speedup(TORCH)),
            factor(row.speedup(FLASH)),
            factor(row.speedup(row.best_of_torch())),
            figure(row.us(OURS) and row.flops / row.us(OURS) / 1e6),
            figure(row.us(OURS) and row.bytes / row.us(OURS) / 1e3),
            figure(row.percent_of_roof(OURS)),
            figure(row.roof_us),
            row.bound,
            str(row.served.ctas) if row.served else "",
        )
        for row in rows
    ]
    served = [
        (row.problem, row.served.provenance, f"`{row.served.variant}`", figure(row.served.tuned_us or None))
        for row in rows
        if row.served
    ]
    variants = table(("problem", "provenance", "variant", "daemon's us"), served, left=3) if served else []
    words = (
        "The fastest is bold; a time in brackets is of a wrong result; - has its reason under Misses. "
        "From `vs sdpa` on the figures are attune's."
    )
    return [f"## {title}", "", words, "", *table(columns, lines), *(["", *variants] if variants else [])]


def _time(row: Row, name: str) -> str:
    result = row.results.get(name)
    if result is None or result.timing is None:
        return "-"
    text = figure(result.timing.us.median)
    if result.status is Status.WRONG:
        return f"({text})"
    fastest = min(us for other in row.results if (us := row.us(other)))
    return f"**{text}**" if result.us == fastest else text


def _eager(run: Run) -> list[str]:
    names = run.header.contestants

    def cell(result: Result | None) -> str:
        if result is None or result.eager is None:
            return "-"
        return f"{figure(result.eager.call_us)} / {figure(result.eager.latency_us)}"

    rows = [(row.problem, *(cell(row.results.get(name)) for name in names)) for row in run.rows]
    words = "Microseconds of wall time of one call from Python: until it returns / until its result is there."
    return ["## Eager calls", "", words, "", *table(("problem", *names), rows)]


def _correctness(run: Run) -> list[str]:
    names = run.header.contestants

    def cell(result: Result | None) -> str:
        if result is None or result.accuracy is None:
            return "-"
        text = error(result.accuracy.max_abs_error)
        return f"{text} WRONG" if result.status is Status.WRONG else text

    def naive(row: Row) -> str:
        errors = [result.accuracy.plain_max_abs_error for result in row.results.values() if result.accuracy]
        return error(errors[0]) if errors else "-"

    rows = [(row.problem, naive(row), *(cell(row.results.get(name)) for name in names)) for row in run.rows]
    words = (
        "Largest absolute error against fp32, over inputs around 0 and around 1; beside it that of a naive computation."
    )
    return ["## Correctness", "", words, "", *table(("problem", "naive", *names), rows)]


def _misses(run: Run) -> list[str]:
    def entries() -> Iterator[tuple[str, ...]]:
        for row in run.rows:
            for name, result in row.results.items():
                if result.status is not Status.RIGHT:
                    yield row.problem, name, result.status.value, result.reason
                elif result.note:
                    yield row.problem, name, "note", result.note
        done = {row.problem for row in run.rows}
        for problem in run.header.problems:
            if problem not in done:
                yield problem, "all", "missing", "the run ended before it; --resume goes on"

    rows = list(entries())
    if not rows:
        return ["## Misses", "", "None."]
    return ["## Misses", "", *table(("problem", "contestant", "what", "why"), rows, left=4)]
