"""attune.flash_attn, sequences and caches: what no kernel computes, rotary embeddings, caches that begin late."""

from __future__ import annotations

import cmath
from typing import Any

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from plain_attention import agree, reference  # noqa: E402
from tensors import bounds, half, ints, largest_memory, tensor  # noqa: E402

from attune.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache  # noqa: E402
from attune.torch import contiguous_cache, replace_sdpa, unfused  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
SLOPES = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.3, 0.2]])
# Options that no kernel has.
ODD = [
    {"window_size": (2, 1)},
    {"window_size": (1, -1)},
    {"window_size": torch.tensor([1, 2])},
    {"alibi_slopes": SLOPES},
    {"alibi_slopes": SLOPES[0], "causal": True, "softcap": 3.0},
    {"alibi_slopes": SLOPES, "window_size": (3, 0), "softmax_scale": 0.3},
]


def of_sequence(options: dict, b: int) -> dict:
    slopes = options.get("alibi_slopes")
    return {**options, "alibi_slopes": slopes[b] if slopes is not None and slopes.dim() == 2 else slopes}


@FALLS_BACK
@pytest.mark.parametrize("options", ODD)
@pytest.mark.parametrize("paged", [False, True])
def test_varlen(options: dict, paged: bool) -> None:
    of_q, of_k = [3, 5], [6, 4]
    q, k, v = tensor(8, 4, 8), tensor(10, 2, 8, seed=2), tensor(10, 2, 8, seed=3)
    keys = [(k[:6], v[:6]), (k[6:], v[6:])]
    more: dict[str, Any] = {}
    if paged:
        k, v = tensor(5, 4, 2, 8, seed=2), tensor(5, 4, 2, 8, seed=3)
        table = ints([3, 1], [4, 0])
        keys = [tuple(x[table[b].long()].flatten(0, 1)[: of_k[b]] for x in (k, v)) for b in range(2)]
        more["block_table"] = table
    given = (q, k, v, bounds(of_q), bounds(of_k), 5, 6)
    out, lse, _ = flash_attn_varlen_func(*given, return_attn_probs=True, **options, **more)
    parts = enumerate(zip(q.split(of_q), keys, strict=True))
    expected = [reference(rows, *kv, **of_sequence(options, b)) for b, (rows, kv) in parts]
    agree(out, torch.cat([one for one, _ in expected]))
    agree(lse, torch.cat([one for _, one in expected], 1))


@FALLS_BACK
@pytest.mark.parametrize("options", [{"window_size": (20, 9)}, {"alibi_slopes": SLOPES}, {"alibi_slopes": SLOPES[0]}])
@pytest.mark.parametrize("packed", [False, True])
def test_masks_are_made_by_rows(monkeypatch: pytest.MonkeyPatch, options: dict, packed: bool) -> None:
    q, k, cu = tensor(2, 60, 4, 8), tensor(2, 64, 2, 8, seed=2), (bounds([60, 60]), bounds([64, 64]))

    def call() -> Any:
        if not packed:
            return flash_attn_func(q, k, k, **options)
        return flash_attn_varlen_func(q.flatten(0, 1), k.flatten(0, 1), k.flatten(0, 1), *cu, 60, 64, **options)

    monkeypatch.setattr(unfused, "_MOST_LOGITS", 512)
    found = call().view_as(q)
    for b in range(2):
        agree(found[b], reference(q[b], k[b], k[b], **of_sequence(options, b))[0])
    assert largest_memory(call) <= q.nbytes  # distances of all keys to all rows would be twice that


@FALLS_BACK
def test_varlen_dropout_keeps_the_mean_and_drops_weights() -> None:
    q, ones = torch.zeros(256, 2, 8), torch.ones(256, 2, 8)
    torch.manual_seed(1)
    out = flash_attn_varlen_func(q, q, ones, ints(0, 256), ints(0, 256), 256, 256, dropout_p=0.5)
    assert out.std() > 0.01  # without dropout every weight is 1/256, and every result 1
    assert abs(out.mean() - 1) < 0.05


@FALLS_BACK
@pytest.mark.parametrize("options", ODD)
def test_a_cache(options: dict) -> None:
    q, k, v = tensor(2, 3, 4, 8), tensor(2, 9, 2, 8, seed=2), tensor(2, 9, 2, 8, seed=3)
    out, lse = flash_attn_with_kvcache(q, k, v, cache_seqlens=ints(8, 5), return_softmax_lse=True, **options)
    for b, used in enumerate((8, 5)):
        expected, expected_lse = reference(q[b], k[b, :used], v[b, :used], **of_sequence(options, b))
        agree(out[b], expected)
        agree(lse[b], expected_lse)


