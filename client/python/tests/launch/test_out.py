"""`out=`: written by kernels where it is, and by a copy of what torch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from computing_kernel import have_kernels_compute
from fake_service import FakeKernel, Service

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from tensors import bounds, half, ints, tensor  # noqa: E402

import attune  # noqa: E402
from attune.errors import InvalidArgument  # noqa: E402
from attune.torch import direct, dispatch  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


def plain(**changes: Any) -> Any:
    q = half(2, 4, 8, 64)
    return attune.attention(**{"query": q, "key": q, "value": q, **changes})


def options(**changes: Any) -> Any:
    return plain(softcap=2.0, **changes)


def varlen(**changes: Any) -> Any:
    given = {"query": half(10, 4, 64), "key": half(14, 4, 64), "value": half(14, 4, 64), "max_seqlen_q": 7}
    given |= {"cu_seqlens_q": bounds([3, 7]), "cu_seqlens_k": bounds([5, 9]), "max_seqlen_k": 9}
    return attune.attention_varlen(**{**given, **changes})


def paged(**changes: Any) -> Any:
    pages = half(8, 16, 4, 64)
    given = {"query": half(2, 3, 4, 64), "key_pages": pages, "value_pages": pages}
    given |= {"block_table": ints([0, 1], [2, 3]), "seqused_k": ints(20, 32)}
    return attune.attention_paged(**{**given, **changes})


KINDS: dict[Callable, tuple[int, ...]] = {
    plain: (2, 4, 8, 64),
    options: (2, 4, 8, 64),
    varlen: (10, 4, 64),
    paged: (2, 3, 4, 64),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_writes_it_where_it_is(service: Service, kind: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "empty_like", lambda like: pytest.fail("allocates"))
    out = torch.zeros(KINDS[kind], dtype=torch.float16)
    for _ in range(3):
        assert kind(out=out) is out
    assert [launched[3] for launched in service.launches] == [out.data_ptr()] * 3
    assert service.placements == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_call_is_launched_at_once(service: Service, kind: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    kind(out=torch.zeros(KINDS[kind], dtype=torch.float16))
    monkeypatch.setattr(dispatch, "_entry_of", lambda call: pytest.fail("looks"))
    kind(out=torch.zeros(KINDS[kind], dtype=torch.float16))
    assert len(service.launches) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_strides_of_its_own_are_the_launchs(service: Service, kind: Callable) -> None:
    *outer, dim = KINDS[kind]
    out = torch.zeros(*outer, 2 * dim, dtype=torch.float16)[..., :dim]
    for _ in range(2):
        assert kind(out=out) is out
    assert [launched[3] for launched in service.launches] == [out.data_ptr()] * 2
    strides = (0, *out.stride())[-4:-1] if kind is not varlen else (0, *out.stride()[:2])
    of_out = service.placements[0][3]
    assert sorted(of_out) == sorted(strides)


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_sum_exp_comes_beside_it(service: Service, kind: Callable) -> None:
    out = torch.zeros(KINDS[kind], dtype=torch.float16)
    for _ in range(2):
        found, lse = kind(out=out, return_lse=True)
        assert found is out
        assert lse.dtype is torch.float32


@FALLS_BACK
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_computes_is_copied_there(service: Service, kind: Callable, apart: bool) -> None:
    expected = kind(scale=-0.5)
    *outer, dim = KINDS[kind]
    out = (
        torch.full((*outer, 2 * dim), 7.0, dtype=torch.float16)[..., ::2] if apart else torch.empty(KINDS[kind]).half()
    )
    assert kind(scale=-0.5, out=out) is out
    assert torch.equal(out, expected)
    assert service.launches == []


@FALLS_BACK
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kernel_cannot_write_has_its_reason(service: Service, kind: Callable) -> None:
    shape = torch.Size(KINDS[kind])
    misaligned = torch.zeros(1 + shape.numel(), dtype=torch.float16)[1:].view(shape)
    scattered = torch.zeros(*shape[:-1], 2 * shape[-1], dtype=torch.float16)[..., ::2]
    for out in (misaligned, scattered):
        with attune.replace_sdpa() as replaced:
            kind(out=out)
        assert (replaced.stats.launched, replaced.stats.fallbacks) == (0, {"layout": 1})
        assert out.any()
    assert torch.equal(misaligned, scattered)


@pytest.mark.parametrize("dim", [64, 59])
@pytest.mark.parametrize("is_causal", [False, True])
def test_values(service: Service, monkeypatch: pytest.MonkeyPatch, dim: int, is_causal: bool) -> None:
    have_kernels_compute(service, monkeypatch)
    q, k, v = (tensor(2, heads, 8, dim, dtype=torch.float16, seed=heads) for heads in (4, 2, 2))
    out = torch.zeros(2, 4, 8, dim, dtype=torch.float16)
    for _ in range(2):
        assert attune.attention(q, k, v, is_causal=is_causal, enable_gqa=True, out=out) is out
        expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=is_causal, enable_gqa=True)
        torch.testing.assert_close(out.float(), expected, rtol=2e-3, atol=2e-3)
        out.zero_()
    assert len(service.launches) == 2


@FALLS_BACK
@pytest.mark.parametrize("given", [{"attn_mask": torch.ones(8, 8).tril().bool()}, {"enable_gqa": True, "scale": -0.5}])
def test_sdpa_computes_what_it_computes_without(service: Service, given: dict) -> None:
    out = torch.zeros(2, 4, 8, 64, dtype=torch.float16)
    plain(**given, out=out)
    q = half(2, 4, 8, 64)
    assert torch.equal(out, F.scaled_dot_product_attention(q, q, q, **given))


@FALLS_BACK
def test_gradients_go_through_it(service: Service) -> None:
    q, out = half(1, 2, 8, 64).requires_grad_(), torch.zeros(1, 2, 8, 64, dtype=torch.float16)
    attune.attention(q, q, q, out=out).float().sum().backward()
    assert q.grad is not None
    assert service.launches == []


def test_tensors_without_heads(service: Service) -> None:
    q, out = half(2, 8, 64), torch.zeros(2, 8, 64, dtype=torch.float16)
    for _ in range(2):
        assert attune.attention(q, q, q, out=out).data_ptr() == out.data_ptr()
    assert [launched[3] for launched in service.launches] == [out.data_ptr()] * 2


def test_compiled(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()

    def write(q: Any, rows: Any, of_rows: Any, out: Any, out_of_rows: Any) -> Any:
        attune.attention(q, q, q, out=out)
        return attune.attention_varlen(rows, rows, rows, of_rows, of_rows, 7, 7, out=out_of_rows)

    have_kernels_compute(service, monkeypatch)
    q, rows, of_rows = half(1, 2, 8, 64), half(10, 4, 64), bounds([3, 7])
    outs = torch.zeros_like(q), torch.zeros_like(rows)
    with torch.no_grad():
        torch.compile(write, fullgraph=True, backend="aot_eager")(q, rows, of_rows, *outs)
        assert torch.equal(outs[0], attune.attention(q, q, q))
        assert torch.equal(outs[1], attune.attention_varlen(rows, rows, rows, of_rows, of_rows, 7, 7))
    assert outs[0].any()
    assert outs[1].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("out", "given"),
    [
        (torch.zeros(3, dtype=torch.float16), r"shape \(3,\) and dtype torch.float16, on cpu"),
        (None, r"shape .* and dtype torch.float32, on cpu"),
        (torch.zeros(2, dtype=torch.float16, device="meta"), r"shape \(2,\) and dtype torch.float16, on meta"),
    ],
)
def test_what_cannot_be_written_is_named(service: Service, kind: Callable, out: Any, given: str) -> None:
    wrong = torch.zeros(KINDS[kind]) if out is None else out
    shape = ", ".join(map(str, KINDS[kind]))
    with pytest.raises(InvalidArgument, match=rf"out has {given}; it must have \({shape}\) and torch.float16, on cpu"):
        kind(out=wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_tensor_is_named(service: Service, kind: Callable) -> None:
    with pytest.raises(InvalidArgument, match="out is of type list; it must be a tensor or None"):
        kind(out=[])


def test_a_kernel_that_fails_leaves_it_to_torch(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kernel: FakeKernel, *addresses: int) -> None:
        raise attune.CudaError("no memory")

    monkeypatch.setattr(FakeKernel, "launch", refuse)
    out = torch.zeros(2, 4, 8, 64, dtype=torch.float16)
    with attune.replace_sdpa() as replaced, pytest.warns(attune.AttuneWarning):
        plain(out=out)
    assert replaced.stats.fallbacks == {"not_launched": 1}
    assert out.any()
