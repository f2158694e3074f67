"""attune as torch's flash backend, registered for the CPU, which has none: what was there before is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from computing_kernel import have_kernels_compute
from fake_service import Service

import attune

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from tensors import half  # noqa: E402

from attune.torch import attention, count_calls, fallback, flash_backend, replace_sdpa  # noqa: E402

if not hasattr(torch.nn.attention, "register_flash_attention_impl") or not hasattr(torch.library, "get_kernel"):
    pytest.skip("this torch takes no other flash backend", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
flash = torch.ops.aten._scaled_dot_product_flash_attention


def exact(q: Any, k: Any, v: Any, is_causal: bool, scale: float | None) -> tuple[Any, Any]:
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    logits = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        logits = logits.masked_fill(torch.ones(logits.shape[-2:]).triu(1).bool(), -math.inf)
    return logits.softmax(-1) @ v, logits.logsumexp(-1)


class Before:
    """The backend that attune replaces."""

    def __init__(self) -> None:
        self.calls = 0
        self.library = torch.library.Library("aten", "IMPL", "CPU")
        self.library.impl("_scaled_dot_product_flash_attention", self.forward)
        self.library.impl("_scaled_dot_product_flash_attention_backward", self.backward)

    def forward(
        self,
        q: Any,
        k: Any,
        v: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        debug: bool = False,
        *,
        scale: Any = None,
    ) -> tuple[Any, ...]:
        self.calls += 1
        out, lse = exact(q.float(), k.float(), v.float(), is_causal, scale)
        seed, offset = torch.zeros(2, dtype=torch.uint64), torch.zeros((), dtype=torch.uint64)
        return out.to(q.dtype), lse, None, None, q.shape[2], k.shape[2], seed, offset, q.new_empty(0)

    def backward(
        self, grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, cum_q: Any, cum_k: Any, max_q: int, max_k: int,
        dropout_p: float, is_causal: bool, seed: Any, offset: Any, *, scale: Any = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """From the output and the log-sum-exp, as flash backends do it."""
        assert (max_q, max_k, seed.shape, offset.dtype) == (q.shape[2], k.shape[2], (2,), torch.uint64)
        grad, q32, k32, v32 = (x.float() for x in (grad, q, k, v))
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        logits = q32 @ k32.mT * scale
        if is_causal:
            logits = logits.masked_fill(torch.ones(logits.shape[-2:]).triu(1).bool(), -math.inf)
        weights = (logits - lse[..., None]).exp()
        of_logits = weights * (grad @ v32.mT - (grad * out.float()).sum(-1, keepdim=True)) * scale
        found = of_logits @ k32, of_logits.mT @ q32, weights.mT @ grad
        return tuple(x.to(q.dtype) for x in found)


@pytest.fixture
def before() -> Iterator[Before]:
    made = Before()
    yield made
    made.library._destroy()


@pytest.fixture
def active(before: Before, service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    have_kernels_compute(service, monkeypatch)
    monkeypatch.setattr(flash_backend, "_KEY", "CPU")
    torch.nn.attention.activate_flash_attention_impl("attune")
    yield service
    torch.nn.attention.restore_flash_attention_impl()


def test_importing_attune_registers_and_activates_nothing(before: Before) -> None:
    assert "attune" in torch.nn.attention.list_flash_attention_impls()
    assert torch.nn.attention.current_flash_attention_impl() is None


@pytest.mark.skipif(torch.version.cuda is None, reason="this torch has no flash backend of its own")
def test_for_cuda_it_replaces_torchs_own_and_gives_it_back() -> None:
    def kernel() -> str:
        return repr(torch.library.get_kernel("aten::_scaled_dot_product_flash_attention", "CUDA"))

    own = kernel()
    torch.nn.attention.activate_flash_attention_impl("attune")
    assert "flash_backend.py" in kernel()
    torch.nn.attention.restore_flash_attention_impl()
    assert kernel() == own


@pytest.mark.parametrize("is_causal", [False, True])
def test_kernels_compute_the_output_and_the_log_sum_exp(active: Service, before: Before, is_causal: bool) -> None:
    q, k, v = half(2, 4, 8, 64), half(2, 2, 8, 64), half(2, 2, 8, 64) * 0.5
    with count_calls() as counted:
        found = [flash(q, k, v, is_causal=is_causal) for _ in range(2)]
    out, lse = exact(q.float(), k.float(), v.float(), is_causal, None)
    for results in found:
        torch.testing.assert_close(results[0], out.half(), rtol=2e-3, atol=2e-3)
        torch.testing.assert_close(results[1], lse, rtol=1e-3, atol=1e-3)
        assert results[4:6] == (8, 8)
    assert (counted.stats.launched, before.calls) == (2, 0)
    mask = ".causal" if is_causal else ""
    assert active.problems == [f"b2.h4.kvh2.q8.d64.f16{mask}.lse"]


@pytest.mark.parametrize(
    "q",
    [
        half(2, 8, 4, 64).transpose(1, 2),
        half(2, 8, 12, 64)[:, :, :4].transpose(1, 2),
        half(8, 4, 2, 64).permute(2, 1, 0, 3),
    ],
    ids=["transposed", "fused", "length first"],
)
def test_the_output_lies_as_compiled_code_is_told(active: Service, q: Any) -> None:
    expected = torch.ops.aten._scaled_dot_product_flash_attention(*[q.to("meta")] * 3)[0]
    for _ in range(2):
        found, lse = flash(q, q, q)[:2]
        assert found.stride() == expected.stride()
        out, exact_lse = exact(q.float(), q.float(), q.float(), False, None)
        torch.testing.assert_close(found.float(), out, rtol=2e-3, atol=2e-3)
        torch.testing.assert_close(lse, exact_lse, rtol=1e-3, atol=1e-3)


def test_gradients_are_of_the_backend_before(active: Service, before: Before) -> None:
    given = [(half(1, 2, 8, 64) * scale).requires_grad_() for scale in (1.0, 0.5, 2.0)]
    out = flash(*given, 0.0, True)[0]
    weights = half(*out.shape)
    found = torch.autograd.grad((out * weights).sum(), given)
    doubled = [tensor.detach().float().requires_grad_() for tensor in given]
    expected = torch.autograd.grad((exact(*doubled, True, None)[0] * weights).sum(), doubled)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.float(), theirs, rtol=2e-2, atol=2e-2)
    assert (len(active.launches), before.calls) == (1, 0)


def test_what_no_kernel_computes_is_of_the_backend_before(active: Service, before: Before) -> None:
    q, k = half(1, 2, 8, 64), half(1, 2, 12, 64)
    active.refuses_with = attune.NotFound("nobody tuned it")
    with count_calls() as counted:
        found = flash(q, q, q, is_causal=True)
        flash(q, q, q, 0.5)
        flash(q, k, k, is_causal=True)
        flash(q.float(), q.float(), q.float())
    torch.testing.assert_close(found[1], exact(q.float(), q.float(), q.float(), True, None)[1])
    assert len(found) == 9
    assert (counted.stats.launched, before.calls) == (0, 4)
    assert counted.stats.fallbacks == {"no_answer": 1, "dtype": 1}


def test_what_is_no_attention_is_the_backends_to_refuse(active: Service, before: Before) -> None:
    with pytest.raises(RuntimeError):
        flash(half(1, 2, 8, 64), half(1, 2, 8, 32), half(1, 2, 8, 32))
    assert before.calls == 1


def test_sdpa_that_attune_falls_back_to_asks_attune_no_more(
    active: Service, before: Before, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where torch chooses the flash backend for it."""

    def sdpa(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> Any:
        return flash(query, key, value)[0]

    monkeypatch.setattr(fallback, "sdpa", sdpa)
    q = half(1, 2, 8, 64)
    attention(q, q, q, scale=-0.5)
    with replace_sdpa() as replaced:
        attention(q, q, q, scale=-0.5)
    assert (len(active.launches), before.calls) == (0, 2)
    assert replaced.stats.fallbacks == {"scale": 1}


def test_restored_it_is_asked_no_more(before: Before, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_backend, "_KEY", "CPU")
    q = half(1, 2, 8, 64)
    for times in (1, 2):
        torch.nn.attention.activate_flash_attention_impl("attune")
        flash(q, q, q)
        torch.nn.attention.restore_flash_attention_impl()
        flash(q, q, q)
        assert (len(service.launches), before.calls) == (times, times)
    assert fallback.blocks.backends == 0


def test_sdpa_elsewhere_is_as_it_was(active: Service) -> None:
    q = half(1, 2, 8, 64)
    torch.testing.assert_close(
        F.scaled_dot_product_attention(q, q, q), exact(q, q, q, False, None)[0], rtol=2e-3, atol=2e-3
    )
    assert active.launches == []
