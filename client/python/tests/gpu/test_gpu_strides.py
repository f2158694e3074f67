"""Tensors with strides of their own: slices, packed projections, queries in one layout and keys in the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import attune  # noqa: E402
from attune import Answer, Client, Problem  # noqa: E402


def spread(x: Any, gap: int) -> Any:
    """`x` with `gap` elements between its rows, which are NaN."""
    batch, heads, length, dim = x.shape
    memory = torch.full((batch, heads, length, dim + gap), float("nan"), dtype=x.dtype, device=x.device)
    memory[..., :dim] = x
    return memory[..., :dim]


@pytest.mark.parametrize(
    "text", ["b1.h1.q128.d64.f16", "b2.h4.q200.kv328.d64.bf16.causal-br.lse", "b2.h4.q256.d64.f16.bshd"]
)
def test_a_kernel_reads_and_writes_where_the_tensors_are(
    answer: Callable[[str], Answer], tensors: Callable, text: str
) -> None:
    kernel = attune.load(answer(text))
    q, k, v = tensors(text)
    expected = kernel(q, k, v)
    out = spread(torch.zeros_like(q), 24)
    found = kernel(spread(q, 8), spread(k, 16), v.transpose(1, 2).contiguous().transpose(1, 2), out)
    if Problem.parse(text).lse:
        (expected, lse), (_, found_lse) = expected, found
        assert torch.equal(found_lse, lse)
    assert torch.equal(out, expected)
    assert out.untyped_storage().nbytes() > out.nbytes
    memory = out.as_strided((out.untyped_storage().nbytes() // out.element_size(),), (1,))
    assert int((~memory.isnan()).sum()) == out.numel()


def test_views_of_a_packed_projection_are_launched(service: Client, check: Callable[..., None]) -> None:
    packed = torch.randn(2, 256, 3, 4, 64, device="cuda").half()
    q, k, v = (packed[:, :, i].transpose(1, 2) for i in range(3))
    for problem in ("b2.h4.q256.d64.f16", "b2.h4.q256.d64.f16.bshd"):
        assert attune.warm([problem], timeout=60)
    with attune.replace_sdpa() as replaced:
        out = attune.attention(q, k, v)
    assert replaced.stats.launched == 1
    check("b2.h4.q256.d64.f16", q, k, v, out)


def test_the_other_layout_is_answered_from_the_same_code(client: Client, answer: Callable[[str], Answer]) -> None:
    other = client.best("b2.h4.q256.d64.f16", artifact=True)
    assert other.artifact_sha256 == answer("b2.h4.q256.d64.f16.bshd").artifact_sha256
