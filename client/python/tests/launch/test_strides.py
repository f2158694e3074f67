"""Recipes of tensors that lie in memory otherwise than their problem has them."""

from __future__ import annotations

import pytest

from attune.cuda.strides import names_strides, placed, placement_of
from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.values import KernelArg, KernelLaunch, LaunchRecipe, Stride, StrideTerm, TensorMap

DENSE = Problem.parse("b2.h4.kvh2.q16.kv32.d64.f16")
OWN = ((4096, 1024, 64), (4096, 2048, 64), (4096, 2048, 64), (4096, 1024, 64))


def recipe(*strides: tuple[str, str, int], maps: tuple[TensorMap, ...] = ()) -> LaunchRecipe:
    args = [KernelArg("I64", value, Stride(role, dimension)) for role, dimension, value in strides]
    args += [KernelArg("TENSOR_MAP", one) for one in maps]
    return LaunchRecipe((), (KernelLaunch("f", (1, 1, 1), (32, 1, 1), 0, (KernelArg("I64", 7), *args)),), 0)


def values(of: LaunchRecipe) -> list[object]:
    return [arg.value for arg in of.launches[0].args]


def test_the_problems_own_layout_leaves_a_recipe_as_it_is() -> None:
    one = recipe(("Q", "ROW", 64))
    assert placed(one, DENSE, OWN) is one


def test_strides_take_the_place_of_those_that_the_recipe_names() -> None:
    one = recipe(("K", "ROW", 64), ("K", "HEAD", 2048), ("V", "ROW", 64))
    found = placed(one, DENSE, (OWN[0], (4096, 64, 128), (4096, 2048, 72), OWN[3]))
    assert values(found) == [7, 128, 64, 72]


def test_a_stride_of_a_single_entry_means_nothing() -> None:
    one = recipe(("Q", "HEAD", 1024))
    single = Problem.parse("b1.h4.q1.kv32.d64.f16")
    spacing = ((9, 64, 9), (9, 2048, 64), (9, 2048, 64), (9, 64, 9))
    assert placed(one, single, spacing) is one


@pytest.mark.parametrize(
    ("spacing", "error"),
    [
        ((4096, 1024, 72), r"q has 72 elements from one row to the next; this kernel reads 64 alone, as layout bhsd"),
        ((4096, 1028, 64), r"q has 1028 elements from one head to the next; it must be a multiple of 8, at least 0"),
        ((4096, -64, 64), r"q has -64 elements from one head"),
        ((4096, 1 << 31, 64), r"q has 2147483648 elements from one head to the next; it must be less than 2147483648"),
    ],
)
def test_errors_name_the_tensor_and_the_stride(spacing: tuple[int, int, int], error: str) -> None:
    with pytest.raises(InvalidArgument, match=error):
        placed(recipe(("Q", "HEAD", 1024)), DENSE, (spacing, *OWN[1:]))


def test_inputs_may_be_expanded_but_no_output() -> None:
    one = recipe(("K", "HEAD", 2048), ("O", "HEAD", 1024))
    assert values(placed(one, DENSE, (OWN[0], (4096, 0, 64), *OWN[2:]))) == [7, 0, 1024]
    with pytest.raises(InvalidArgument, match="out has 0 elements from one head to the next"):
        placed(one, DENSE, (*OWN[:3], (4096, 0, 64)))


def test_a_tensor_map_is_encoded_with_the_tensors_strides() -> None:
    row = Stride("K", "ROW")
    terms = (StrideTerm(0, row, 2, 0), StrideTerm(2, row, -2, 1 << 35))
    one = TensorMap(
        KernelArg("K"), 0, "F16", (64, 32, 2, 2), (128, 4096, (1 << 35) - 128), (64, 8, 1, 1), 128, 256, terms
    )
    found = values(placed(recipe(maps=(one,)), DENSE, (OWN[0], (4096, 2048, 80), *OWN[2:])))[1]
    assert found.strides == (160, 4096, (1 << 35) - 160)
    with pytest.raises(InvalidArgument, match=r"k has 0 elements from one row to the next; it must be .* at least 8"):
        placed(recipe(maps=(one,)), DENSE, (OWN[0], (4096, 2048, 0), *OWN[2:]))


def test_dimensions_are_found_in_each_kinds_order() -> None:
    def strides(problem: str) -> tuple:
        return placement_of(Problem.parse(problem), (1, 2, 3, 1), (4, 5, 6, 1), (7, 8, 9, 1), (10, 11, 12, 1))

    assert strides("b2.h4.q16.d64.f16") == ((1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12))
    assert strides("b2.h4.q16.d64.f16.varlen") == ((0, 2, 1), (0, 5, 4), (0, 8, 7), (0, 11, 10))
    assert strides("b2.h4.q16.d64.f16.page16") == ((1, 2, 3), (4, 6, 5), (7, 9, 8), (10, 11, 12))


def test_pages_are_as_far_apart_as_the_tensor_has_them() -> None:
    paged = Problem.parse("b2.h4.kvh2.q16.kv32.d64.f16.page16")
    own = ((4096, 1024, 64), (2048, 64, 128), (2048, 64, 128), (4096, 1024, 64))
    one = recipe(("K", "BATCH", 2048))
    assert placed(one, paged, own) is one
    assert values(placed(one, paged, (own[0], (4096, 64, 128), *own[2:]))) == [7, 4096]


def test_a_recipe_says_whether_it_takes_strides() -> None:
    assert names_strides(recipe(("Q", "ROW", 64)))
    assert not names_strides(recipe())
