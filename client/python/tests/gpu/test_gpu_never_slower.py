"""attune.attention beside SDPA on a GPU: the faster one of the two is left with the calls."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from gpu_problems import DEVICE

import attune

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from attune.background.contest import PAIRS, WARM_UP  # noqa: E402
from attune.torch import contest, process  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402

Make = Callable[..., tuple[Any, Any, Any]]

LEAST_CALLS = WARM_UP + 2 * PAIRS  # of a contest; the verdict is another's
# A contest of pairs of both kinds, and calls whose times are not there yet.
MOST_CALLS = WARM_UP + 4 * PAIRS + 64
SLOW_PROBLEM = "b1.h16.q2048.d128.f16"  # of which a few variants of attention_simt are tried: without tensor cores
FAST_PROBLEM = "b1.h8.q1.kv4096.d64.f16"  # which the session has tuned


@pytest.fixture(scope="module")
def tuned(client: attune.Client) -> attune.Client:
    tuning = client.tune(
        SLOW_PROBLEM, device=DEVICE, families=["attention_simt"], strategy="random", max_trials=4, seed=1
    )
    tuning.result()
    assert client.best(SLOW_PROBLEM, device=DEVICE).variant.family == "attention_simt"
    return client


@pytest.fixture(autouse=True)
def configured(tuned: attune.Client) -> Iterator[None]:
    attune.configure(tuned, device=DEVICE, wait=120.0)
    with torch.inference_mode():
        yield
    attune.refresh()


@pytest.fixture
def contested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests have recorded."""
    from attune.background import contests

    monkeypatch.setattr(contests, "recorded", lambda answer, policy, rival: None)


def run(q: Any, k: Any, v: Any, check: Callable[[Any], None], backlog: Callable[[], None]) -> int:
    """Calls until there is a verdict; how many it took."""
    for number in itertools.count(1):
        assert number <= MOST_CALLS, attune.state()
        backlog()
        check(attend(None, q, k, v, None, 0.0, False, None, False))
        if number > WARM_UP and attune.state().contests == 0:
            return number
    raise AssertionError


def busy() -> None:
    """The device is behind of the host when a call is made."""
    torch.cuda._sleep(2_000_000)


def idle() -> None:
    torch.cuda.synchronize()


@pytest.mark.parametrize("backlog", [busy, idle])
def test_sdpa_keeps_the_calls_that_it_is_faster_at(
    contested: None, tensors: Make, check: Callable, backlog: Callable[[], None]
) -> None:
    q, k, v = tensors(SLOW_PROBLEM)
    assert run(q, k, v, lambda out: check(SLOW_PROBLEM, q, k, v, out), backlog) > LEAST_CALLS
    assert attune.state().without_kernel == {"slower": 1}
    stats = Stats()
    attune.torch.fallback.warn_again()
    with pytest.warns(attune.AttuneWarning, match="slower"):
        check(SLOW_PROBLEM, q, k, v, attend(stats, q, k, v, None, 0.0, False, None, False))
    assert (stats.launched, stats.fallbacks) == (0, {"slower": 1})


@pytest.mark.parametrize("backlog", [busy, idle])
def test_a_kernel_that_is_faster_is_left_with_the_calls(
    contested: None, tensors: Make, check: Callable, backlog: Callable[[], None]
) -> None:
    """Than the slowest of SDPA's backends."""
    q, k, v = tensors(FAST_PROBLEM)
    with sdpa_kernel(SDPBackend.MATH):
        assert run(q, k, v, lambda out: check(FAST_PROBLEM, q, k, v, out), backlog) > LEAST_CALLS
        (entry,) = process._kernel_cache._entries.values()
        if backlog is busy:
            assert entry.launch == entry.kernel.launch, "nothing is added to its calls"
        stats = Stats()
        check(FAST_PROBLEM, q, k, v, attend(stats, q, k, v, None, 0.0, False, None, False))
    assert (stats.launched, stats.fallbacks) == (1, {})


