"""Ranges of problems that one answer holds for, and the recipe at another length."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.values.convert import Value
from attune.values.enums import Axis, Field
from attune.values.recipe import KernelArg, KernelLaunch, LaunchRecipe, TensorMap

T = TypeVar("T")

_LENGTHS = {
    Axis.KV: ("seq_kv",),
    Axis.Q: ("seq_q",),
    Axis.Q_AND_KV: ("seq_q", "seq_kv"),
    Axis.BATCH: ("batch",),
}
AXES = (Axis.KV, Axis.Q_AND_KV, Axis.Q, Axis.BATCH)  # in the order in which a problem's range is looked for
_FIELDS = tuple(field.name for field in dataclasses.fields(Problem))
_OTHERS = {axis: attrgetter(*(name for name in _FIELDS if name not in own)) for axis, own in _LENGTHS.items()}
# As a miss says them (GetBestResponse.domains): "kv 1024..2047, batch 4..7".
_WORDS = {"kv": Axis.KV, "q": Axis.Q, "q=kv": Axis.Q_AND_KV, "batch": Axis.BATCH}
_RANGE = re.compile(r"(kv|q|q=kv|batch) (\d{1,18})\.\.(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Step(Value):
    """base + slope * floor((length + add) / divide)."""

    base: int
    slope: int
    add: int
    divide: int

    def at(self, length: int) -> int:
        return self.base + self.slope * ((length + self.add) // self.divide)


@dataclass(frozen=True, slots=True)
class Varying(Value):
    """A number of a recipe that depends on the length."""

    field: Field
    launch: int
    index: int  # of the scratch buffer, the side of the grid (x y z) or the argument
    part: int  # of a tensor map: the dimension
    step: Step


@dataclass(frozen=True, slots=True)
class Domain(Value):
    """The problems that differ from an answer's own in `axis` alone, the length there from `low` to `high`."""

    axis: Axis
    low: int
    high: int
    varying: tuple[Varying, ...] = ()

    def recipe(self, recipe: LaunchRecipe, length: int) -> LaunchRecipe:
        """`recipe`, which is of some problem of the domain, for the one of `length`. InvalidArgument where the domain
        names what the recipe has not."""
        scratch, launches = list(recipe.scratch), list(recipe.launches)
        by_launch: dict[int, list[tuple[Varying, int]]] = {}
        for varying in self.varying:
            if varying.step.divide < 1 or length + varying.step.add < 0:
                raise InvalidArgument(f"domain: {varying} cannot be worked out for length {length}")
            value = varying.step.at(length)
            if varying.field is not Field.SCRATCH_BYTES:
                by_launch.setdefault(varying.launch, []).append((varying, value))
                continue
            _check_index(varying, varying.index, scratch)
            scratch[varying.index] = dataclasses.replace(scratch[varying.index], bytes=value)
        for index, changes in by_launch.items():
            _check_index(changes[0][0], index, launches)
            launches[index] = _launch_with(launches[index], changes)
        return LaunchRecipe(tuple(scratch), tuple(launches), recipe.main_launch)


def length_along(axis: Axis, problem: Problem) -> int | None:
    """None for a problem that has no one length there."""
    if axis is Axis.Q_AND_KV and problem.seq_q != problem.seq_kv:
        return None
    own = _LENGTHS.get(axis)
    return getattr(problem, own[0]) if own else None


def others(axis: Axis, problem: Problem) -> tuple[Any, ...]:
    """What problems that differ in `axis` alone have in common."""
    return _OTHERS[axis](problem)


def domains_of(problem: Problem, domains: tuple[Domain, ...], other: Problem) -> Iterator[tuple[Domain, int]]:
    """The domains of `problem`'s answer that have `other`, and its length there."""
    for domain in domains:
        length = length_along(domain.axis, other)
        if length is None or not domain.low <= length <= domain.high:
            continue
        if others(domain.axis, problem) == others(domain.axis, other):
            yield domain, length


Range = tuple[int, int, T]  # low, high, and what holds there


def range_key(axis: Axis, problem: Problem, where: Hashable) -> tuple:
    """What the problems of a range have in common, `where` (a device, a policy) among it."""
    return axis, where, others(axis, problem)


def find_range(ranges: Mapping[tuple, Sequence[Range[T]]], problem: Problem, where: Hashable) -> T | None:
    """What holds for the problem, of `ranges` by their keys."""
    if not ranges:
        return None
    for axis in AXES:
        length = length_along(axis, problem)
        if length is None:
            continue
        for low, high, found in ranges.get(range_key(axis, problem, where), ()):
            if low <= length <= high:
                return found
    return None


def parse_ranges(text: str) -> tuple[Domain, ...]:
    """The ranges of a miss; none where it is written otherwise, by a later server."""
    found = [_RANGE.fullmatch(part) for part in text.split(", ")]
    return tuple(Domain(_WORDS[one[1]], int(one[2]), int(one[3])) for one in found if one)


def _check_index(varying: Varying, index: int, values: list | tuple) -> None:
    if not 0 <= index < len(values):
        raise InvalidArgument(f"domain: {varying} is not in the recipe")


def _launch_with(launch: KernelLaunch, changes: list[tuple[Varying, int]]) -> KernelLaunch:
    grid, args, shared = list(launch.grid), list(launch.args), launch.dynamic_shared_bytes
    for varying, value in changes:
        if varying.field is Field.DYNAMIC_SHARED_BYTES:
            shared = value
            continue
        values: list = grid if varying.field is Field.GRID else args
        _check_index(varying, varying.index, values)
        values[varying.index] = value if values is grid else _arg_with(args[varying.index], varying, value)
    return KernelLaunch(
        launch.entry,
        (grid[0], grid[1], grid[2]),
        launch.block,
        shared,
        tuple(args),
        launch.cluster,
        launch.overlaps_previous,
    )


def _arg_with(arg: KernelArg, varying: Varying, value: int) -> KernelArg:
    if varying.field is Field.ARG and arg.kind in ("I32", "I64"):
        return KernelArg(arg.kind, value, arg.stride)
    tensor_map = arg.value
    if isinstance(tensor_map, TensorMap):
        if varying.field is Field.TENSOR_MAP_OFFSET:
            return KernelArg(arg.kind, dataclasses.replace(tensor_map, base_offset=value))
        if varying.field in (Field.TENSOR_MAP_DIM, Field.TENSOR_MAP_STRIDE):
            name = "dims" if varying.field is Field.TENSOR_MAP_DIM else "strides"
            sizes = list(getattr(tensor_map, name))
            _check_index(varying, varying.part, sizes)
            sizes[varying.part] = value
            return KernelArg(arg.kind, dataclasses.replace(tensor_map, **{name: tuple(sizes)}))
    raise InvalidArgument(f"domain: {varying} is not in the recipe, whose argument is {arg.kind}")
