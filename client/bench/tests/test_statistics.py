from __future__ import annotations

import math

import pytest
from golden import golden

from attune_bench.statistics import CONFIDENCE, Interval, geometric_mean, left_out_at_each_end, median_interval


@pytest.mark.parametrize("n", [6, 7, 9, 20, 21, 40, 60])
def test_the_interval_covers_the_median_with_95_percent_and_no_narrower_one_does(n):
    def outside(r):
        return 2 * sum(math.comb(n, k) for k in range(r + 1)) * 0.5**n

    r = left_out_at_each_end(n)
    assert outside(r) <= 1 - CONFIDENCE < outside(r + 1)


@pytest.mark.parametrize("case", golden("median_interval")["ranks"], ids=lambda case: str(case["samples"]))
def test_the_ends_are_the_ranks_that_the_daemon_takes(case):
    count, out = case["samples"], case["left_out"]
    found = median_interval([float(i) for i in range(count, 0, -1)])
    assert (found.low, found.high) == (1 + out, count - out)


@pytest.mark.parametrize("case", golden("median_interval")["intervals"])
def test_the_interval_is_the_daemons(case):
    assert median_interval(case["samples"]) == Interval(case["low"], case["median"], case["high"])


def test_an_outlier_moves_no_end_of_the_interval():
    calm = [10.0 + i / 100 for i in range(21)]
    assert median_interval([*calm[:-1], 1000.0]) == median_interval(calm)


def test_no_samples_have_no_median():
    with pytest.raises(ValueError, match="samples is empty"):
        median_interval([])


def test_the_geometric_mean_of_a_factor_and_its_inverse_is_1():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([]) is None