def test_samples_of_a_device_that_is_behind_are_the_devices_and_are_recorded(
    contested: None, tuned: attune.Client, tensors: Make
) -> None:
    def recorded() -> list[Any]:
        return [one for one in tuned.baselines(SLOW_PROBLEM) if one.contender == contest.rival()]

    earlier = {one.record_time for one in recorded()}  # by the other tests
    q, k, v = tensors(SLOW_PROBLEM)
    run(q, k, v, lambda out: torch.cuda.synchronize(), busy)
    (entry,) = process._kernel_cache._entries.values()
    new: list[Any] = []
    end = time.monotonic() + 60
    while not new and time.monotonic() < end:
        time.sleep(0.05)
        new = [one for one in recorded() if one.record_time not in earlier]
    assert new[0].median_us < entry.kernel.answer.timing.median_us


def test_other_processes_skip_the_contest(tuned: attune.Client, tensors: Make, check: Callable) -> None:
    tuned.record_baseline(SLOW_PROBLEM, contest.rival(), 1.0, device=DEVICE)
    attune.refresh()
    q, k, v = tensors(SLOW_PROBLEM)
    stats = Stats()
    check(SLOW_PROBLEM, q, k, v, attend(stats, q, k, v, None, 0.0, False, None, False))
    assert (stats.launched, stats.fallbacks) == (0, {"slower": 1})


@pytest.mark.parametrize("problem", [SLOW_PROBLEM, FAST_PROBLEM])
def test_a_graph_captured_after_warming_has_the_devices_winner(
    contested: None, tensors: Make, check: Callable, problem: str
) -> None:
    q, k, v = tensors(problem)
    attune.attention(q, k, v)
    assert attune.warm(timeout=120)
    state = attune.state()
    assert state.contests == 0, "no time is left open"
    if problem == SLOW_PROBLEM:
        assert state.without_kernel == {"slower": 1}
    graph, stats = torch.cuda.CUDAGraph(), Stats()
    with torch.cuda.graph(graph):
        out = attend(stats, q, k, v, None, 0.0, False, None, False)
    assert stats.launched == state.kernels
    for into, new in zip((q, k, v), tensors(problem, 1), strict=True):
        into.copy_(new)
    graph.replay()
    check(problem, q, k, v, out)


def test_a_graph_captured_before_the_verdict_has_sdpa(contested: None, tensors: Make, check: Callable) -> None:
    q, k, v = tensors(FAST_PROBLEM)
    attune.attention(q, k, v)
    graph, stats = torch.cuda.CUDAGraph(), Stats()
    with torch.cuda.graph(graph):
        out = attend(stats, q, k, v, None, 0.0, False, None, False)
    graph.replay()
    assert (stats.launched, stats.fallbacks) == (0, {"undecided": 1})
    check(FAST_PROBLEM, q, k, v, out)


def test_another_thread_may_capture_meanwhile(contested: None, tensors: Make, check: Callable) -> None:
    """To look at events is not allowed while a capture is under way, but for threads that say that they may. The thread
    has called SDPA before: its first call makes handles, which no capture permits."""
    q, k, v = tensors(FAST_PROBLEM)
    stream, results = torch.cuda.Stream(), []

    def call() -> None:
        with torch.cuda.stream(stream), torch.no_grad():
            results[:] = [attune.attention(q, k, v)]

    with ThreadPoolExecutor(1) as beside:
        for _ in range(WARM_UP + 5):
            beside.submit(call).result()
        stream.synchronize()
        graph, ones = torch.cuda.CUDAGraph(), torch.ones(64, device="cuda")
        with torch.cuda.graph(graph):
            twos = ones + 1
            beside.submit(call).result()
    graph.replay()
    torch.cuda.synchronize()
    assert twos.sum() == 128
    check(FAST_PROBLEM, q, k, v, results[0])
