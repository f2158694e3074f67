"""Who takes part, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attune.problem import Problem
from attune.values import Answer

from attune_bench.contestants.contestant import Contestant
from attune_bench.contestants.flash4 import Flash4
from attune_bench.contestants.flex import Flex
from attune_bench.contestants.ours import Ours, Ours16
from attune_bench.contestants.sdpa import BACKENDS, Sdpa
from attune_bench.records import OURS, OURS_16, TORCH


def make_contestants(names: Iterable[str], answers: Mapping[Problem, Answer | str]) -> list[Contestant]:
    """Of `attune_bench.options.CONTESTANTS`, in the order given."""
    return [_make(name, answers) for name in names]


def _make(name: str, answers: Mapping[Problem, Answer | str]) -> Contestant:
    if name == OURS:
        return Ours(answers)
    if name == OURS_16:
        return Ours16(answers)
    if name == TORCH:
        return Sdpa(name, None)
    own = {Flash4.name: Flash4, Flex.name: Flex}
    return own[name]() if name in own else Sdpa(name, BACKENDS[name])
