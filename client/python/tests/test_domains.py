"""Recipes at other lengths than they were made for."""

from __future__ import annotations

import pytest
from fake import answer

from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.values import Answer, Axis, Domain, Field, KernelArg, Provenance, Step, Varying
from attune.values.domain import length_along, parse_ranges

MAP = {"base": {"role": 2}, "dims": [64, 16], "strides": [128], "base_offset": 32, "box": [64, 16], "element": 2}
RECIPE = {
    "scratch": [{"name": "partial", "bytes": 64}],
    "launches": [
        {
            "entry": "f",
            "grid": {"x": 2, "y": 3, "z": 1},
            "block": {"x": 128, "y": 1, "z": 1},
            "dynamic_shared_bytes": 512,
            "args": [{"buffer": {"role": 1}}, {"i32": 16}, {"i64": 1024}, {"f32": 0.5}, {"tensor_map": MAP}],
        }
    ],
}


def varying(field: Field, index: int = 0, part: int = 0, **step: int) -> dict:
    known = {"divide": 1, **step}
    return {"field": field.value, "index": index, "part": part, "step": known}


VARYING = [
    varying(Field.SCRATCH_BYTES, slope=4),
    varying(Field.GRID, 1, base=1, slope=1, add=15, divide=16),
    varying(Field.DYNAMIC_SHARED_BYTES, base=500, slope=1),
    varying(Field.ARG, 1, slope=1),
    varying(Field.ARG, 2, base=-10, slope=64),
    varying(Field.TENSOR_MAP_DIM, 4, 1, slope=1),
    varying(Field.TENSOR_MAP_STRIDE, 4, 0, slope=16),
    varying(Field.TENSOR_MAP_OFFSET, 4, base=16),
]


def ranged(**fields: object) -> Answer:
    known = {
        "problem": Problem.parse("b1.h2.q1.kv16.d64.f16").to_message(),
        "recipe": RECIPE,
        "geometry": {"ctas": 6},
        "domains": [
            {"axis": 1, "low": 10, "high": 40, "varying": VARYING},
            {"axis": 1, "low": 41, "high": 50},
            {"axis": 4, "low": 1, "high": 3},
        ],
    }
    return Answer.from_message(answer(**{**known, **fields}))


def test_a_recipe_has_the_lengths_numbers() -> None:
    there = ranged().at(Problem.parse("b1.h2.q1.kv33.d64.f16"))
    assert there is not None
    (launch,) = there.recipe.launches
    assert there.recipe.scratch[0].bytes == 132
    assert (launch.grid, launch.block, launch.dynamic_shared_bytes) == ((2, 4, 1), (128, 1, 1), 533)
    assert launch.args[:4] == (KernelArg("Q"), KernelArg("I32", 33), KernelArg("I64", 2102), KernelArg("F32", 0.5))
    tensor_map = launch.args[4].value
    assert (tensor_map.dims, tensor_map.strides, tensor_map.base_offset) == ((64, 33), (528,), 16)
    assert tensor_map.box == (64, 16)


def test_each_length_has_its_own_domain() -> None:
    known = ranged()
    assert known.at(known.problem) is known
    assert known.at(Problem.parse("b1.h2.q1.kv45.d64.f16")).recipe == known.recipe
    assert known.at(Problem.parse("b3.h2.q1.kv16.d64.f16")).problem.batch == 3
    for text in ("b1.h2.q1.kv9.d64.f16", "b1.h2.q1.kv51.d64.f16", "b2.h2.q1.kv17.d64.f16", "b1.h4.q1.kv20.d64.f16"):
        assert known.at(Problem.parse(text)) is None, text


def test_an_answer_worked_out_says_where_it_is_from() -> None:
    there = ranged().at(Problem.parse("b1.h2.q1.kv33.d64.f16"))
    assert (there.provenance, there.provenance_detail) == (Provenance.NEAREST, "from b1.h2.q1.kv16.d64.f16")
    assert (there.geometry, there.domains) == (None, ())
    heuristic = ranged(provenance=Provenance.HEURISTIC.value, provenance_detail="a guess")
    there = heuristic.at(Problem.parse("b1.h2.q1.kv33.d64.f16"))
    assert (there.provenance, there.provenance_detail) == (Provenance.HEURISTIC, "a guess")


def test_lengths_of_an_axis() -> None:
    prefill, decode = Problem.parse("b2.h2.q9.d64.f16"), Problem.parse("b2.h2.q1.kv9.d64.f16")
    assert [length_along(axis, decode) for axis in (Axis.KV, Axis.Q, Axis.Q_AND_KV, Axis.BATCH)] == [9, 1, None, 2]
    assert length_along(Axis.Q_AND_KV, prefill) == 9
    assert length_along(Axis.UNSPECIFIED, prefill) is None


@pytest.mark.parametrize(
    ("field", "index", "part", "step"),
    [
        (Field.ARG, 0, 0, Step(1, 0, 0, 1)),
        (Field.ARG, 3, 0, Step(1, 0, 0, 1)),
        (Field.ARG, 5, 0, Step(1, 0, 0, 1)),
        (Field.GRID, 3, 0, Step(1, 0, 0, 1)),
        (Field.SCRATCH_BYTES, 1, 0, Step(1, 0, 0, 1)),
        (Field.TENSOR_MAP_DIM, 4, 2, Step(1, 0, 0, 1)),
        (Field.TENSOR_MAP_DIM, 1, 0, Step(1, 0, 0, 1)),
        (Field.ARG, 1, 0, Step(1, 0, 0, 0)),
        (Field.ARG, 1, 0, Step(1, 0, -34, 1)),
        (Field.UNSPECIFIED, 1, 0, Step(1, 0, 0, 1)),
    ],
)
def test_a_domain_that_does_not_fit_the_recipe_is_refused(field: Field, index: int, part: int, step: Step) -> None:
    domain = Domain(Axis.KV, 10, 40, (Varying(field, 0, index, part, step),))
    with pytest.raises(InvalidArgument, match="domain"):
        domain.recipe(ranged().recipe, 33)
    with pytest.raises(InvalidArgument, match="domain"):
        Domain(Axis.KV, 10, 40, (Varying(Field.GRID, 1, 0, 0, step),)).recipe(ranged().recipe, 33)


def test_the_ranges_of_a_miss_are_read() -> None:
    assert parse_ranges("kv 1024..2047, batch 4..7") == (Domain(Axis.KV, 1024, 2047), Domain(Axis.BATCH, 4, 7))
    assert parse_ranges("q=kv 1..2") == (Domain(Axis.Q_AND_KV, 1, 2),)
    assert parse_ranges("") == parse_ranges("heads 1..4") == ()
