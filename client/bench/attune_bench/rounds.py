"""Interleaved sampling: every contestant once a round, in a new random order each round.

A device that drifts then drifts for all of them alike. Knows no GPU: a contestant is a function that takes one sample.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attune_bench.statistics import median_interval


@dataclass(frozen=True, slots=True)
class Rules:
    """When sampling ends."""

    min_samples: int = 7
    max_samples: int = 40
    relative_width: float = 0.01  # settled when the median's interval is narrower than this share of it
    seconds: float = 2.0  # of sampling, for all contestants together; min_samples are taken whatever they cost
    heat_seconds: float = 0.0  # of samples before these, that do not count: a card at its power limit clocks lower then


def settled(samples: list[float], rules: Rules) -> bool:
    """Whether there are enough samples, and their median is known well enough."""
    return len(samples) >= rules.min_samples and median_interval(samples).relative_width < rules.relative_width


def interleave(
    timers: Mapping[str, Callable[[], float]], rules: Rules, clock: Callable[[], float], seed: int
) -> dict[str, list[float]]:
    """Samples of each timer, in microseconds.

    Rounds go on until every contestant is settled or out of its even share of the time. One that is out of its share,
    settled or not, takes no part in further rounds: a slow contestant does not eat the time of the others.

    Args:
        timers: by contestant, a function that takes one sample and returns microseconds.
        clock: seconds, for the budget alone.
        seed: of the orders.
    """
    samples: dict[str, list[float]] = {name: [] for name in timers}
    spent = dict.fromkeys(timers, 0.0)
    share = rules.seconds / max(1, len(timers))
    order = random.Random(seed)

    heated = clock() + rules.heat_seconds
    while timers and clock() < heated:
        for timer in timers.values():
            timer()

    def out_of_time(name: str) -> bool:
        return len(samples[name]) >= rules.min_samples and spent[name] >= share

    for _ in range(rules.max_samples):
        playing = [name for name in timers if not out_of_time(name)]
        if all(settled(samples[name], rules) for name in playing):
            break
        order.shuffle(playing)
        for name in playing:
            start = clock()
            samples[name].append(timers[name]())
            spent[name] += clock() - start
    return samples
