"""What the daemon makes of another process on the GPU: this one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from gpu_problems import DEVICE, FAMILIES

from attune import Client, Trial


def timed(client: Client, problem: str) -> list[Trial]:
    """The OK trials of a small tuning of a problem that no other test asks for."""
    client.tune(problem, device=DEVICE, families=FAMILIES, strategy="random", max_trials=8, seed=1).result()
    return [trial for trial in client.trials(problem) if trial.timing is not None]


@pytest.fixture
def load(client: Client) -> Iterator[None]:
    """Keeps the GPU computing from this process."""
    import torch

    stop = threading.Event()

    def multiply() -> None:
        a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
        while not stop.is_set():
            for _ in range(20):
                a @ a
            torch.cuda.synchronize()

    thread = threading.Thread(target=multiply)
    thread.start()
    client.tune("b1.h3.q96.d64.f16", device=DEVICE, families=FAMILIES, max_trials=8).result()  # until NVML tells of it
    yield
    stop.set()
    thread.join()


def test_an_idle_context_does_not_stand_in_the_way(client: Client) -> None:
    import torch

    torch.zeros(1, device="cuda")  # this process holds a context
    torch.cuda.synchronize()
    trials = timed(client, "b1.h3.q72.d64.f16")
    assert trials
    assert not any(trial.timing.contended for trial in trials)


def test_nothing_is_promoted_while_another_process_computes(client: Client, load: None) -> None:
    trials = timed(client, "b1.h3.q88.d64.f16")
    assert trials
    assert all(trial.timing.contended for trial in trials)
    assert client.best("b1.h3.q88.d64.f16", device=DEVICE).trial not in {trial.name for trial in trials}
