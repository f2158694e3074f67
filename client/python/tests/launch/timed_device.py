"""A device on which kernels, and what they are timed against, take times that are made up."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest
from contest_times import CALLS, timing
from fake_driver import FakeDriver
from fake_service import FakeAnswer, FakeKernel, Service

torch = pytest.importorskip("torch")

from tensors import half  # noqa: E402

import attune  # noqa: E402
from attune.background import capture  # noqa: E402
from attune.background import contest as contests  # noqa: E402
from attune.background import service as asked  # noqa: E402
from attune.background.records import Report  # noqa: E402
from attune.torch import dispatch, warming  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402
from attune.values import ArtifactState, Domain  # noqa: E402

sdpa = torch.nn.functional.scaled_dot_product_attention
PROBLEM = "b1.h2.q16.d64.f16"
Q = half(1, 2, 16, 64)


class Device(FakeDriver):
    """On which a kernel of the service's takes `kernel_us`, and SDPA `sdpa_us`."""

    def __init__(self) -> None:
        super().__init__({})
        self.kernel_us = self.sdpa_us = 10.0
        self.reports: list[Report] = []
        self.reporters: set[int] = set()
        self.reporting_fails_with: attune.AttuneError | None = None
        self.baselines: tuple = ()
        self.compiling = ""  # the problem whose code the service compiles
        self.domains: tuple[Domain, ...] = ()
        self.stats = Stats()

    def call(self, count: int = 1) -> Any:
        out = None
        for _ in range(count):
            out = attend(self.stats, Q, Q, Q, None, 0.0, False, None, False)
        return out

    @property
    def computed(self) -> tuple[int, dict[str, int]]:
        return self.stats.launched, dict(self.stats.fallbacks)


def stand_in(made: Device, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """`made` for the device that contests are timed on, and its times for what computes."""
    launch, best = FakeKernel.launch, service.best

    def launched(kernel: FakeKernel, *addresses: int) -> None:
        launch(kernel, *addresses)
        made.now += made.kernel_us

    def computed(*arguments: Any, **options: Any) -> Any:
        made.now += made.sdpa_us
        return sdpa(*arguments, **options)

    def answered(problem: Any, **options: Any) -> FakeAnswer:
        state = ArtifactState.COMPILING if str(problem) == made.compiling else ArtifactState.READY
        known = {"timing": timing(10.0), "baselines": made.baselines, "domains": made.domains}
        return dataclasses.replace(best(problem), artifact_state=state, **known)

    def record(self: asked.Service, told: Report) -> None:
        made.reporters.add(threading.get_ident())
        made.reports.append(told)
        if made.reporting_fails_with is not None:
            raise made.reporting_fails_with

    monkeypatch.setattr(contests, "driver", lambda: made)
    monkeypatch.setattr(capture, "driver", lambda: made)
    monkeypatch.setattr(contests, "_pools", {})
    monkeypatch.setattr(FakeKernel, "launch", launched)
    monkeypatch.setattr(dispatch, "by_torch", computed)
    monkeypatch.setattr(service, "best", answered)
    monkeypatch.setattr(asked.Service, "record", record)
    monkeypatch.setattr(warming, "decide", lambda entries: None)  # as there is no GPU


def decide(device: Device) -> None:
    """By calls that the device is behind of."""
    device.behind = True
    device.call(CALLS)
    device.behind = False
    device.catch_up()
    device.call()
