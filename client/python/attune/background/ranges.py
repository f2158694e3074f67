"""Which answered problems speak for which others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from attune.problem import Problem
from attune.values import Axis, Domain
from attune.values.domain import AXES, Range, find_range, range_key

T = TypeVar("T")


class Ranges(Generic[T]):
    """Finding takes no lock; of those who change something one at a time may."""

    def __init__(self) -> None:
        # Tuples, so that they are found whole while others take their place.
        self._ranges: dict[tuple, tuple[Range[T], ...]] = {}
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
            if axis not in AXES:
                continue
            key = range_key(axis, problem, device)
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

    def has(self, owner: T) -> bool:
        """Whether `owner` speaks for others."""
        return owner in self._keys

    def find(self, problem: Problem, device: int) -> T | None:
        """Who speaks for the problem."""
        return find_range(self._ranges, problem, device)
