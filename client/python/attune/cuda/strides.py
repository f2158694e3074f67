"""Tensors that lie in memory otherwise than their problem has them, and the recipe that reads them where they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from attune.cuda.tensors import ALIGNMENT, expected
from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.values import KernelArg, KernelLaunch, LaunchRecipe, Stride, TensorMap

_ARGUMENTS = {"Q": "q", "K": "k", "V": "v", "O": "out"}  # by role
_SCALES = {"K_SCALE": "k_scale", "V_SCALE": "v_scale"}
_DIMENSIONS = ("BATCH", "HEAD", "ROW")
MULTIPLE = 8  # elements of 16 bits: kernels load 16 bytes at once
_FARTHEST = 1 << 31  # heads and rows; kernels compute with 32 bits
_FARTHEST_OF_MAPS = 1 << 39  # the driver allows less than 2^40 bytes

# Strides of BATCH (of pages: from page to page), HEAD and ROW in elements, whatever the order of the tensor's
# dimensions; 0 for one that it does not have.
Spacing = tuple[int, int, int]
Placement = tuple[Spacing, ...]  # of q, k, v and out; of 8-bit k and v also of k_scale and v_scale


def placement_of(
    problem: Problem,
    q: tuple[int, ...],
    k: tuple[int, ...],
    v: tuple[int, ...],
    out: tuple[int, ...],
    *scales: tuple[int, ...],
) -> Placement:
    """Of tensors of these strides, whose dimensions are in the order that `problem` asks for."""
    of_q, of_k = _order(problem, "Q"), _order(problem, "K")
    tensors = _spacing(q, of_q), _spacing(k, of_k), _spacing(v, of_k), _spacing(out, of_q)
    return (*tensors, *map(spacing_of_scale, scales))


def spacing_of_scale(strides: tuple[int, ...]) -> Spacing:
    """Of [batch, heads_kv], [heads_kv] or [], by its strides."""
    batch, head = (0, 0, *strides)[-2:]
    return batch, head, 0


def names_strides(recipe: LaunchRecipe) -> bool:
    """Whether it computes anything but the problem's own layout."""
    return any(True for _ in _named(recipe))


def placed(recipe: LaunchRecipe, problem: Problem, placement: Placement) -> LaunchRecipe:
    """`recipe`, for tensors that lie so; itself where that is the problem's own layout.

    Raises InvalidArgument, naming tensor and stride, for what its kernels cannot read."""
    named = dict(_named(recipe))
    strides: dict[Stride, int] = {}
    for (role, own), spacing in zip(_own(problem).items(), placement, strict=True):
        for dimension, (size, usual), stride in zip(_DIMENSIONS, own, spacing, strict=True):
            if stride == usual or size == 1:
                continue
            wanted = Stride(role, dimension)
            what = f"{(_ARGUMENTS | _SCALES)[role]} has {stride} elements from one {dimension.lower()} to the next"
            if wanted not in named:
                raise InvalidArgument(f"{what}; this kernel reads {usual} alone, as layout {problem.layout} has it")
            multiple = _multiple(problem, role)
            least = 0 if role != "O" and not named[wanted] else multiple
            if stride % multiple or stride < least:
                raise InvalidArgument(f"{what}; it must be a multiple of {multiple}, at least {least}")
            most = _FARTHEST if dimension != "BATCH" else _FARTHEST_OF_MAPS
            if stride >= most:
                raise InvalidArgument(f"{what}; it must be less than {most}")
            strides[wanted] = stride
    if not strides:
        return recipe
    launches = tuple(_placed_launch(launch, strides) for launch in recipe.launches)
    return dataclasses.replace(recipe, launches=launches)


def _placed_launch(launch: KernelLaunch, strides: dict[Stride, int]) -> KernelLaunch:
    return dataclasses.replace(launch, args=tuple(_placed_argument(arg, strides) for arg in launch.args))


def _placed_argument(arg: KernelArg, strides: dict[Stride, int]) -> KernelArg:
    if arg.stride in strides:
        return dataclasses.replace(arg, value=strides[arg.stride])
    if isinstance(arg.value, TensorMap) and any(term.stride in strides for term in arg.value.terms):
        bytes_apart = list(arg.value.strides)
        for term in arg.value.terms:
            if term.stride in strides:
                bytes_apart[term.index] = term.offset + term.factor * strides[term.stride]
        return dataclasses.replace(arg, value=dataclasses.replace(arg.value, strides=tuple(bytes_apart)))
    return arg


def _named(recipe: LaunchRecipe) -> Iterator[tuple[Stride, bool]]:
    """The strides that a launch may give, and whether a tensor map has them: those last."""
    args = [arg for launch in recipe.launches for arg in launch.args]
    for arg in args:
        if arg.stride is not None:
            yield arg.stride, False
    for arg in args:
        if isinstance(arg.value, TensorMap):
            for term in arg.value.terms:
                yield term.stride, True


def _own(problem: Problem) -> dict[str, list[tuple[int | None, int]]]:
    """Size (None: any) and stride of BATCH, HEAD and ROW, by role."""
    found = expected(problem, {"q": (2,), "k": (2,)})
    result = {}
    for role, name in _ARGUMENTS.items():
        wanted, order = found[name], _order(problem, role)
        # Tokens or pages: as many as there are.
        counted = problem.varlen or (problem.page_size > 0 and role in ("K", "V"))
        sizes = (None if counted else wanted.shape[0], *wanted.shape[1:])
        result[role] = [(1, 0) if at is None else (sizes[at], wanted.strides[at]) for at in order]
    for role in _SCALES if problem.kv_dtype else ():
        result[role] = [(problem.batch, problem.heads_kv), (problem.heads_kv, 1), (1, 0)]
    return result


def _multiple(problem: Problem, role: str) -> int:
    """Elements that a stride of this tensor is a multiple of."""
    if role in _SCALES:
        return 1
    return ALIGNMENT if problem.kv_dtype and role in ("K", "V") else MULTIPLE


def _order(problem: Problem, role: str) -> tuple[int | None, int, int]:
    """Which of the tensor's dimensions are BATCH, HEAD and ROW."""
    if role in ("K", "V") and problem.page_size:
        return 0, 2, 1
    return (None, 1, 0) if problem.varlen else (0, 1, 2)


def _spacing(strides: tuple[int, ...], order: tuple[int | None, int, int]) -> Spacing:
    batch, head, row = order
    return 0 if batch is None else strides[batch], strides[head], strides[row]
