"""attune.attention where there is no GPU: CPU tensors that pass for CUDA's, kernels that write down their launches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_service import Clock, Service


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time as attention sees it."""
    from attune.background import kernel_cache, service

    fake = Clock()
    monkeypatch.setattr(kernel_cache, "time", fake)
    monkeypatch.setattr(service, "time", fake)
    return fake


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[Service]:
    """attention, on CPU tensors, with a service that has a kernel for every problem; calls wait for its answers, and
    are not timed."""
    pytest.importorskip("torch")
    import attune.torch
    from attune.background import kernel_cache
    from attune.background import service as asked
    from attune.torch import dispatch, problem_of_tensors

    fake = Service()
    monkeypatch.setattr(problem_of_tensors, "on_one_gpu", lambda *tensors: True)
    monkeypatch.setattr(dispatch, "current_stream", lambda device: 5)
    monkeypatch.setattr(dispatch, "monotonic", clock.monotonic)
    monkeypatch.setattr(asked.Service, "_ask", lambda self, problem, device: fake.best(problem))
    monkeypatch.setattr(asked.Service, "_ask_served", lambda self: fake.served)
    monkeypatch.setattr(kernel_cache, "load", fake.load)
    attune.torch.configure(device="cuda:0", hold=30.0, wait=60.0, never_slower=False)
    yield fake
    attune.torch.refresh()
