"""Recipes of other softmax scales than 1/sqrt(head_dim)."""

from __future__ import annotations

import math

import pytest

from attune.cuda.softmax_scale import scaled
from attune.errors import InvalidArgument
from attune.values import KernelArg, KernelLaunch, LaunchRecipe


def recipe(*args: KernelArg) -> LaunchRecipe:
    return LaunchRecipe((), (KernelLaunch("f", (1, 1, 1), (32, 1, 1), 0, args),), 0)


def values(of: LaunchRecipe) -> list[object]:
    return [arg.value for arg in of.launches[0].args]


def test_what_is_proportional_to_the_scale_is_scaled_and_nothing_else() -> None:
    one = recipe(KernelArg("F32", 0.25, max_scale_ratio=8.0), KernelArg("F32", 3.0), KernelArg("I32", 7))
    assert values(scaled(one, 64, 0.5)) == [1.0, 3.0, 7]
    assert values(scaled(one, 64, 0.0625)) == [0.125, 3.0, 7]


def test_the_smallest_ratio_of_a_recipe_is_its_limit() -> None:
    one = recipe(KernelArg("F32", 0.25, max_scale_ratio=8.0), KernelArg("F32", 1.0, max_scale_ratio=1.5))
    assert values(scaled(one, 64, 0.1875)) == [0.375, 1.5]
    with pytest.raises(InvalidArgument, match=r"scale is 0\.2; this kernel computes 1\.25e-07 to 0\.1875"):
        scaled(one, 64, 0.2)


@pytest.mark.parametrize("scale", [0.0, -0.125, 1e-46, math.nan, math.inf])
def test_a_scale_is_positive_and_finite(scale: float) -> None:
    with pytest.raises(InvalidArgument, match=r"this kernel computes 1\.25e-07 to"):
        scaled(recipe(KernelArg("F32", 0.25, max_scale_ratio=1e6)), 64, scale)


def test_a_recipe_without_a_ratio_computes_the_one_scale() -> None:
    with pytest.raises(InvalidArgument, match=r"scale is 0\.5; this kernel computes 1/sqrt\(head_dim\), 0\.125, alone"):
        scaled(recipe(KernelArg("F32", 0.125)), 64, 0.5)
