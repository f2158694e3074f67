"""attune.attention where there is no GPU: CPU tensors that pass for CUDA's, kernels that write down their launches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from attune.errors import AttuneError, NotFound
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
            raise self.refuses_with
        return str(problem)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time as attention sees it."""
    from attune.torch import answers, dispatch

    fake = Clock()
    monkeypatch.setattr(answers, "time", fake)
    monkeypatch.setattr(dispatch, "time", fake)
    return fake


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Service]:
    """attention, on CPU tensors, with a service that has a kernel for every problem."""
    pytest.importorskip("torch")
    import attune.torch
    from attune.torch import answers, dispatch, question

    fake = Service()
    monkeypatch.setattr(question, "_on_one_gpu", lambda *tensors: True)
    monkeypatch.setattr(dispatch, "current_stream", lambda device: 5)
    monkeypatch.setattr(answers.Answers, "_ask", lambda self, problem, device: fake.best(problem))
    monkeypatch.setattr(answers, "load", fake.load)
    attune.torch.configure(device="cuda:0", hold=30.0)
    yield fake
    attune.torch.refresh()


@pytest.fixture
def nowhere() -> NotFound:
    return NotFound("no answer for it")
