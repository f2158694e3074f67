"""attune.attention on a GPU with a service that knows some shapes."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import attune

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from attune.torch import process  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402

Make = Callable[..., tuple[Any, Any, Any]]


@pytest.fixture(autouse=True)
def no_grad(service: attune.Client) -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture
def launched() -> Callable[..., Any]:
    """Calls attention, and asserts that it was not SDPA that computed."""

    def call(q: Any, k: Any, v: Any, is_causal: bool = False, enable_gqa: bool = False) -> Any:
        stats = Stats()
        out = attend(stats, q, k, v, None, 0.0, is_causal, None, enable_gqa)
        assert (stats.launched, dict(stats.fallbacks)) == (1, {})
        return out

    return call


def options(problem: str) -> dict[str, bool]:
    return {"is_causal": problem.endswith("causal"), "enable_gqa": "kvh" in problem}


@pytest.mark.parametrize(
    "problem",
    [
        "b1.h1.q128.d64.f16",
        "b2.h8.kvh2.q256.d64.f16.causal",
        "b2.h4.q256.d64.f16.bshd",
        "b1.h8.q1.kv4096.d64.f16",
        "b1.h4.q113.kv203.d128.f16.causal",  # top-left
        "b3.h1.q150.d64.f16",  # from the nearest
        "b1.h8.q1.kv4200.d64.f16",
    ],
)
def test_results_agree_with_fp32_and_are_laid_out_like_the_query(
    tensors: Make, check: Callable, launched: Callable, problem: str
) -> None:
    q, k, v = tensors(problem)
    for _ in range(2):
        out = launched(q, k, v, **options(problem))
        check(problem, q, k, v, out)
    assert out.stride() == q.stride()


@pytest.mark.parametrize(
    "problem",
    [
        "b1.h1.q128.d59.f16",
        "b2.h8.kvh2.q256.d59.f16.causal",
        "b2.h4.q256.d60.f16.bshd",
        "b1.h4.q113.kv203.d125.f16.causal",
    ],
)
def test_head_dims_that_no_kernel_takes_are_padded(
    tensors: Make, check: Callable, launched: Callable, problem: str
) -> None:
    q, k, v = tensors(problem)
    for _ in range(2):
        out = launched(q, k, v, **options(problem))
        check(problem, q, k, v, out)
    assert out.stride() == q.stride()


@pytest.mark.parametrize("problem", ["b2.h4.q256.d64.f16.bshd", "b1.h8.q1.kv4096.d64.f16", "b1.h1.q128.d59.f16"])
def test_the_result_is_written_where_it_is_wanted(tensors: Make, check: Callable, problem: str) -> None:
    q, k, v = tensors(problem)
    wide = torch.zeros(*q.shape[:-1], 128, dtype=q.dtype, device="cuda")
    for out in (torch.zeros_like(q), wide[..., : q.shape[-1]]):
        with attune.replace_sdpa() as replaced:
            for _ in range(2):
                assert attune.attention(q, k, v, out=out.zero_()) is out
                check(problem, q, k, v, out)
        assert (replaced.stats.launched, dict(replaced.stats.fallbacks)) == (2, {})
    assert not wide[..., q.shape[-1] :].any()


def test_inputs_without_heads(tensors: Make, check: Callable, launched: Callable) -> None:
    problem = "b4.h1.q128.d64.f16"
    q, k, v = tensors(problem)
    out = launched(q[:, 0], k[:, 0], v[:, 0])
    assert out.shape == (4, 128, 64)
    check(problem, q, k, v, out[:, None])


def test_a_sliced_cache_is_read_where_it_is(tensors: Make, check: Callable, launched: Callable) -> None:
    for problem in ("b2.h4.q256.d64.f16.bshd", "b1.h8.q1.kv4096.d64.f16"):
        q, k, v = tensors(problem)
        batch, heads, keys, _ = k.shape
        cache = torch.zeros(2, batch, heads, 2 * keys, 64, dtype=torch.float16, device="cuda")[:, :, :, :keys]
        cache[0], cache[1] = k, v
        check(problem, q, k, v, launched(q, *cache))


def test_a_misaligned_tensor_is_sdpas(tensors: Make, check: Callable) -> None:
    problem = "b2.h4.q256.d64.f16.bshd"
    q, k, v = tensors(problem)
    misaligned = torch.empty(v.numel() + 1, dtype=torch.float16, device="cuda")[1:].view(2, 256, 4, 64).transpose(1, 2)
    misaligned.copy_(v)
    stats = Stats()
    out = attend(stats, q, k, misaligned, None, 0.0, False, None, False)
    assert (stats.launched, stats.fallbacks) == (0, {"layout": 1})
    # Of such a tensor SDPA's own result may be wrong (torch 2.11 with cuDNN): it is what the caller had without attune.
    assert torch.equal(out, torch.nn.functional.scaled_dot_product_attention(q, k, misaligned))


def test_threads(tensors: Make, check: Callable, launched: Callable) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            problem = ("b1.h8.q1.kv4096.d64.f16", "b2.h8.kvh2.q256.d64.f16.causal")[seed % 2]
            q, k, v = tensors(problem, seed)
            with torch.no_grad():
                for _ in range(100):
                    out = launched(q, k, v, **options(problem))
            check(problem, q, k, v, out)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize(
    ("problem", "mode"),
    [("b2.h8.kvh2.q256.d64.f16.causal", "default"), ("b2.h4.q256.d64.f16.bshd", "reduce-overhead")],
)
def test_compiled_into_one_graph(tensors: Make, check: Callable, problem: str, mode: str) -> None:
    torch._dynamo.reset()

    def block(q: Any, k: Any, v: Any) -> Any:
        return attune.attention(q * 1.0, k, v, **options(problem)) + 0.0

    compiled = torch.compile(block, fullgraph=True, mode=mode)
    for seed in range(4):  # with reduce-overhead: warm up, capture, replay
        q, k, v = tensors(problem, seed)
        check(problem, q, k, v, compiled(q, k, v).clone())


def test_a_call_that_does_not_wait_switches_over_by_itself(
    service: attune.Client, tensors: Make, check: Callable
) -> None:
    attune.configure(service, never_slower=False)
    problem = "b1.h8.q1.kv4096.d64.f16"
    q, k, v = tensors(problem)
    stats = Stats()
    check(problem, q, k, v, attend(stats, q, k, v, None, 0.0, False, None, False))
    assert attune.warm(timeout=120)
    out = attend(stats, q, k, v, None, 0.0, False, None, False)
    check(problem, q, k, v, out)
    assert stats.launched >= 1
    assert set(stats.fallbacks) <= {"pending"}


def test_a_roll_back_is_in_force_in_a_running_process(service: attune.Client, tensors: Make, check: Callable) -> None:
    problem = "b1.h2.q192.d64.f16"
    tuning = {"strategy": "random", "max_trials": 12, "max_time": 5, "seed": 1}
    service.tune(problem, device="cuda:0", families=["attention_mma"], **tuning).result()
    first, second, *_ = {trial.variant.text: trial for trial in service.trials(problem, verdicts=["OK"])}
    for variant in (first, second):
        service.evaluate(problem, variant, device="cuda:0", pin=True, why="to roll it back").result()
    attune.configure(service, device="cuda:0", revalidate=1.0, wait=120.0, never_slower=False)
    q, k, v = tensors(problem)

    def launched_variant() -> str:
        check(problem, q, k, v, attune.attention(q, k, v))
        (entry,) = process._kernel_cache._entries.values()
        return entry.kernel.answer.variant.text

    assert launched_variant() == second
    service.roll_back(problem, device="cuda:0", why="a test")
    end = time.monotonic() + 60
    while launched_variant() != first and time.monotonic() < end:
        time.sleep(0.05)
    assert launched_variant() == first


def test_captured_and_replayed(tensors: Make, check: Callable) -> None:
    problem = "b1.h8.q1.kv4096.d64.f16"
    q, k, v = tensors(problem)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attune.attention(q, k, v)
    for into, new in zip((q, k, v), tensors(problem, 1), strict=True):
        into.copy_(new)
    graph.replay()
    check(problem, q, k, v, out)


def test_autocast_to_another_dtype_is_sdpas(tensors: Make) -> None:
    q, k, v = tensors("b1.h1.q128.d64.f16")
    attune.attention(q, k, v)
    with torch.autocast("cuda", dtype=torch.float16):
        assert attune.attention(q, k, v).dtype == torch.float16
    with torch.autocast("cuda", dtype=torch.bfloat16), pytest.warns(attune.AttuneWarning, match="autocast"):
        assert attune.attention(q, k, v).dtype == torch.bfloat16


def test_gradients_flow_through_sdpa(tensors: Make) -> None:
    q, k, v = tensors("b1.h1.q128.d64.f16")
    q.requires_grad_()
    with torch.enable_grad(), pytest.warns(attune.AttuneWarning, match="grad"):
        attune.attention(q, k, v).sum().backward()
    assert q.grad is not None


def test_a_shape_that_no_variant_fits_is_sdpas_with_one_warning(tensors: Make) -> None:
    q, k, v = tensors("b1.h2.q64.d72.f16")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(3):
            out = attune.attention(q, k, v)
    ours = [str(one.message) for one in given if one.category is attune.AttuneWarning]
    assert len(ours) == 1
    assert "(no_answer)" in ours[0]
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v))


def test_a_guess_is_run_only_when_it_is_accepted(service: attune.Client, tensors: Make) -> None:
    q, k, v = tensors("b1.h2.q64.d256.bf16")
    with pytest.warns(attune.AttuneWarning, match="no_answer"):
        attune.attention(q, k, v)
    attune.configure(service, acceptable=["HEURISTIC"], wait=120.0, never_slower=False)
    with attune.replace_sdpa() as replaced:
        out = attune.attention(q, k, v)  # waits until the service has compiled the guess
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (1, {})
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v), atol=2e-2, rtol=2e-2)


def test_an_unreachable_service_leaves_sdpa(tensors: Make, tmp_path: Any) -> None:
    attune.configure(attune.Client(f"unix:{tmp_path}/nobody.sock", deadline=0.5), wait=120.0)
    q, k, v = tensors("b1.h1.q128.d64.f16")
    with pytest.warns(attune.AttuneWarning, match="unreachable"):
        out = attune.attention(q, k, v)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v))
