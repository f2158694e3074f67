"""A run as two pictures: attune's speed-up over each contestant by shape, and everybody's percent of roof by shape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attune_bench.jsonl import Run
from attune_bench.records import OURS, OURS_16, TORCH, Row

# Okabe and Ito's colours, which colour-blind readers can tell apart; each contestant keeps its own in every picture.
_STYLE = {
    OURS: ("#000000", "D"),
    OURS_16: ("#F0E442", "d"),
    TORCH: ("#999999", "s"),
    "flash": ("#D55E00", "o"),
    "cudnn": ("#009E73", "^"),
    "efficient": ("#56B4E9", "v"),
    "math": ("#CC79A7", "X"),
    "flex": ("#E69F00", "P"),
    "flash4": ("#0072B2", "*"),
}
SPEEDUP = "attune's speed-up by shape"
ROOF = "percent of roofline by shape"


def plot(run: Run, prefix: Path) -> dict[str, str]:
    """Writes `<prefix>-speedup.svg` and `<prefix>-roof.svg`; their file names by title. Nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return {}
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "attune"  # the same run gives the same file
    contestants = [name for name in run.header.contestants if name in _STYLE]
    names: dict[str, str] = {}
    if OURS in contestants:
        others = [name for name in contestants if name != OURS]
        file = Path(f"{prefix}-speedup.svg")
        label = "contestant's time / attune's time (log scale); right of 1: attune is faster"
        _dots(run, others, lambda row, name: row.speedup(name), SPEEDUP, label, 1.0, file)
        names[SPEEDUP] = file.name
    file = Path(f"{prefix}-roof.svg")
    label = "roof's time / contestant's time, percent (log scale); the roofs are mma.sync's rate and reading"
    _dots(run, contestants, lambda row, name: row.percent_of_roof(name), ROOF, label, 100.0, file)
    names[ROOF] = file.name
    return names


def _dots(
    run: Run,
    contestants: list[str],
    value: Callable[[Row, str], float | None],
    title: str,
    label: str,
    line: float,
    path: Path,
) -> None:
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    rows = run.rows[::-1]  # the first at the top
    figure, axes = pyplot.subplots(figsize=(10, 1.8 + 0.24 * max(4, len(rows))), layout="constrained")
    for i, row in enumerate(rows):
        for name in contestants:
            if (x := value(row, name)) is not None:
                colour, marker = _STYLE[name]
                ours = name == OURS
                axes.plot(x, i, marker, color=colour, markersize=5 if ours else 6, zorder=4 if ours else 3)
    for name in contestants:
        axes.plot([], [], _STYLE[name][1], color=_STYLE[name][0], label=name)
    axes.axvline(line, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(rows)), [row.problem for row in rows], fontsize=8, family="monospace")
    axes.set_ylim(-0.7, max(0, len(rows) - 1) + 0.7)
    axes.set_xlabel(label)
    axes.grid(True, axis="both", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(f"{title}: {run.header.device}, {run.header.date[:10]}")
    figure.legend(loc="outside lower center", ncols=len(contestants), frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
