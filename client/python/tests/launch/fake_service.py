"""What stands behind attune.attention where there is neither a GPU nor a service."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from attune.cuda.strides import Placement
from attune.errors import AttuneError, InvalidArgument
from attune.problem import Problem
from attune.values import ArtifactState, Baseline, Domain, Provenance, Timing
from attune.values.domain import domains_of


@dataclasses.dataclass(frozen=True)
class FakeAnswer:
    problem: Problem
    artifact_sha256: str
    recipe: str = "as always"
    artifact_state: ArtifactState = ArtifactState.READY
    artifact_reason: str = ""
    device_id: str = "cuda:0"
    provenance: Provenance = Provenance.EXACT
    timing: Timing | None = None
    baselines: tuple[Baseline, ...] = ()
    domains: tuple[Domain, ...] = ()

    def at(self, problem: Problem) -> FakeAnswer | None:
        if problem == self.problem:
            return self
        for _, length in domains_of(self.problem, self.domains, problem):
            return dataclasses.replace(self, problem=problem, recipe=f"{self.recipe}, at {length}", domains=())
        return None


@dataclasses.dataclass
class FakeKernel:
    answer: FakeAnswer
    launches: list[tuple[int, ...]]
    device: int = -1  # what a CPU tensor's get_device() says
    fails_with: AttuneError | None = None
    placements: list[Placement] = dataclasses.field(default_factory=list)  # of the launches of those that were placed
    takes_strides: bool = True
    scales: list[float] = dataclasses.field(default_factory=list)  # of the launches of those that were scaled
    scale: float | None = None
    placement: Placement | None = None

    def scaled(self, scale: float) -> FakeKernel:
        if scale > 1:
            raise InvalidArgument(f"scale is {scale:g}; this kernel computes those above 0, up to 1")
        return dataclasses.replace(self, scale=scale)

    def placed(self, placement: Placement) -> FakeKernel:
        if not self.takes_strides:
            raise InvalidArgument("q has 8 elements from one row to the next; this kernel reads 64 alone")
        return dataclasses.replace(self, placement=placement)

    def like(self, answer: FakeAnswer) -> FakeKernel:
        return dataclasses.replace(self, answer=answer)

    def launch(self, *addresses: int) -> None:
        if self.fails_with is not None:
            raise self.fails_with
        if self.scale is not None:
            self.scales.append(self.scale)
        if self.placement is not None:
            self.placements.append(self.placement)
        self.launches.append(addresses)


class EveryModule:
    """Stands in for attune.cuda.device.modules(): every artifact is loaded."""

    def has(self, sha256: str) -> bool:
        return True


class Service:
    """What stands behind attention: `problems` it was asked for, `launches` that were made."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.launches: list[tuple[int, ...]] = []
        self.refuses_with: AttuneError | None = None
        self.launching_fails_with: AttuneError | None = None  # of what is loaded from then on
        self.served = 1  # changes with what is served
        self.artifact = "first"
        self.placements: list[Placement] = []  # of the launches of tensors with strides of their own
        self.takes_strides = True
        self.scales: list[float] = []  # of the launches with another scale

    def load(self, answer: FakeAnswer, device: int) -> FakeKernel:
        return FakeKernel(
            answer,
            self.launches,
            fails_with=self.launching_fails_with,
            placements=self.placements,
            takes_strides=self.takes_strides,
            scales=self.scales,
        )

    def best(self, problem: Problem, **options: Any) -> FakeAnswer:
        self.problems.append(str(problem))
        if self.refuses_with is not None:
            raise copy.copy(self.refuses_with)
        return FakeAnswer(problem, self.artifact)


class Clock:
    """Seconds, as time.monotonic has them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now
