"""attune.attention where there is no GPU: CPU tensors that pass for CUDA's, kernels that write down their launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from fake_answers import HOLD, REVALIDATE, Answers
from fake_service import Clock, FakeKernel, Service

from attune.background import kernel_cache
from attune.background import service as asked
from attune.background.kernel_cache import KernelCache
from attune.background.service import Gpu
from attune.background.settings import ACCEPTABLE, Settings
from attune.values import Policy

if TYPE_CHECKING:
    from timed_device import Device


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time as attention sees it."""
    fake = Clock()
    monkeypatch.setattr(kernel_cache, "time", fake)
    monkeypatch.setattr(asked, "time", fake)
    return fake


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Service]:
    """attention, on CPU tensors, with a service that has a kernel for every problem; calls wait for its answers, and
    are not timed."""
    pytest.importorskip("torch")
    import attune.torch
    from attune.torch import direct, dispatch, problem_of_tensors

    fake = Service()
    monkeypatch.setattr(problem_of_tensors, "on_one_gpu", lambda *tensors: True)
    monkeypatch.setattr(dispatch, "current_stream", lambda device: 5)
    monkeypatch.setattr(direct, "current_stream", lambda device: 5)
    monkeypatch.setattr(dispatch, "monotonic", clock.monotonic)
    monkeypatch.setattr(direct, "monotonic", clock.monotonic)
    monkeypatch.setattr(asked.Service, "_ask", lambda self, problem, device: fake.best(problem))
    monkeypatch.setattr(asked.Service, "_ask_served", lambda self: fake.served)
    monkeypatch.setattr(kernel_cache, "load", fake.load)
    attune.torch.configure(device="cuda:0", hold=30.0, wait=60.0, never_slower=False)
    yield fake
    attune.torch.refresh()


@pytest.fixture
def answers(clock: Clock) -> Answers:
    return Answers(clock)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> KernelCache:
    """Of `answers`, without a background thread and without contests."""
    monkeypatch.setattr(kernel_cache, "Service", lambda settings, gpu_of: answers)
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: FakeKernel(answer, []))
    settings = Settings(None, "cuda:0", Policy.HOT, ACCEPTABLE, HOLD, 0.0, REVALIDATE)  # type: ignore[arg-type]
    return KernelCache(settings, lambda index: Gpu("NVIDIA L4", ""), lambda: False)


@pytest.fixture
def device(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """The one that kernels of `service` are timed on against SDPA."""
    import timed_device
    import torch

    import attune.torch

    made = timed_device.Device()
    timed_device.stand_in(made, service, monkeypatch)
    attune.torch.configure(device="cuda:0", hold=30.0, wait=60.0, revalidate=20.0)
    with torch.no_grad():
        yield made
