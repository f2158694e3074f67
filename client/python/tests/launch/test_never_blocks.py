"""No call of attention waits for the daemon, whatever the daemon does."""

from __future__ import annotations

import pathlib
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake import FakeServer, answer, message
from fake_service import EveryModule, FakeKernel

import attune

torch = pytest.importorskip("torch")

from attune.background import kernel_cache  # noqa: E402
from attune.background import service as asked  # noqa: E402
from attune.torch import attention, direct, dispatch, problem_of_tensors, process, replace_sdpa, state, warm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")

HERE = pathlib.Path(__file__).parent
THREADS = 8
SHAPES = 1000
DEADLINE = 600.0  # of a question: a call that waited for one would outlast every test


class Callers:
    """Which threads made calls to a server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: set[int] = set()
        make = attune.Client._make

        def recorded(client: attune.Client, call: Any) -> Any:
            self.threads.add(threading.get_ident())
            return make(client, call)

        monkeypatch.setattr(attune.Client, "_make", recorded)


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> Callers:
    return Callers(monkeypatch)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """CPU tensors pass for a GPU's; every answer can be loaded."""
    made: list[tuple[int, ...]] = []
    monkeypatch.setattr(problem_of_tensors, "on_one_gpu", lambda *tensors: True)
    monkeypatch.setattr(dispatch, "current_stream", lambda device: 5)
    monkeypatch.setattr(direct, "current_stream", lambda device: 5)
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: FakeKernel(answer, made))
    monkeypatch.setattr(asked, "modules", EveryModule)
    return made


@pytest.fixture
def configured(launches: list) -> Iterator[Callable[..., None]]:
    """Configures attention to ask `address`."""
    clients = []

    def configure(address: str, **options: Any) -> None:
        clients.append(attune.Client(address, deadline=DEADLINE))
        attune.configure(clients[-1], device="cuda:0", never_slower=False, **options)

    yield configure
    attune.refresh()
    attune.configure()
    for client in clients:
        client.close()


def tensors(keys: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(1, 1, 1, 64, dtype=torch.float16), torch.zeros(1, 1, keys, 64, dtype=torch.float16)


def call_new_shapes() -> set[int]:
    """In THREADS threads, each of which has shapes of its own and some that others have; returns the threads."""
    failures: list[BaseException] = []
    threads: set[int] = set()

    def work(first: int) -> None:
        threads.add(threading.get_ident())
        try:
            with torch.no_grad():
                for keys in (*range(1 + first, SHAPES + 1, THREADS), *range(1, 20)):
                    q, kv = tensors(keys)
                    assert attention(q, kv, kv).shape == q.shape
        except BaseException as failure:
            failures.append(failure)

    together = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert failures == []
    return threads


def test_blackholed(configured: Callable, callers: Callers) -> None:
    with socket.socket() as silent:  # connections are made, and nobody ever says anything
        silent.bind(("127.0.0.1", 0))
        silent.listen(128)
        configured(f"127.0.0.1:{silent.getsockname()[1]}")
        with replace_sdpa() as replaced:
            q, kv = tensors(SHAPES + 1)
            attention(q, kv, kv)
        threads = call_new_shapes()
        # The first question is still unanswered, and so is every other.
        assert state().pending == SHAPES + 1
        assert replaced.stats.fallbacks == {"pending": 1}
        attune.refresh()
    assert callers.threads.isdisjoint(threads)


def test_refused(configured: Callable, callers: Callers, tmp_path: Any) -> None:
    configured(f"unix:{tmp_path}/nobody.sock")
    assert callers.threads.isdisjoint(call_new_shapes())
    assert state().kernels == 0


def test_slow(configured: Callable, callers: Callers, server: FakeServer, launches: list) -> None:
    """Each answer takes as long as all calls together."""
    released = threading.Event()

    def slow(request: Any) -> Any:
        released.wait(DEADLINE)
        return answer(problem=request.problem)

    server.responses["GetBest"] = slow
    configured(server.address)
    threads = call_new_shapes()
    assert (state().kernels, state().pending, launches) == (0, SHAPES, [])
    released.set()
    assert warm(timeout=900)
    assert callers.threads.isdisjoint(threads)
    q, kv = tensors(7)
    attention(q, kv, kv)
    assert len(launches) == 1, "calls switch over by themselves"


def test_killed(configured: Callable, callers: Callers, server: FakeServer, launches: list) -> None:
    server.responses["GetBest"] = lambda request: answer(problem=request.problem)
    configured(server.address)
    q, kv = tensors(SHAPES + 1)
    attention(q, kv, kv)
    assert warm(timeout=900)
    server.stop()
    threads = call_new_shapes()
    attention(q, kv, kv)
    assert len(launches) == 1, "what was loaded stays in use"
    assert callers.threads.isdisjoint(threads)


def test_rolled_back(configured: Callable, server: FakeServer, launches: list) -> None:
    """In a running process, whose calls do nothing but call."""
    server.responses["GetBest"] = lambda request: answer(problem=request.problem, artifact_sha256=b"wrong")
    server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=[{"name": "incumbents/2"}])
    configured(server.address, revalidate=1.0)
    q, kv = tensors(5)
    attention(q, kv, kv)
    assert warm(timeout=900)
    before = next(iter(process._kernel_cache._entries.values())).kernel
    server.responses["GetBest"] = lambda request: answer(problem=request.problem, artifact_sha256=b"right")
    server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=[{"name": "incumbents/1"}])
    for _ in range(60_000):
        attention(q, kv, kv)
        if state().replaced:
            break
        threading.Event().wait(0.001)
    attention(q, kv, kv)
    (entry,) = process.calls.values()
    assert entry.launch.__self__ is not before


