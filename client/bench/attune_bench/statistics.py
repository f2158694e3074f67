"""The median with its distribution-free interval (docs/measuring.md), held to the daemon's by
tests/golden/median_interval.json, and the geometric mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A median between the ends of its confidence interval, all in the samples' unit."""

    low: float
    median: float
    high: float

    @property
    def relative_width(self) -> float:
        """Of the interval, as a share of the median."""
        return (self.high - self.low) / self.median


def left_out_at_each_end(n: int) -> int:
    """The largest r with 2 P(Binomial(n, 1/2) <= r) <= 1 - CONFIDENCE; 0 when there is none."""
    tail = 0.0
    for r in range(n):
        tail += math.comb(n, r) * 0.5**n
        if 2 * tail > 1 - CONFIDENCE:
            return max(0, r - 1)
    return 0


def median_interval(samples: Sequence[float]) -> Interval:
    """Median and order-statistic interval (Hahn and Meeker, Statistical Intervals, section 5.2).

    With fewer than 6 samples no interval reaches 95 %, and the ends are the extremes. Raises ValueError without any.
    """
    if not samples:
        raise ValueError("samples is empty; a median needs at least one")
    ordered = sorted(samples)
    n = len(ordered)
    out = left_out_at_each_end(n)
    return Interval(ordered[out], (ordered[(n - 1) // 2] + ordered[n // 2]) / 2, ordered[n - 1 - out])


def geometric_mean(values: Iterable[float]) -> float | None:
    """Of positive values; None of none."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None
