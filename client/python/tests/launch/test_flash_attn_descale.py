"""attune.flash_attn with keys and values of 8 bits, by FlashAttention 3's k_descale and v_descale."""

from __future__ import annotations

from typing import Any

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from plain_attention import reference  # noqa: E402
from tensors import bounds, half, ints, tensor  # noqa: E402

import attune  # noqa: E402
from attune.errors import InvalidArgument  # noqa: E402
from attune.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
E4M3 = torch.float8_e4m3fn
SHAPES = [(2, 2), (2,), ()]


def cache(*shape: int, seed: int, dtype: torch.dtype = E4M3) -> torch.Tensor:
    return tensor(*shape, seed=seed).to(dtype)


def descale(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return tensor(*shape, seed=seed).abs() + 0.5


def wide(rows: torch.Tensor, scale: torch.Tensor, sequence: int) -> torch.Tensor:
    """[length, heads, headdim] of one sequence in fp32."""
    of_heads = scale[sequence] if scale.dim() == 2 else scale
    return rows.float() * of_heads.expand(rows.shape[1])[:, None]


def close(out: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(out.float(), expected, rtol=5e-3, atol=5e-3)


@FALLS_BACK
@pytest.mark.parametrize("dtype", [E4M3, torch.float8_e5m2])
@pytest.mark.parametrize("shape", SHAPES)
def test_dense(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    q, k, v = half(2, 3, 4, 16), cache(2, 5, 2, 16, seed=2, dtype=dtype), cache(2, 5, 2, 16, seed=3, dtype=dtype)
    scales = {"k_descale": descale(shape, 4), "v_descale": descale(shape, 5)}
    out = flash_attn_func(q, k, v, causal=True, **scales)
    for b in range(2):
        close(out[b], reference(q[b].float(), *keys(k[b], v[b], scales, b), causal=True)[0])


def keys(k: torch.Tensor, v: torch.Tensor, scales: dict[str, Any], b: int) -> tuple[torch.Tensor, torch.Tensor]:
    return wide(k, scales["k_descale"], b), wide(v, scales["v_descale"], b)


@FALLS_BACK
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{"causal": True}, {"window_size": (2, 1)}])
def test_varlen(shape: tuple[int, ...], options: dict) -> None:
    of_q, of_k = [3, 5], [6, 4]
    q, k, v = half(8, 4, 16), cache(10, 2, 16, seed=2), cache(10, 2, 16, seed=3)
    scales = {"k_descale": descale(shape, 4), "v_descale": descale(shape, 5)}
    out = flash_attn_varlen_func(q, k, v, bounds(of_q), bounds(of_k), 5, 6, **options, **scales)
    parts = enumerate(zip(q.split(of_q), k.split(of_k), v.split(of_k), strict=True))
    close(out, torch.cat([reference(rows.float(), *keys(*kv, scales, b), **options)[0] for b, (rows, *kv) in parts]))


@FALLS_BACK
@pytest.mark.parametrize("appends", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_cache(shape: tuple[int, ...], appends: bool) -> None:
    q, k, v = half(2, 1, 4, 16), cache(2, 32, 2, 16, seed=2), cache(2, 32, 2, 16, seed=3)
    scales = {"k_descale": descale(shape, 4), "v_descale": descale(shape, 5)}
    new = {"k": cache(2, 1, 2, 16, seed=6), "v": cache(2, 1, 2, 16, seed=7)} if appends else {}
    out = flash_attn_with_kvcache(q, k, v, cache_seqlens=ints(7, 12), causal=True, **new, **scales)
    for b, length in enumerate((7 + appends, 12 + appends)):
        close(out[b], reference(q[b].float(), *keys(k[b, :length], v[b, :length], scales, b), causal=True)[0])
    if appends:
        assert torch.equal(k[1, 12].float(), new["k"][1, 0].float())


def test_a_kernel_gets_them_as_they_are(service: Service) -> None:
    q, k = half(2, 1, 4, 64), cache(2, 32, 2, 64, seed=2)
    scale = torch.ones(1).expand(2, 2)  # as vLLM gives it
    flash_attn_with_kvcache(q, k, k, cache_seqlens=ints(7, 12), k_descale=scale, v_descale=scale)
    assert service.problems == ["b2.h4.kvh2.q1.kv32.d64.f16.kve4m3.page32"]
    assert [*service.launches[0][6]][5:] == [scale.data_ptr()] * 2
    assert service.placements[0][4:] == ((0, 0, 0), (0, 0, 0))


@FALLS_BACK
def test_those_that_are_not_given_are_one() -> None:
    q, k, v = half(2, 3, 4, 16), cache(2, 5, 2, 16, seed=2), cache(2, 5, 2, 16, seed=3)
    scale = descale((2, 2), 4)
    for given in ({}, {"v_descale": scale}):
        out = flash_attn_func(q, k, v, **given)
        scales = {"k_descale": torch.ones(()), "v_descale": torch.ones(()), **given}
        for b in range(2):
            close(out[b], reference(q[b].float(), *keys(k[b], v[b], scales, b))[0])


def test_those_of_sixteen_bits_are_ignored(service: Service) -> None:
    q = half(2, 3, 4, 64)
    given = {"q_descale": 3, "k_descale": torch.full((2, 4), 9.0), "v_descale": "none"}
    flash_attn_func(q, q, q, softcap=2.0, **given)
    flash_attn_varlen_func(q[0], q[0], q[0], bounds([3]), bounds([3]), 3, 3, **given)
    assert not any(".kve" in problem for problem in service.problems)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k_descale": 2.0}, "k_descale is of type float; it must be a tensor"),
        (
            {"v_descale": torch.ones(2, 4)},
            r"v_descale has shape \(2, 4\) and dtype torch.float32, on cpu; it must have \(2, 2\), \(2,\) or \(\)",
        ),
        ({"k_descale": torch.ones(2, 2).half()}, "k_descale has shape .* and dtype torch.float16"),
        ({"q": cache(2, 3, 4, 16, seed=1)}, "q has dtype torch.float8_e4m3fn; it must be of 16 bits"),
    ],
)
def test_what_cannot_be_is_named(given: dict, message: str) -> None:
    kv = cache(2, 5, 2, 16, seed=2)
    with pytest.raises(InvalidArgument, match=f"^flash_attn_func: {message}"):
        flash_attn_func(**{"q": half(2, 3, 4, 16), "k": kv, "v": kv, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": half(2, 1, 2, 16)}, "k or v has dtype torch.float16; the cache's is torch.float8_e4m3fn"),
        (
            {"rotary_cos": torch.ones(32, 4), "rotary_sin": torch.ones(32, 4)},
            "rotary_cos is given and the cache has dtype torch.float8_e4m3fn; rotate k before",
        ),
    ],
)
def test_what_is_appended_is_what_the_cache_holds(given: dict, message: str) -> None:
    kv, new = cache(2, 32, 2, 16, seed=2), cache(2, 1, 2, 16, seed=3)
    before = kv.clone()
    with pytest.raises(InvalidArgument, match=f"^flash_attn_with_kvcache: {message}"):
        flash_attn_with_kvcache(
            half(2, 1, 4, 16), kv, kv, **{"k": new, "v": new, "cache_seqlens": ints(7, 12), **given}
        )
    assert torch.equal(kv.view(torch.uint8), before.view(torch.uint8))


def test_quantized_keys_and_values_go_in_as_they_come(service: Service) -> None:
    q, kv = half(2, 3, 4, 64), half(2, 2, 16, 64)
    key = attune.quantize_kv(kv, scales="batch-head")
    elements = key.elements.transpose(1, 2)
    flash_attn_func(q, elements, elements, k_descale=key.scale, v_descale=key.scale)
    assert service.problems == ["b2.h4.kvh2.q3.kv16.d64.f16.kve4m3"]