@FALLS_BACK
@pytest.mark.parametrize(("appends", "turns"), [(False, False), (True, False), (True, True)])
def test_a_cache_may_begin_late(appends: bool, turns: bool) -> None:
    q, new = tensor(2, 2, 4, 8), tensor(2, 2, 2, 8, seed=4)
    k, v = tensor(3, 32, 2, 8, seed=2), tensor(3, 32, 2, 8, seed=3)
    begin, end, row = (3, 0), (7, 4), (2, 0)
    given = {"cache_seqlens": ints(*end), "cache_batch_idx": ints(*row), "cache_leftpad": ints(*begin), "causal": True}
    keys = [(k[row[b], begin[b] : end[b]].clone(), v[row[b], begin[b] : end[b]].clone()) for b in range(2)]
    angles = tensor(32, 3, seed=6) if turns else torch.zeros(32, 3)
    turned, queries = ([rotated(x[b], angles, end[b], 1, True) for b in range(2)] for x in (new, q))
    if appends:
        given |= {"k": new, "v": -new}
        keys = [(torch.cat([keys[b][0], turned[b]]), torch.cat([keys[b][1], -new[b]])) for b in range(2)]
    if turns:
        given |= {"rotary_cos": angles.cos(), "rotary_sin": angles.sin()}
    out = flash_attn_with_kvcache(q, k, v, **given)
    for b in range(2):
        agree(out[b], reference(queries[b], *keys[b], True)[0])
    if appends:
        agree(k[2, 7:9], turned[0])
        agree(k[0, 4:6], turned[1])
        assert torch.equal(v[0, 4:6], -new[1])


def rotated(rows: Any, angles: Any, first: int, step: int, interleaved: bool) -> Any:
    """rows [length, heads, headdim], row i by the angles of first + i * step, pair by pair as complex numbers."""
    result, pairs = rows.clone(), angles.shape[1]
    for i, head, pair in [(i, h, p) for i in range(rows.shape[0]) for h in range(rows.shape[1]) for p in range(pairs)]:
        x, y = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + pairs)
        turn = cmath.exp(1j * angles[first + i * step, pair].item())
        turned = complex(rows[i, head, x].item(), rows[i, head, y].item()) * turn
        result[i, head, x], result[i, head, y] = turned.real, turned.imag
    return result


@FALLS_BACK
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("pairs", [2, 4])
@pytest.mark.parametrize(
    ("options", "by_row"),
    [({}, False), ({"causal": True}, True), ({"window_size": (3, 5)}, True), ({"window_size": (40, 32)}, False)],
)
def test_rotary_embeddings(interleaved: bool, pairs: int, options: dict, by_row: bool) -> None:
    q, new = tensor(2, 3, 4, 8), tensor(2, 2, 2, 8, seed=4)
    k, v = tensor(2, 32, 2, 8, seed=2), tensor(2, 32, 2, 8, seed=3)
    old, angles, begin = k.clone(), tensor(32, pairs, seed=6), (7, 3)
    angled = {"rotary_cos": angles.cos(), "rotary_sin": angles.sin(), "rotary_interleaved": interleaved}
    out = flash_attn_with_kvcache(q, k, v, new, new, cache_seqlens=ints(*begin), **angled, **options)
    for b, at in enumerate(begin):
        turned = rotated(new[b], angles, at, 1, interleaved)
        agree(k[b, at : at + 2], turned)
        assert torch.equal(v[b, at : at + 2], new[b])
        queries = rotated(q[b], angles, at, int(by_row), interleaved)
        keys = torch.cat([old[b, :at], turned])
        agree(out[b], reference(queries, keys, v[b, : at + 2], **options)[0])


def test_only_the_angles_of_the_rows_are_converted() -> None:
    rows, table = half(1, 1, 2, 8), half(4096, 2)
    at = torch.tensor([[4000]])
    assert largest_memory(lambda: contiguous_cache.rotated(rows, table, table, at, True)) < table.nbytes


@pytest.mark.filterwarnings("error::attune.torch.AttuneWarning")
def test_rotated_and_late_caches_are_launched(service: Service) -> None:
    q, cache, angles = half(2, 1, 4, 64), half(2, 512, 2, 64), half(512, 16)
    new = half(2, 1, 2, 64)
    flash_attn_with_kvcache(q, cache, cache, new, new, angles, angles, cache_seqlens=ints(9, 5), causal=True)
    flash_attn_with_kvcache(q, cache, cache, cache_seqlens=ints(9, 5), cache_leftpad=ints(1, 2))
    assert service.problems == [
        "b2.h4.kvh2.q1.kv512.d64.f16.causal-br.page256",
        "b2.h4.kvh2.q1.kv512.d64.f16.page1",
    ]
    assert len(service.launches) == 2
    assert service.launches[0][1] == cache.data_ptr()


@FALLS_BACK
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"window_size": (1, 1)}, "attn_mask"),
        ({"alibi_slopes": torch.zeros(4)}, "attn_mask"),
        ({"dropout_p": 0.5}, "dropout"),
    ],
)
def test_what_no_kernel_computes_is_counted(service: Service, options: dict, reason: str) -> None:
    q = half(8, 4, 64)
    with replace_sdpa() as replaced:
        flash_attn_varlen_func(q, q, q, ints(0, 8), ints(0, 8), 8, 8, **options)
    assert replaced.stats.fallbacks == {reason: 1}
    with replace_sdpa() as replaced:
        flash_attn_varlen_func(q, q, q, ints(0, 8), ints(0, 8), 8, 8)
    assert replaced.stats.launched == 1
