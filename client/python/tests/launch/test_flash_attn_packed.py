"""attune.flash_attn: K and V, or Q, K and V, in one tensor."""

from __future__ import annotations

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from plain_attention import agree, reference  # noqa: E402
from tensors import bounds, half, ints, tensor  # noqa: E402

from attune.flash_attn import (  # noqa: E402
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
OPTIONS = [
    {},
    {"causal": True, "softcap": 2.0, "softmax_scale": 0.3},
    {"window_size": (2, 1), "alibi_slopes": torch.tensor([0.1, 0.2, 0.3, 0.4])},
]


@FALLS_BACK
@pytest.mark.parametrize("options", OPTIONS)
def test_dense(options: dict) -> None:
    qkv, q, kv = tensor(2, 5, 3, 4, 8), tensor(2, 3, 4, 8), tensor(2, 6, 2, 2, 8, seed=2)
    of_qkv, _, none = flash_attn_qkvpacked_func(qkv, return_attn_probs=True, **options)
    of_kv, lse, _ = flash_attn_kvpacked_func(q, kv, return_attn_probs=True, **options)
    assert none is None
    for b in range(2):
        agree(of_qkv[b], reference(*qkv[b].unbind(1), **options)[0])
        expected, expected_lse = reference(q[b], *kv[b].unbind(1), **options)
        agree(of_kv[b], expected)
        agree(lse[b], expected_lse)


@FALLS_BACK
@pytest.mark.parametrize("options", OPTIONS)
def test_varlen(options: dict) -> None:
    of_q, of_k = [3, 0, 5], [6, 2, 5]
    qkv, q, kv = tensor(8, 3, 4, 8), tensor(8, 4, 8), tensor(13, 2, 2, 8, seed=2)
    of_qkv = flash_attn_varlen_qkvpacked_func(qkv, bounds(of_q), 5, **options)
    given = (q, kv, bounds(of_q), bounds(of_k), 5, 6)
    of_kv, lse, none = flash_attn_varlen_kvpacked_func(*given, return_attn_probs=True, **options)
    assert none is None
    agree(of_qkv, torch.cat([reference(*part.unbind(1), **options)[0] for part in qkv.split(of_q)]))
    parts = zip(q.split(of_q), kv.split(of_k), strict=True)
    expected = [reference(rows, *part.unbind(1), **options) for rows, part in parts]
    agree(of_kv, torch.cat([one for one, _ in expected]))
    agree(lse, torch.cat([one for _, one in expected], 1))


@pytest.mark.filterwarnings("error::attune.torch.AttuneWarning")
def test_kernels_are_launched(service: Service) -> None:
    flash_attn_qkvpacked_func(half(2, 8, 3, 4, 64), causal=True)
    flash_attn_kvpacked_func(half(2, 8, 4, 64), half(2, 8, 2, 2, 64), window_size=(4, 0))
    flash_attn_varlen_qkvpacked_func(half(8, 3, 4, 64), ints(0, 3, 8), 5, causal=True)
    flash_attn_varlen_kvpacked_func(half(8, 4, 64), half(8, 2, 2, 64), ints(0, 8), ints(0, 8), 8, 8)
    assert service.problems == [
        "b2.h4.q8.d64.f16.causal",
        "b2.h4.kvh2.q8.d64.f16.window5.bshd",
        "b2.h4.q5.d64.f16.causal-br.varlen",
        "b1.h4.kvh2.q8.d64.f16.varlen",
    ]
    assert len(service.launches) == 4
