"""Where scratch memory comes from, and what attention does when there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import attune

torch = pytest.importorskip("torch")

from attune.cuda import CudaError  # noqa: E402
from attune.cuda import device as devices  # noqa: E402
from attune.cuda.driver import driver  # noqa: E402
from attune.torch import memory  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402

PROBLEM = "b1.h2.q1.kv8192.d64.f16"  # one CTA would read for long: split keys win

Make = Callable[..., tuple[Any, Any, Any]]


@pytest.fixture(scope="module")
def split(client: attune.Client) -> Iterator[attune.Client]:
    """Serves PROBLEM by a variant that has scratch buffers."""
    tuning = {"strategy": "random", "max_trials": 20, "max_time": 5, "seed": 1}
    client.tune(PROBLEM, device="cuda:0", families=["attention_mma"], **tuning).result()
    trials = client.trials(PROBLEM, verdicts=["OK"])
    variant = next(trial.variant.text for trial in trials if trial.variant.parameters["KV_SPLITS"] > 1)
    client.evaluate(PROBLEM, variant, device="cuda:0", pin=True, why="it has scratch buffers").result()
    yield client


@pytest.fixture(autouse=True)
def configured(split: attune.Client) -> Iterator[None]:
    attune.configure(split, device="cuda:0", wait=120.0, never_slower=False)
    with torch.no_grad():
        yield
    attune.refresh()


def new_stream() -> Any:
    """Of which nobody has had scratch yet."""
    return torch.cuda.ExternalStream(driver().new_stream(), device="cuda:0")


def test_scratch_is_torchs_memory(tensors: Make, check: Callable) -> None:
    q, k, v = tensors(PROBLEM)
    out = attune.attention(q, k, v)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    stream = new_stream()
    with torch.cuda.stream(stream):
        del out
        out = attune.attention(q, k, v)
        stats = Stats()
        attend(stats, q, k, v, None, 0.0, False, None, False)
    torch.cuda.synchronize()
    assert stats.launched == 1
    assert torch.cuda.memory_allocated() >= before + (64 << 10)
    check(PROBLEM, q, k, v, out)


def test_no_memory_is_a_cuda_error() -> None:
    with pytest.raises(CudaError, match="bytes of scratch") as raised:
        memory.allocate(0, 1 << 50, torch.cuda.current_stream().cuda_stream)
    assert raised.value.reason == "CUDA_ERROR_OUT_OF_MEMORY"
    torch.zeros(1, device="cuda") + 1


def test_without_scratch_sdpa_computes(tensors: Make, check: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = tensors(PROBLEM)
    stats = Stats()
    attend(stats, q, k, v, None, 0.0, False, None, False)
    assert stats.launched == 1

    def none_left(device: int, size: int, stream: int) -> int:
        return memory.allocate(device, 1 << 50, stream)

    monkeypatch.setattr(devices, "_memory", none_left)
    with torch.cuda.stream(new_stream()), pytest.warns(attune.AttuneWarning, match="not_launched"):
        out = attend(stats, q, k, v, None, 0.0, False, None, False)
    torch.cuda.synchronize()
    check(PROBLEM, q, k, v, out)
    assert (stats.launched, stats.fallbacks) == (1, {"not_launched": 1})


def test_memory_pools_of_the_caller_hold_no_scratch(tensors: Make, check: Callable) -> None:
    q, k, v = tensors(PROBLEM)
    attune.attention(q, k, v)
    pool = torch.cuda.MemPool()
    stream = new_stream()
    with torch.cuda.use_mem_pool(pool), torch.cuda.stream(stream):
        out = attune.attention(q, k, v)
        stream.synchronize()
    check(PROBLEM, q, k, v, out)  # out here: cuBLAS keeps a workspace of 32 MiB in the pool that it first runs in
    del out
    held = [block for segment in pool.snapshot() for block in segment["blocks"]]
    assert not [block for block in held if block["state"] == "active_allocated"]


def test_compiled_with_cuda_graphs(tensors: Make, check: Callable) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v: attune.attention(q * 1.0, k, v) + 0.0, mode="reduce-overhead")
    for seed in range(4):  # warms up, captures, replays
        q, k, v = tensors(PROBLEM, seed)
        check(PROBLEM, q, k, v, compiled(q, k, v).clone())


def test_captured_while_scratch_is_new_and_replayed(tensors: Make, check: Callable) -> None:
    q, k, v = tensors(PROBLEM)
    attune.attention(q, k, v)
    before = torch.cuda.memory_allocated()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attune.attention(q, k, v)
    assert torch.cuda.memory_allocated() > before
    for seed in (1, 2):
        for into, new in zip((q, k, v), tensors(PROBLEM, seed), strict=True):
            into.copy_(new)
        graph.replay()
        check(PROBLEM, q, k, v, out)


def test_an_output_belongs_to_the_stream_it_is_written_on(split: attune.Client, tensors: Make, check: Callable) -> None:
    kernel = attune.load(split.best(PROBLEM, device="cuda:0", artifact=True))
    q, k, v = tensors(PROBLEM)
    side = torch.cuda.Stream()
    outs = []
    for _ in range(20):
        side.wait_stream(torch.cuda.current_stream())
        outs.append(kernel(q, k, v, stream=side))
        torch.cuda.current_stream().wait_stream(side)
        torch.full_like(q, float("nan"))  # would take the memory of an output that was freed too early
    torch.cuda.synchronize()
    for out in outs:
        check(PROBLEM, q, k, v, out)


def test_nested_tensors_are_sdpas(check: Callable) -> None:
    parts = [torch.randn(length, 2, 64, device="cuda", dtype=torch.float16) for length in (33, 70)]
    q = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    expected = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    with attune.replace_sdpa() as replaced:
        found = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (0, {"layout": 1})
    for a, b in zip(found.unbind(), expected.unbind(), strict=True):
        torch.testing.assert_close(a, b)


def test_deterministic_calls_keep_their_kernel(tensors: Make) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        attune.refresh()
        q, k, v = tensors(PROBLEM)
        first = attune.attention(q, k, v)
        assert all(torch.equal(first, attune.attention(q, k, v)) for _ in range(20))
    finally:
        torch.use_deterministic_algorithms(False)
