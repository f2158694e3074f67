"""What a call does with the kernel cache waits for no daemon, whatever the daemon does. Needs no torch."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake import FakeServer, answer, message
from fake_service import EveryModule, FakeKernel

import attune
from attune.background import kernel_cache, service
from attune.background.entry import Entry
from attune.background.kernel_cache import KernelCache
from attune.background.reason import Reason
from attune.background.service import Gpu
from attune.background.settings import ACCEPTABLE, Settings
from attune.background.thread import Background
from attune.problem import Problem
from attune.values import Policy, Provenance

THREADS = 8
SHAPES = 1000
FEW_SHAPES = 50  # where each is to be answered
DEADLINE = 600.0  # of a question: a call that waited for one would outlast every test


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], KernelCache]]:
    """A kernel cache of the service at an address, with a thread that works for it. Every answer can be loaded."""
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: FakeKernel(answer, []))
    monkeypatch.setattr(service, "modules", EveryModule)
    ends: list[Callable[[], Any]] = []

    def start(address: str) -> KernelCache:
        client = attune.Client(address, deadline=DEADLINE)
        settings = Settings(client, "cuda:0", Policy.HOT, ACCEPTABLE, revalidate=1.0)
        thread = Background(lambda: cache.work())
        cache = KernelCache(settings, lambda index: Gpu("NVIDIA L4", ""), thread.wake)
        ends.extend((cache.close, lambda: thread.stop(60), client.close))
        return cache

    yield start
    for end in ends:
        end()


def find_all(cache: KernelCache, shapes: int = SHAPES) -> set[Entry]:
    """What THREADS threads find for the same problems."""
    found: list[Entry] = []

    def work() -> None:
        for length in range(1, shapes + 1):
            found.append(cache.find(Problem(batch=1, heads_q=1, seq_q=length, head_dim=64, dtype="f16"), 0))

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return set(found)


def test_a_blackholed_service(started: Callable) -> None:
    with socket.socket() as silent:  # connections are made, and nobody ever says anything
        silent.bind(("127.0.0.1", 0))
        silent.listen(128)
        cache = started(f"127.0.0.1:{silent.getsockname()[1]}")
        entries = find_all(cache)
        assert len(entries) == cache.state().pending == SHAPES
        assert {entry.unsuitable.reason for entry in entries} == {Reason.PENDING}
        cache.close()


def test_a_service_that_refuses(started: Callable, tmp_path: Any) -> None:
    cache = started(f"unix:{tmp_path}/nobody.sock")
    entries = find_all(cache, FEW_SHAPES)
    assert cache.wait(DEADLINE)
    assert {entry.unsuitable.reason for entry in entries} == {Reason.UNREACHABLE}


def test_a_service_that_is_slow(started: Callable, server: FakeServer) -> None:
    released = threading.Event()
    server.responses["GetBest"] = lambda request: released.wait(DEADLINE) and answer(problem=request.problem)
    cache = started(server.address)
    entries = find_all(cache, FEW_SHAPES)
    assert not any(entry.launch for entry in entries)
    released.set()
    assert cache.wait(DEADLINE)
    assert all(entry.launch for entry in entries)


def test_a_service_that_is_killed(started: Callable, server: FakeServer) -> None:
    server.responses["GetBest"] = lambda request: answer(problem=request.problem)
    cache = started(server.address)
    known = cache.find(Problem.parse("b1.h1.q2000.d64.f16"), 0)
    assert cache.wait(DEADLINE)
    server.stop()
    find_all(cache)
    assert known.launch is not None


@pytest.mark.parametrize(
    ("before", "incumbents"), [("EXACT", ["incumbents/2"]), ("HEURISTIC", [])], ids=["a roll-back", "a promotion"]
)
def test_what_is_served_anew_reaches_entries_that_calls_have(
    started: Callable, server: FakeServer, before: str, incumbents: list[str]
) -> None:
    def serve(artifact: bytes, names: list[str], provenance: str) -> None:
        fields = {"artifact_sha256": artifact, "provenance": Provenance[provenance].value}
        server.responses["GetBest"] = lambda request: answer(problem=request.problem, **fields)
        incumbents = [{"name": name} for name in names]
        server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=incumbents)

    serve(b"wrong", incumbents, before)
    cache = started(server.address)
    entry = cache.find(Problem.parse("b1.h1.q2000.d64.f16"), 0)
    assert cache.wait(DEADLINE)
    wrong = entry.launch
    assert wrong is not None
    serve(b"right", ["incumbents/1"], "EXACT")
    for _ in range(60_000):
        if entry.launch is not wrong and entry.kernel.answer.artifact_sha256 == "right":
            break
        threading.Event().wait(0.01)
    assert entry.kernel.answer.artifact_sha256 == "right"
