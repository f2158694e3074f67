"""A service whose answers a KernelCache asks for, and the background thread's work, done step by step."""

from __future__ import annotations

import math
from collections.abc import Callable

from fake_service import Clock, FakeAnswer

from attune.background.entry import Entry
from attune.background.kernel_cache import KernelCache
from attune.errors import AttuneError, Unreachable
from attune.problem import Problem
from attune.values import ArtifactState

HOLD, REVALIDATE = 30.0, 20.0


def problem(length: int = 16) -> Problem:
    return Problem.parse(f"b1.h2.q{length}.d64.f16")


class Answers:
    """Stands in for Service: `asked` are the problems, in order."""

    def __init__(self, clock: Clock) -> None:
        self.asked: list[str] = []
        self.artifact = "first"
        self.state = ArtifactState.READY
        self.refuses_with: AttuneError | None = None
        self.is_served: object = 1
        self.unreachable_until = -math.inf
        self.awaited: list[Callable[[bool], None]] = []  # what is to be called when code is there
        self._clock = clock

    def reachable(self) -> bool:
        return self._clock.now >= self.unreachable_until

    def answer(self, problem: Problem, index: int, *, kept: bool) -> FakeAnswer:
        self.asked.append(str(problem))
        if self.refuses_with is not None:
            if isinstance(self.refuses_with, Unreachable):
                self.unreachable_until = self._clock.now + 5
            raise self.refuses_with
        artifact = "" if self.state is ArtifactState.COMPILING else self.artifact
        return FakeAnswer(problem, artifact, artifact_state=self.state, artifact_reason="nvcc: error")

    def when_compiled(self, problem: Problem, index: int, done: Callable[[bool], None]) -> None:
        self.awaited.append(done)

    def served(self) -> object:
        if isinstance(self.is_served, AttuneError):
            raise self.is_served
        return self.is_served

    def close(self) -> None:
        self.unreachable_until = math.inf


def work(cache: KernelCache) -> float:
    """All that there is to do; the seconds until there is more."""
    for _ in range(100_000):
        pause = cache.work()
        if pause > 0:
            return pause
    raise AssertionError("there is no end to it")


def artifact(entry: Entry) -> str | None:
    return None if entry.kernel is None else entry.kernel.answer.artifact_sha256
