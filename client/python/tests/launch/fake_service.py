"""What stands behind attune.attention where there is neither a GPU nor a service."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from attune.errors import AttuneError
from attune.problem import Problem


@dataclasses.dataclass
class FakeKernel:
    problem: Problem
    launches: list[tuple[int, ...]]
    device: int = -1  # what a CPU tensor's get_device() says

    def launch(self, *addresses: int) -> None:
        self.launches.append(addresses)


class Service:
    """What stands behind attention: `problems` it was asked for, `launches` that were made."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.launches: list[tuple[int, ...]] = []
        self.refuses_with: AttuneError | None = None
        self.devices_asked = 0

    def load(self, answer: str, device: int) -> FakeKernel:
        return FakeKernel(Problem.parse(answer), self.launches)

    def best(self, problem: Problem, **options: Any) -> str:
        self.problems.append(str(problem))
        if self.refuses_with is not None:
            raise copy.copy(self.refuses_with)
        return str(problem)


class Clock:
    """Seconds, as time.monotonic has them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now
