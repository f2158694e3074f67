"""What the tolerance's growth rests on: how rare a right kernel's large errors are (tests/gpu/rounding_tail.py)."""

from __future__ import annotations

import math

import numpy
import pytest
import rounding_tail

from attune_bench.tolerance import tail_factor


def test_weights_are_rounded_as_fp16_is():
    values = numpy.random.default_rng(1).random(1000) * 256 + 2.0**-10
    assert (rounding_tail.rounded(values, "f16") == values.astype(numpy.float16)).all()


@pytest.mark.parametrize("x", [0.0, 0.5, 2.0, 5.0, 7.0])
def test_the_tail_is_the_normal_distributions(x):
    assert rounding_tail.upper_tail(numpy.array(x)) == pytest.approx(0.5 * math.erfc(x / math.sqrt(2)), rel=2e-3)


def test_a_right_kernel_fails_fewer_than_one_check_in_a_thousand_however_many_elements():
    model = rounding_tail.Model(keys=512, head_dim=64, dtype="f16", deviation=3.0)
    sizes = [2**17, 2**20, 2**25, 2**30]
    chances = rounding_tail.survival(model, rows=8192, seed=1, factors=[tail_factor(n) for n in sizes])
    assert all(0 < chance * n < 1e-3 for chance, n in zip(chances, sizes, strict=True))
