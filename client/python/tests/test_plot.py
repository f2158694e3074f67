"""The scatter of trials."""

from __future__ import annotations

import sys

import pytest
from fake import message, trial

import attune
from attune.values import Trial

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def made(block_m, warps, median_us=0.0, family="attention_simt"):
    parameters = [{"name": "BLOCK_M", "value": block_m}, {"name": "WARPS", "value": warps}]
    result = trial(variant=message("Variant", family=family, parameters=parameters), verdict=1 if median_us else 7)
    result.ClearField("timing")
    if median_us:
        result.timing.median_us, result.timing.low_us, result.timing.high_us = median_us, median_us - 1, median_us + 2
    return Trial.from_message(result)


TRIALS = [made(16, 4, 50.0), made(32, 4, 40.0), made(64, 8, 30.0, "attention_wmma"), made(64, 4)]


@pytest.fixture(autouse=True)
def close():
    yield
    matplotlib.pyplot.close("all")


def points(axes):
    return sorted(tuple(point) for bars in axes.containers for point in bars.lines[0].get_xydata().tolist())


def test_latency_stands_over_the_parameters_values():
    axes = attune.plot_trials(TRIALS, "BLOCK_M")
    assert points(axes) == [(0, 50), (1, 40), (2, 30)]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["16", "32", "64"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("BLOCK_M", "latency, us")


def test_the_parameter_with_most_values_is_chosen():
    assert attune.plot_trials(TRIALS).get_xlabel() == "BLOCK_M"


@pytest.mark.parametrize(
    ("color", "groups"),
    [("family", ["attention_simt", "attention_wmma"]), ("verdict", ["CRASHED", "OK"])],
)
def test_groups_have_a_colour_each(color, groups):
    axes = attune.plot_trials(TRIALS, "BLOCK_M", color=color)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == groups
    colors = [bars.lines[0].get_color() for bars in axes.containers]
    assert len(set(colors)) == 2


def test_trials_never_timed_are_crosses_on_the_edge():
    crosses = [drawn.get_offsets().tolist() for drawn in attune.plot_trials(TRIALS, "BLOCK_M").collections]
    assert [[2, 0.02]] in crosses


def test_draws_into_the_axes_given():
    _, axes = matplotlib.pyplot.subplots()
    assert attune.plot_trials(TRIALS, axes=axes) is axes


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"parameter": "STAGES"}, "parameter is 'STAGES'; it must be one of BLOCK_M, WARPS"),
        ({"color": "device"}, "color is 'device'; it must be one of verdict, family"),
    ],
)
def test_what_is_not_allowed_is_named(arguments, what):
    with pytest.raises(attune.InvalidArgument, match=what):
        attune.plot_trials(TRIALS, **arguments)


def test_nothing_to_draw_is_said():
    with pytest.raises(attune.InvalidArgument, match="there is nothing to draw"):
        attune.plot_trials([])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'attune-attention\[notebook\]'"):
        attune.plot_trials(TRIALS)
