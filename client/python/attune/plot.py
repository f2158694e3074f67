"""Trials as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attune.errors import InvalidArgument
from attune.values import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {"verdict": lambda trial: trial.verdict.name, "family": lambda trial: trial.variant.family}


def plot_trials(
    trials: Iterable[Trial], parameter: str | None = None, *, color: str = "family", axes: Axes | None = None
) -> Axes:
    """Latency in microseconds, on a log scale, against the values of one parameter, with its 95 % interval.

    `parameter`: without one, that of which the trials have most values. `color`: by "family" or "verdict". Trials
    that were never timed are crosses on the lower edge. Draws into `axes`, or into a figure of its own, and returns
    the axes. ImportError without matplotlib; InvalidArgument names what is wrong and what is allowed.
    """
    try:
        from matplotlib import pyplot, ticker
    except ImportError as error:
        raise ImportError("attune.plot_trials needs matplotlib: pip install 'attune-attention[notebook]'") from error
    if color not in _COLORS:
        raise InvalidArgument(f"color is {color!r}; it must be one of {', '.join(_COLORS)}")
    trials = list(trials)
    parameter, values = _axis(trials, parameter)
    if axes is None:
        _, axes = pyplot.subplots()
    group_of = _COLORS[color]
    shown = [trial for trial in trials if parameter in trial.variant.parameters]
    for group in sorted({group_of(trial) for trial in shown}):
        _draw(axes, group, [trial for trial in shown if group_of(trial) == group], parameter, values)
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.set_xlabel(parameter)
    axes.set_ylabel("latency, us")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(ticker.LogFormatter())
    axes.yaxis.set_minor_formatter(ticker.LogFormatter())
    axes.legend()
    return axes


def _axis(trials: Sequence[Trial], parameter: str | None) -> tuple[str, list[int]]:
    """The parameter and its values among the trials, ascending."""
    values: dict[str, set[int]] = {}
    for trial in trials:
        for name, value in trial.variant.parameters.items():
            values.setdefault(name, set()).add(value)
    if not values:
        raise InvalidArgument("trials are none with a parameter; there is nothing to draw")
    chosen = parameter or max(values, key=lambda name: len(values[name]))
    if chosen not in values:
        raise InvalidArgument(f"parameter is {chosen!r}; it must be one of {', '.join(values)}")
    return chosen, sorted(values[chosen])


def _draw(axes: Axes, group: str, trials: Sequence[Trial], parameter: str, values: Sequence[int]) -> None:
    place = {value: index for index, value in enumerate(values)}
    timed = [(place[trial.variant.parameters[parameter]], trial.timing) for trial in trials if trial.timing]
    untimed = [place[trial.variant.parameters[parameter]] for trial in trials if not trial.timing]
    below = [timing.median_us - timing.low_us for _, timing in timed]
    above = [timing.high_us - timing.median_us for _, timing in timed]
    bars = axes.errorbar(
        [x for x, _ in timed], [timing.median_us for _, timing in timed], yerr=[below, above], fmt="o", label=group
    )
    if untimed:
        edge = axes.get_xaxis_transform()
        axes.scatter(
            untimed, [0.02] * len(untimed), marker="x", color=bars.lines[0].get_color(), transform=edge, clip_on=False
        )
