from __future__ import annotations

import math

import pytest

from attune_bench.statistics import CONFIDENCE, geometric_mean, left_out_at_each_end, median_interval


@pytest.mark.parametrize("n", [6, 7, 9, 20, 21, 40, 60])
def test_the_interval_covers_the_median_with_95_percent_and_no_narrower_one_does(n):
    def outside(r):
        return 2 * sum(math.comb(n, k) for k in range(r + 1)) * 0.5**n

    r = left_out_at_each_end(n)
    assert outside(r) <= 1 - CONFIDENCE < outside(r + 1)


def test_of_20_samples_the_6th_and_the_15th_are_the_ends():
    found = median_interval([float(i) for i in range(1, 21)])
    assert (found.low, found.median, found.high) == (6.0, 10.5, 15.0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_with_fewer_than_6_samples_the_ends_are_the_extremes(n):
    found = median_interval([float(i) for i in range(n, 0, -1)])
    assert (found.low, found.high) == (1.0, float(n))


def test_the_median_of_an_even_number_is_the_middle_of_two():
    assert median_interval([4.0, 1.0, 3.0, 2.0]).median == 2.5


def test_an_outlier_moves_no_end_of_the_interval():
    calm = [10.0 + i / 100 for i in range(21)]
    assert median_interval([*calm[:-1], 1000.0]) == median_interval(calm)


def test_no_samples_have_no_median():
    with pytest.raises(ValueError, match="samples is empty"):
        median_interval([])


def test_the_geometric_mean_of_a_factor_and_its_inverse_is_1():
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([]) is None
