from __future__ import annotations

import math

import numpy
import pytest
from golden import golden

from attune_bench.tolerance import Errors, errors_of, largest_allowed, tail_factor, why_wrong

GOOD = {
    "wrong_elements": 0,
    "elements": 100,
    "max_abs_error": 2e-4,
    "max_reference": 1.5,
    "plain_max_abs_error": 9e-4,
}


def errors(**fields):
    return Errors(**{**GOOD, **fields})


def test_a_good_result_has_nothing_wrong():
    assert why_wrong("f16", errors()) == ""


def test_an_element_outside_the_tolerance_is_wrong_and_counted():
    assert why_wrong("f16", errors(wrong_elements=3, max_abs_error=0.5)).startswith("3 of 100 elements are off")


def test_nan_and_infinity_are_wrong():
    assert "NaN or Inf" in why_wrong("f16", errors(wrong_elements=1, max_abs_error=math.inf))


def test_within_the_tolerance_but_twice_a_naive_computations_error_is_wrong():
    worse = errors(max_abs_error=2.1e-3, plain_max_abs_error=1e-3)
    assert why_wrong("f16", worse) == "the largest error is 0.0021; allowed is 0.002, twice a naive computation's"


@pytest.mark.parametrize(("dtype", "step"), [("f16", 2.0**-10), ("bf16", 2.0**-7)])
def test_one_rounding_step_at_the_largest_value_is_always_free(dtype, step):
    assert largest_allowed(dtype, errors(max_reference=3.9, plain_max_abs_error=0)) == 2 * 2 * step


def test_a_reference_of_zeros_has_no_rounding_step():
    assert largest_allowed("f16", errors(max_reference=0, plain_max_abs_error=0)) == 0


@pytest.mark.parametrize("case", golden("tolerance"), ids=lambda case: case["name"])
def test_the_daemon_judges_the_same(case):
    output, reference = (numpy.array([float(x) for x in case[name]], numpy.float32) for name in ("output", "reference"))
    found = errors_of(case["dtype"], output, reference, case["plain"])
    assert (found.wrong_elements, found.max_abs_error) == (case["wrong"], float(case["max_error"]))
    assert (why_wrong(case["dtype"], found) == "") == case["right"]


@pytest.mark.parametrize("vector", golden("tolerance_tail"), ids=lambda vector: str(vector["elements"]))
def test_the_tolerance_grows_as_the_largest_of_so_many_errors(vector):
    assert tail_factor(vector["elements"]) == pytest.approx(vector["factor"], abs=1e-12)