def test_a_call_may_be_told_to_wait(configured: Callable, server: FakeServer, launches: list) -> None:
    configured(server.address, wait=900.0)
    q, kv = tensors(5)
    attention(q, kv, kv)
    assert len(launches) == 1


def test_problems_may_be_warmed_before_the_first_call(configured: Callable, server: FakeServer, launches: list) -> None:
    configured(server.address)
    assert warm(["b1.h1.q1.kv5.d64.f16"], device=-1, timeout=900)  # what a CPU tensor's get_device() says
    q, kv = tensors(5)
    attention(q, kv, kv)
    assert len(launches) == 1


def test_warming_ends_in_time(configured: Callable, server: FakeServer) -> None:
    released = threading.Event()
    server.responses["GetBest"] = lambda request: released.wait(DEADLINE) and answer()
    configured(server.address)
    assert not warm(["b1.h1.q1.kv5.d64.f16"], device=0, timeout=0.01)
    released.set()


PROLOGUE = """
    import os, sys, torch, attune
    from fake_service import EveryModule
    torch.set_num_threads(1)  # torch's own threads do not survive a fork
    from attune.background import kernel_cache, service
    from attune.torch import direct, dispatch, problem_of_tensors
    problem_of_tensors.on_one_gpu = lambda *tensors: True
    dispatch.current_stream = direct.current_stream = lambda device: 5
    launched = []
    class Kernel:
        device = -1
        def __init__(self, answer): self.answer = answer
        def launch(self, *addresses): launched.append(addresses)
    kernel_cache.load = lambda answer, device: Kernel(answer)
    service.modules = EveryModule
    attune.configure(attune.Client(sys.argv[1], deadline=600.0), device="cuda:0", never_slower=False)
    q = torch.zeros(1, 1, 4, 64, dtype=torch.float16)
    attune.attention(q, q, q)
"""


def run(address: str, script: str) -> subprocess.CompletedProcess:
    text = textwrap.dedent(PROLOGUE) + textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", text, address], capture_output=True, text=True, cwd=HERE, timeout=1800)


def test_a_process_ends_while_it_is_waiting_for_an_answer() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(128)
        ended = run(f"127.0.0.1:{silent.getsockname()[1]}", "print('done')")
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "done", "")


def test_a_forked_child_asks_for_itself(server: FakeServer) -> None:
    server.responses["GetBest"] = lambda request: answer(problem=request.problem)
    ended = run(
        server.address,
        """
        assert attune.warm(timeout=900)
        child = os.fork()
        if child == 0:
            attune.attention(q, q, q)
            warmed = attune.warm(timeout=900)
            attune.attention(q, q, q)
            os._exit(0 if warmed and len(launched) == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        attune.attention(q, q, q)
        assert len(launched) == 1
        """,
    )
    assert ended.returncode == 0, ended.stderr
