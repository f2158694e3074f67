"""Head dimensions that no kernel takes: tensors are padded, and the results are those of the tensors as they were."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import Any

import pytest
from computing_kernel import have_kernels_compute
from contest_times import CALLS, STREAM, baseline
from fake_driver import FakeDriver, kernel, launch, recipe
from fake_service import FakeKernel, Service
from plain_attention import agree, reference

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from answers import answer  # noqa: E402
from tensors import bounds, half, ints, tensor  # noqa: E402
from timed_device import Device  # noqa: E402

import attune  # noqa: E402
from attune.background import kernel_cache  # noqa: E402
from attune.cuda.driver import Capture  # noqa: E402
from attune.flash_attn import flash_attn_func, flash_attn_varlen_func  # noqa: E402
from attune.torch import attention, dispatch, padding, process, state, warming  # noqa: E402
from attune.torch import call as attention_call  # noqa: E402
from attune.torch.dispatch import attend, attend_options  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402
from attune.torch.options import options_of  # noqa: E402
from attune.values import Axis, Domain, KernelArg  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
DECIDE = warming.decide


@pytest.fixture
def computing(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    have_kernels_compute(service, monkeypatch)
    return service


def plain(*tensors: torch.Tensor, **options: Any) -> torch.Tensor:
    return F.scaled_dot_product_attention(*(x.float() for x in tensors), **options)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    tolerance = 1e-2 if found.dtype is torch.bfloat16 else 2e-3
    torch.testing.assert_close(found.float(), expected, rtol=tolerance, atol=tolerance)


def inputs(dim: int, dtype: torch.dtype = torch.float16, heads_kv: int = 2) -> tuple[torch.Tensor, ...]:
    return (
        tensor(2, 4, 9, dim, dtype=dtype),
        tensor(2, heads_kv, 12, dim, dtype=dtype, seed=2),
        tensor(2, heads_kv, 12, dim, dtype=dtype, seed=3),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("dim", "padded"), [(59, 64), (111, 112), (60, 64), (7, 8), (250, 256)])
def test_results_are_those_of_the_tensors_as_they_are(
    computing: Service, dim: int, padded: int, is_causal: bool, dtype: torch.dtype
) -> None:
    q, k, v = inputs(dim, dtype)
    stats = Stats()
    for _ in range(2):
        out = attend(stats, q, k, v, None, 0.0, is_causal, None, True)
        close(out, plain(q, k, v, is_causal=is_causal, enable_gqa=True))
    assert (stats.launched, dict(stats.fallbacks)) == (2, {})
    name = {torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
    assert computing.problems == [f"b2.h4.kvh2.q9.kv12.d{padded}.{name}{'.causal' * is_causal}"]
    assert set(computing.scales) == {1 / math.sqrt(dim)}


def test_the_result_lies_as_the_query_does_and_the_inputs_are_as_they_were(computing: Service) -> None:
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs(59, heads_kv=4))
    before = [x.clone() for x in (q, k, v)]
    out = attention(q, k, v)
    assert (out.shape, out.stride()) == (q.shape, q.stride())
    close(out, plain(q, k, v))
    assert all(torch.equal(x, y) for x, y in zip((q, k, v), before, strict=True))


def test_any_strides_will_do_and_any_address(computing: Service) -> None:
    memory = half(1 + 2 * 8 * 118)[1:].view(1, 2, 8, 118)[..., ::2]
    stats = Stats()
    close(attend(stats, memory, memory, memory, None, 0.0, False, None, False), plain(memory, memory, memory))
    assert (stats.launched, computing.problems) == (1, ["b1.h2.q8.d64.f16"])


def test_a_scale_of_the_callers_is_taken_as_it_is(computing: Service) -> None:
    q, k, v = inputs(59, heads_kv=4)
    close(attention(q, k, v, scale=0.3), plain(q, k, v, scale=0.3))
    assert computing.scales[-1] == 0.3


def test_tensors_without_heads(computing: Service) -> None:
    q, k, v = (x[:, 0] for x in inputs(59))
    close(attention(q, k, v), plain(q, k, v))
    out, lse = attention(q, k, v, softcap=2.0, return_lse=True)
    for b in range(2):
        expected, of_rows = reference(*(x[b, :, None].float() for x in (q, k, v)), softcap=2.0)
        close(out[b, :, None], expected)
        agree(lse[b, None], of_rows)
    assert len(computing.launches) == 2


OPTIONS: list[dict[str, Any]] = [
    {"softcap": 2.0},
    {"causal": "bottom-right", "return_lse": True},
    {"window": 4, "return_lse": True},
    {"return_lse": True, "scale": 0.2},
]


def expected_of(q: Any, k: Any, v: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """[length, heads, head_dim] of one sequence, in fp32."""
    window = options.get("window")
    return reference(
        *(x.float() for x in (q, k, v)),
        causal=window is not None or "causal" in options,
        window_size=(-1 if window is None else window - 1, -1),
        softcap=options.get("softcap", 0.0),
        softmax_scale=options.get("scale"),
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_options(computing: Service, options: dict[str, Any]) -> None:
    q, k, v = inputs(59)
    for _ in range(2):
        found = attention(q, k, v, enable_gqa=True, **options)
        for b in range(2):
            out, lse = expected_of(*(x[b].transpose(0, 1) for x in (q, k, v)), options)
            close((found[0] if "return_lse" in options else found)[b].transpose(0, 1), out)
            if "return_lse" in options:
                agree(found[1][b], lse)
    assert (len(computing.launches), len(computing.problems)) == (2, 1)


def test_sinks(computing: Service) -> None:
    q, k, v = inputs(59, heads_kv=4)
    out = attention(q, k, v, sinks=torch.tensor([0.5, -1.0, 0.0, 2.0]))
    wide = [torch.cat([x.float(), torch.zeros_like(x[:, :, :1].float())], 2) for x in (k, v)]
    bias = torch.zeros(4, 1, 13)
    bias[:, 0, 12] = torch.tensor([0.5, -1.0, 0.0, 2.0])
    close(out, F.scaled_dot_product_attention(q.float(), *wide, attn_mask=bias))


@pytest.mark.parametrize("options", OPTIONS)
def test_packed_sequences(computing: Service, options: dict[str, Any]) -> None:
    lengths_q, lengths_k = [3, 7], [5, 9]
    q, k, v = half(10, 4, 59), half(14, 2, 59), tensor(14, 2, 59, dtype=torch.float16, seed=2)
    found = attune.attention_varlen(q, k, v, bounds(lengths_q), bounds(lengths_k), 7, 9, enable_gqa=True, **options)
    out, lse = found if "return_lse" in options else (found, None)
    parts = zip(q.split(lengths_q), k.split(lengths_k), v.split(lengths_k), strict=True)
    expected = [expected_of(*part, options) for part in parts]
    close(out, torch.cat([each[0] for each in expected]))
    assert out.is_contiguous()
    if lse is not None:
        agree(lse, torch.cat([each[1] for each in expected], 1))
    assert (len(computing.launches), computing.problems[0][:26]) == (1, "b2.h4.kvh2.q7.kv10.d64.f16")


def test_flash_attentions_functions(computing: Service) -> None:
    q, k, v = (x.transpose(1, 2) for x in inputs(59))
    out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
    expected = [reference(*(x[b].float() for x in (q, k, v)), causal=True) for b in range(2)]
    close(out, torch.stack([each[0] for each in expected]))
    agree(lse, torch.stack([each[1] for each in expected]))
    packed = [x.flatten(0, 1) for x in (q, k, v)]
    varlen = flash_attn_varlen_func(*packed, bounds([9, 9]), bounds([12, 12]), 9, 12, causal=True)
    close(varlen.unflatten(0, (2, 9)), torch.stack([each[0] for each in expected]))
    assert len(computing.launches) == 2


def test_it_is_the_operator_in_a_graph(computing: Service) -> None:
    torch._dynamo.reset()
    targets: list[str] = []

    def kept(graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
        targets.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph

    q, k, v = inputs(59, heads_kv=4)
    compiled = torch.compile(lambda q, k, v: attention(q, k, v), fullgraph=True, backend=kept)
    out = compiled(q, k, v)
    close(out, plain(q, k, v))
    assert (targets, out.stride()) == (["attune.attention"], q.stride())
    torch.library.opcheck(torch.ops.attune.attention.default, (q, k, v, True, None, False))
    assert len(computing.launches) > 0


def test_gradients_are_sdpas(computing: Service) -> None:
    q, k, v = inputs(59, heads_kv=4)
    with pytest.warns(attune.AttuneWarning, match=r"\(grad\)"):
        attention(q.float().requires_grad_(), k.float(), v.float()).sum().backward()
    assert computing.problems == []


@FALLS_BACK
def test_caches_are_not_padded(service: Service) -> None:
    pages, cache = half(4, 16, 2, 59), half(2, 4, 12, 59).to(torch.float8_e4m3fn)
    scale = torch.ones(())
    q = half(2, 4, 3, 59)
    with attune.replace_sdpa() as replaced:
        attune.attention_paged(q.transpose(1, 2), pages, pages, ints([1, 2], [0, 3]), ints(20, 5), enable_gqa=True)
        attention(q, cache, cache, k_scale=scale, v_scale=scale)
    assert replaced.stats.fallbacks == {"shape": 2}
    assert service.problems == []


def test_why_a_cache_is_not_padded_is_said(service: Service) -> None:
    q, cache = half(2, 4, 3, 59), half(2, 4, 12, 59).to(torch.float8_e4m3fn)
    with pytest.warns(attune.AttuneWarning, match="head_dim is 59; it must be a multiple of 8, as 8-bit keys and"):
        attention(q, cache, cache, k_scale=torch.ones(()), v_scale=torch.ones(()))


def scaled_kernel(driver: FakeDriver, max_scale_ratio: float, problem: str = "b1.h2.q8.d64.f16") -> attune.Kernel:
    args = [KernelArg(name) for name in "QKVO"]
    args.append(KernelArg("F32", 0.125, max_scale_ratio=max_scale_ratio))
    return kernel(answer(problem, recipe(launch("main", *args)), domains=()), driver)


def test_a_kernel_is_launched_with_the_scale_of_the_callers_head_dim(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = FakeDriver({"main": [8, 8, 8, 8, 4]})
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: scaled_kernel(driver, 1.5))
    attention(*[half(1, 2, 8, 59)] * 3)
    (launched,) = driver.launched
    ratio = memory_float(launched.parameters[4]) / 0.125
    assert ratio == pytest.approx(math.sqrt(64 / 59))


def memory_float(number: int) -> float:
    """The fp32 that these 32 bits are."""
    return torch.tensor(number, dtype=torch.int32).view(torch.float32).item()


def test_a_kernel_that_does_not_compute_the_scale_is_not_launched_and_not_asked_for_in_each_call(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = FakeDriver({"main": [8, 8, 8, 8, 4]})
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: scaled_kernel(driver, 1.02))
    q = half(1, 2, 8, 59)
    stats = Stats()
    with pytest.warns(attune.AttuneWarning, match=r"\(scale\): head_dim is 59, padded to 64: scale is 0.130189; this"):
        out = attend(stats, q, q, q, None, 0.0, False, None, False)
    attend(stats, q, q, q, None, 0.0, False, None, False)
    close(out, plain(q, q, q))
    assert (dict(stats.fallbacks), service.problems, driver.launched) == ({"scale": 2}, ["b1.h2.q8.d64.f16"], [])
    assert state().without_kernel == {"scale": 1}


@FALLS_BACK
@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}])
def test_copies_that_there_is_no_memory_for_are_sdpas(
    service: Service, monkeypatch: pytest.MonkeyPatch, options: dict
) -> None:
    def no_memory(tensor: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("no room")

    for module in (dispatch, attention_call):
        monkeypatch.setattr(module, "widened", no_memory)
    q = half(1, 2, 8, 59)
    with attune.replace_sdpa() as replaced:
        out = attention(q, q, q, **options)
    assert (out.shape, replaced.stats.launched, replaced.stats.fallbacks) == (q.shape, 0, {"not_launched": 1})


def test_the_columns_of_zeros_are_behind_the_tensors_own() -> None:
    x = half(2, 3, 59)
    wide = padding.widened(x)
    assert (wide.shape, wide.is_contiguous()) == ((2, 3, 64), True)
    assert torch.equal(wide[..., :59], x)
    assert not wide[..., 59:].any()


def test_lengths_of_a_range_are_not_asked_for(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    best = service.best
    domains = (Domain(Axis.KV, 8, 64),)
    monkeypatch.setattr(service, "best", lambda problem: dataclasses.replace(best(problem), domains=domains))
    have_kernels_compute(service, monkeypatch)
    q = half(1, 2, 1, 59)
    for length in range(9, 20):
        k = tensor(1, 2, length, 59, dtype=torch.float16, seed=length)
        close(attention(q, k, k), plain(q, k, k))
    assert service.problems == ["b1.h2.q1.kv9.d64.f16"]
    attention(*[half(1, 2, 1, 60)] * 1, *[half(1, 2, 9, 60)] * 2)
    attention(*[half(1, 2, 1, 64)] * 1, *[half(1, 2, 9, 64)] * 2)
    assert len(service.problems) == 3, "each head_dim for itself: one contest decides for a range"


# Against what it replaces, copies and all.
ODD = half(1, 2, 16, 59)


def call(device: Device, count: int = 1) -> None:
    for _ in range(count):
        attend(device.stats, ODD, ODD, ODD, None, 0.0, False, None, False)


def decide(device: Device) -> None:
    device.behind = True
    call(device, CALLS)
    device.behind = False
    device.catch_up()
    call(device)


@FALLS_BACK
@pytest.mark.parametrize("sdpa_us", [10.1, 11.0])
def test_a_contest_decides_whether_the_copies_pay(
    device: Device, monkeypatch: pytest.MonkeyPatch, sdpa_us: float
) -> None:
    def widened(tensor: torch.Tensor) -> torch.Tensor:
        device.now += 2.0
        return padding.widened(tensor)

    monkeypatch.setattr(dispatch, "widened", widened)
    device.kernel_us, device.sdpa_us = 4.0, sdpa_us  # with three copies the kernel's are 10
    decide(device)
    device.stats = Stats()
    call(device, 5)
    assert device.computed == ((5, {}) if sdpa_us > 10.2 else (0, {"slower": 5}))


@FALLS_BACK
def test_nothing_that_is_recorded_decides_and_nothing_is_reported(device: Device) -> None:
    padded = attune.Problem.parse("b1.h2.q16.d64.f16")
    device.baselines = (baseline("sdpa", 1.0, problem=padded),)
    device.sdpa_us = 20.0
    decide(device)
    assert state().kernels == 1
    assert attune.warm(["b1.h2.q17.d64.f16.lse"], device=-1, timeout=60)  # by when it would have been reported
    assert (list(process._kernel_cache._reports), device.reports) == ([], [])


@FALLS_BACK
def test_options_are_contested_too(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = dispatch.computed

    def timed(call: Any) -> Any:
        device.now += device.sdpa_us
        return computed(call)

    monkeypatch.setattr(dispatch, "computed", timed)
    device.sdpa_us = 9.0
    given = options_of(False, None, None, 2.0, None, False, None, False)
    for _ in range(CALLS + 5):
        attend_options(device.stats, ODD, ODD, ODD, None, 0.0, given)
    assert device.computed == (CALLS // 2, {"contest": CALLS // 2, "slower": 5})


@pytest.mark.parametrize(
    "problem",
    [
        "b1.h2.q16.d59.f16",
        "b1.h2.q16.d59.f16.causal.bshd",
        "b1.h4.kvh2.q16.d59.f16.window4.lse",
        "b2.h2.q16.d59.f16.softcap2.sinks",
    ],
)
def test_warming_asks_for_the_padded_problem_and_decides_on_the_device(
    device: Device, service: Service, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    class Stream:
        def synchronize(self) -> None:
            device.behind = False
            device.catch_up()

    computed, tensors_of = dispatch.computed, warming.tensors_of

    def timed(call: Any) -> Any:
        device.now += device.sdpa_us
        return computed(call)

    monkeypatch.setattr(dispatch, "computed", timed)
    monkeypatch.setattr(warming, "decide", DECIDE)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: setattr(device, "behind", True))
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(warming, "tensors_of", lambda problem, index: tensors_of(problem, "cpu"))
    device.sdpa_us = 50.0
    assert attune.warm([problem], device=-1)
    assert (state().contests, state().kernels, len(service.problems)) == (0, 1, 1)
    assert ".d64." in service.problems[0]
    device.captures[STREAM] = Capture(1, "graph")
    launches = len(service.launches)
    if problem == "b1.h2.q16.d59.f16":
        call(device)
        assert (device.computed, len(service.launches)) == ((1, {}), launches + 1)


def test_packed_sequences_are_not_contested(device: Device) -> None:
    """What computes them without a kernel cannot be captured: a graph has the kernel at once."""
    q, of_rows = half(10, 2, 59), bounds([3, 7])
    with attune.replace_sdpa() as replaced:
        attune.attention_varlen(q, q, q, of_rows, of_rows, 7, 7)
        device.captures[STREAM] = Capture(1, "graph")
        attune.attention_varlen(q, q, q, of_rows, of_rows, 7, 7)
    assert (replaced.stats.launched, replaced.stats.fallbacks, state().contests) == (2, {}, 0)


def test_fake_kernels_are_launched_on_copies(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on the tensors, whose rows are 59 elements apart."""
    copies: list[int] = []
    monkeypatch.setattr(FakeKernel, "launch", lambda kernel, q, *others: copies.append(q))
    q = half(1, 2, 8, 59)
    for options in ({}, {}, {"softcap": 2.0}, {"softcap": 2.0}):
        attention(q, q, q, **options)
    assert len(copies) == 4
    assert q.data_ptr() not in copies
