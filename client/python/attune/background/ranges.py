"""Which answered problems speak for which others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from attune.problem import Problem
from attune.values import Axis, Domain
from attune.values.domain import length_along, others

T = TypeVar("T")

_AXES = (Axis.KV, Axis.Q_AND_KV, Axis.Q, Axis.BATCH)


class Ranges(Generic[T]):
    """Finding takes no lock; everything else is for one thread."""

    def __init__(self) -> None:
        # By axis, device and what the problems of a range have in common: low, high and whose range it is.
        self._ranges: dict[tuple, tuple[tuple[int, int, T], ...]] = {}
        self._keys: dict[T, set[tuple]] = {}

    def put(self, owner: T, problem: Problem, device: int, domains: Sequence[Domain]) -> None:
        """`owner` speaks for these from now on, and for no others. Whoever spoke for a part of a range before no longer
        speaks for any of its own there."""
        self.drop(owner)
        ends: dict[Axis, tuple[int, int]] = {}
        for domain in domains:
            low, high = ends.get(domain.axis, (domain.low, domain.high))
            ends[domain.axis] = min(low, domain.low), max(high, domain.high)
        for axis, (low, high) in ends.items():
            if axis not in _AXES:
                continue
            key = axis, device, others(axis, problem)
            apart = [one for one in self._ranges.get(key, ()) if one[1] < low or high < one[0]]
            self._ranges[key] = (*apart, (low, high, owner))
            self._keys.setdefault(owner, set()).add(key)

    def drop(self, owner: T) -> None:
        """`owner` speaks for nobody else."""
        for key in self._keys.pop(owner, ()):
            left = tuple(one for one in self._ranges.get(key, ()) if one[2] is not owner)
            if left:
                self._ranges[key] = left
            else:
                self._ranges.pop(key, None)

    def find(self, problem: Problem, device: int) -> T | None:
        """Who speaks for the problem."""
        if not self._ranges:
            return None
        for axis in _AXES:
            length = length_along(axis, problem)
            if length is None:
                continue
            for low, high, owner in self._ranges.get((axis, device, others(axis, problem)), ()):
                if low <= length <= high:
                    return owner
        return None

    def __len__(self) -> int:
        return sum(map(len, self._ranges.values()))
