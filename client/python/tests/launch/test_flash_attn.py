"""attune.flash_attn: FlashAttention 2's functions, against attention computed with an explicit mask."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from fake_service import Service

from attune.errors import InvalidArgument

torch = pytest.importorskip("torch")

from plain_attention import agree, reference  # noqa: E402
from tensors import bounds, half, ints, tensor  # noqa: E402

from attune import flash_attn  # noqa: E402
from attune.flash_attn import (  # noqa: E402
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_with_kvcache,
)
from attune.torch import replace_sdpa  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


WINDOWS = [(-1, -1), (2, 0), (-1, 0), (0, 0), (2, -1), (-1, 1), (1, 2), (100, 100)]


@FALLS_BACK
@pytest.mark.parametrize("lengths", [(5, 5), (3, 8), (8, 3), (1, 6)])
@pytest.mark.parametrize("window_size", WINDOWS)
@pytest.mark.parametrize("causal", [False, True])
def test_dense(lengths: tuple[int, int], window_size: tuple[int, int], causal: bool) -> None:
    q, k, v = tensor(2, lengths[0], 4, 8), tensor(2, lengths[1], 2, 8, seed=2), tensor(2, lengths[1], 2, 8, seed=3)
    out, lse, probabilities = flash_attn_func(q, k, v, causal=causal, window_size=window_size, return_attn_probs=True)
    assert probabilities is None
    assert out.is_contiguous()
    for b in range(2):
        expected, expected_lse = reference(q[b], k[b], v[b], causal, window_size)
        agree(out[b], expected)
        agree(lse[b], expected_lse)
    agree(flash_attn_func(q, k, v, causal=causal, window_size=window_size), out)


@FALLS_BACK
@pytest.mark.parametrize(
    "options",
    [
        {"softcap": 2.0},
        {"softmax_scale": 0.3},
        {"causal": True, "softcap": 2.0, "softmax_scale": 0.3},
        {"alibi_slopes": torch.tensor([0.1, 0.2, 0.3, 0.4])},
        {"alibi_slopes": torch.tensor([0.1, 0.2, 0.3, 0.4]), "causal": True, "window_size": (2, -1), "softcap": 3.0},
    ],
)
def test_dense_options(options: dict) -> None:
    q, k, v = tensor(2, 4, 4, 8), tensor(2, 7, 2, 8, seed=2), tensor(2, 7, 2, 8, seed=3)
    out = flash_attn_func(q, k, v, **options)
    for b in range(2):
        agree(out[b], reference(q[b], k[b], v[b], **options)[0])


@FALLS_BACK
def test_slopes_may_differ_by_sequence() -> None:
    q, slopes = tensor(2, 4, 4, 8), tensor(2, 4).abs()
    out = flash_attn_func(q, q, q, alibi_slopes=slopes)
    for b in range(2):
        agree(out[b], reference(q[b], q[b], q[b], alibi_slopes=slopes[b])[0])


@FALLS_BACK
@pytest.mark.parametrize("options", [{"causal": True}, {"causal": True, "alibi_slopes": torch.tensor([0.1, 0.2])}])
def test_gradients_are_those_of_the_rows_that_see_a_key(options: dict) -> None:
    # The first two rows see no key.
    q, k = tensor(1, 5, 2, 8).requires_grad_(), tensor(1, 3, 2, 8, seed=2).requires_grad_()
    out = flash_attn_func(q, k, k, **options)
    expected = reference(q[0, 2:], k[0], k[0], **options)[0]
    weights = tensor(3, 2, 8, seed=3)
    found = torch.autograd.grad((out[0, 2:] * weights).sum() + out[0, 0].sum(), (q, k))
    for one, right in zip(found, torch.autograd.grad((expected * weights).sum(), (q, k)), strict=True):
        agree(one, right)


@FALLS_BACK
@pytest.mark.parametrize(
    "options",
    [{}, {"causal": True}, {"causal": True, "window_size": (2, 0)}, {"window_size": (1, 0), "softcap": 2.0}],
)
def test_varlen(options: dict) -> None:
    of_q, of_k = [3, 0, 5], [6, 2, 5]
    q, k, v = tensor(8, 4, 8), tensor(13, 2, 8, seed=2), tensor(13, 2, 8, seed=3)
    out, lse, probabilities = flash_attn_varlen_func(
        q, k, v, bounds(of_q), bounds(of_k), 5, 6, return_attn_probs=True, **options
    )
    assert probabilities is None
    parts = zip(q.split(of_q), k.split(of_k), v.split(of_k), strict=True)
    expected = [reference(*part, **options) for part in parts]
    agree(out, torch.cat([one for one, _ in expected]))
    agree(lse, torch.cat([one for _, one in expected], 1))
    agree(flash_attn_varlen_func(q, k, v, bounds(of_q), bounds(of_k), 5, 6, **options), out)


PAGES = (tensor(6, 4, 2, 8, seed=2), tensor(6, 4, 2, 8, seed=3))
TABLE = ints([5, 0, 1], [2, 4, 3])


def paged_keys(b: int, length: int) -> list[torch.Tensor]:
    return [pages[TABLE[b].long()].flatten(0, 1)[:length] for pages in PAGES]


@FALLS_BACK
def test_varlen_with_pages() -> None:
    of_q, of_k = [3, 2], [9, 5]
    q = tensor(5, 4, 8)
    out = flash_attn_varlen_func(q, *PAGES, bounds(of_q), bounds(of_k), 3, 9, causal=True, block_table=TABLE)
    expected = [reference(part, *paged_keys(b, of_k[b]), True)[0] for b, part in enumerate(q.split(of_q))]
    agree(out, torch.cat(expected))


@FALLS_BACK
@pytest.mark.parametrize("length", [7, 32])
@pytest.mark.parametrize("cache_seqlens", [None, 5, ints(7, 3)])
def test_a_contiguous_cache(length: int, cache_seqlens: object) -> None:
    q, k, v = tensor(2, 2, 4, 8), tensor(3, length, 2, 8, seed=2), tensor(3, length, 2, 8, seed=3)
    out, lse = flash_attn_with_kvcache(q, k, v, cache_seqlens=cache_seqlens, causal=True, return_softmax_lse=True)
    for b in range(2):
        used = {None: length, 5: 5}.get(cache_seqlens) if not isinstance(cache_seqlens, torch.Tensor) else (7, 3)[b]
        expected, expected_lse = reference(q[b], k[b, :used], v[b, :used], True)
        agree(out[b], expected)
        agree(lse[b], expected_lse)


@FALLS_BACK
@pytest.mark.parametrize("length", [5, 32])
@pytest.mark.parametrize("heads_first", [False, True])
def test_a_slice_of_a_longer_cache(length: int, heads_first: bool) -> None:
    q = tensor(3, 1, 4, 8)
    whole = [
        tensor(3, 2, 48, 8, seed=seed).transpose(1, 2) if heads_first else tensor(3, 48, 2, 8, seed=seed)
        for seed in (2, 3)
    ]
    k, v = (cache[:, :length] for cache in whole)
    new = tensor(3, 1, 2, 8, seed=4), tensor(3, 1, 2, 8, seed=5)
    out = flash_attn_with_kvcache(q, k, v, *new, cache_seqlens=length - 2, causal=True)
    for b in range(3):
        used = [torch.cat([cache[b, : length - 2], rows[b]]) for cache, rows in zip((k, v), new, strict=True)]
        agree(out[b], reference(q[b], *used, True)[0])
    assert torch.equal(whole[0][:, length - 2], new[0][:, 0]), "appended in place"


@FALLS_BACK
def test_the_rows_of_a_cache_may_be_chosen() -> None:
    q, k, v = tensor(2, 1, 4, 8), tensor(4, 32, 2, 8, seed=2), tensor(4, 32, 2, 8, seed=3)
    out = flash_attn_with_kvcache(q, k, v, cache_seqlens=ints(9, 4), cache_batch_idx=ints(3, 1))
    for b, (row, used) in enumerate([(3, 9), (1, 4)]):
        agree(out[b], reference(q[b], k[row, :used], v[row, :used])[0])


@FALLS_BACK
def test_a_paged_cache() -> None:
    q = tensor(2, 2, 4, 8)
    options = {"causal": True, "window_size": (3, 0), "softcap": 2.0}
    out = flash_attn_with_kvcache(q, *PAGES, cache_seqlens=ints(11, 6), block_table=TABLE, **options)
    for b, used in enumerate((11, 6)):
        agree(out[b], reference(q[b], *paged_keys(b, used), **options)[0])


@FALLS_BACK
@pytest.mark.parametrize("kind", ["contiguous", "chosen", "paged"])
def test_new_keys_are_written_behind_the_old_and_seen(kind: str) -> None:
    q, new_k, new_v = tensor(2, 2, 4, 8), tensor(2, 2, 2, 8, seed=4), tensor(2, 2, 2, 8, seed=5)
    before, lengths = (7, 3), ints(7, 3)
    more: dict[str, Any] = {}
    if kind == "paged":
        k_cache, v_cache = (pages.clone() for pages in PAGES)
        old = [paged_keys(b, before[b]) for b in range(2)]
        more["block_table"] = TABLE
    else:
        k_cache, v_cache = tensor(3, 32, 2, 8, seed=2), tensor(3, 32, 2, 8, seed=3)
        rows = (2, 0) if kind == "chosen" else (0, 1)
        old = [[x[row, : before[b]].clone() for x in (k_cache, v_cache)] for b, row in enumerate(rows)]
        if kind == "chosen":
            more["cache_batch_idx"] = ints(*rows)
    given = (q, k_cache, v_cache, new_k, new_v)
    out = flash_attn_with_kvcache(*given, cache_seqlens=lengths, causal=True, **more)
    assert lengths.tolist() == list(before)
    for b in range(2):
        keys, values = torch.cat([old[b][0], new_k[b]]), torch.cat([old[b][1], new_v[b]])
        agree(out[b], reference(q[b], keys, values, True)[0])
    if kind == "contiguous":
        assert torch.equal(k_cache[1, 3:5], new_k[1])
        assert torch.equal(v_cache[0, 7:9], new_v[0])


@pytest.mark.filterwarnings("error::attune.torch.AttuneWarning")
def test_kernels_are_launched_in_place(service: Service) -> None:
    q, kv = half(2, 3, 4, 64), half(2, 8, 2, 64)
    with replace_sdpa() as replaced:
        out = flash_attn_func(q, kv, kv, causal=True, window_size=(4, -1))
    assert service.launches[0][:4] == (q.data_ptr(), kv.data_ptr(), kv.data_ptr(), out.data_ptr())
    flash_attn_func(q, kv, kv)
    flash_attn_func(q, q, q, causal=True, window_size=(500, 0))
    flash_attn_varlen_func(q[0], kv[0], kv[0], ints(0, 3), ints(0, 8), 3, 8, causal=True)
    pages = half(6, 16, 2, 64)
    cache = half(2, 512, 2, 64)
    flash_attn_with_kvcache(q, pages, pages, cache_seqlens=ints(9, 5), block_table=TABLE, causal=True)
    flash_attn_with_kvcache(q[:, :1], cache, cache, cache_seqlens=ints(9, 5))
    assert service.problems == [
        "b2.h4.kvh2.q3.kv8.d64.f16.window5.bshd",
        "b2.h4.kvh2.q3.kv8.d64.f16.bshd",
        "b2.h4.q3.d64.f16.causal.bshd",
        "b1.h4.kvh2.q3.kv8.d64.f16.causal-br.varlen",
        "b2.h4.kvh2.q3.kv48.d64.f16.causal-br.bshd.page16",
        "b2.h4.kvh2.q1.kv512.d64.f16.page256",
    ]
    assert replaced.stats.launched == 1
    assert len(service.launches) == 6


@FALLS_BACK
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"alibi_slopes": torch.zeros(4)}, "attn_mask"),
        ({"window_size": (1, 1)}, "attn_mask"),
        ({"dropout_p": 0.5}, "dropout"),
        ({"softmax_scale": -0.5}, "scale"),
    ],
)
def test_what_no_kernel_computes_is_counted(service: Service, options: dict, reason: str) -> None:
    q = half(1, 4, 4, 64)
    with replace_sdpa() as replaced:
        flash_attn_func(q, q, q, **options)
    assert replaced.stats.fallbacks == {reason: 1}
    assert service.problems == []


DENSE = dict(zip("qkv", [tensor(2, 4, 4, 8)] * 3, strict=True))
VARLEN = {
    **dict(zip("qkv", [tensor(8, 4, 8)] * 3, strict=True)),
    "cu_seqlens_q": ints(0, 8),
    "cu_seqlens_k": ints(0, 8),
    "max_seqlen_q": 8,
    "max_seqlen_k": 8,
}
ANGLES = torch.zeros(32, 2)
CACHE = {"q": tensor(2, 1, 4, 8), "k_cache": tensor(2, 32, 4, 8), "v_cache": tensor(2, 32, 4, 8), "cache_seqlens": 4}


@pytest.mark.parametrize(
    ("call", "given", "changes", "message"),
    [
        (
            flash_attn_func,
            DENSE,
            {"q": tensor(4, 4, 8)},
            r"flash_attn_func: q has shape \(4, 4, 8\); it must be \[batch",
        ),
        (flash_attn_func, DENSE, {"k": None}, "flash_attn_func: k is of type NoneType; it must be a tensor"),
        (flash_attn_func, DENSE, {"window_size": 5}, r"window_size is 5; it must be \(left, right\)"),
        (flash_attn_func, DENSE, {"window_size": (-2, 0)}, r"window_size is \(-2, 0\); it must be"),
        (flash_attn_func, DENSE, {"k": tensor(2, 4, 3, 8), "v": tensor(2, 4, 3, 8)}, "query has 4 heads and key 3"),
        (flash_attn_func, DENSE, {"alibi_slopes": torch.zeros(3)}, r"alibi_slopes has shape \(3,\); it must be \(4,\)"),
        (flash_attn_func, DENSE, {"softcap": -1.0}, "softcap is -1.0"),
        (flash_attn_varlen_func, VARLEN, {"cu_seqlens_k": ints(0, 4, 8)}, "cu_seqlens_k has shape"),
        (flash_attn_varlen_func, VARLEN, {"alibi_slopes": torch.zeros(3)}, r"alibi_slopes has shape \(3,\)"),
        (
            flash_attn_qkvpacked_func,
            {"qkv": tensor(2, 4, 2, 4, 8)},
            {},
            r"qkv has shape .*; it must be \[batch, seqlen, 3",
        ),
        (flash_attn_kvpacked_func, {"q": DENSE["q"], "kv": DENSE["k"]}, {}, r"kv has shape .* \[batch, seqlen_k, 2"),
        (flash_attn_with_kvcache, CACHE, {"alibi_slopes": torch.zeros(1, 4)}, r"alibi_slopes has shape \(1, 4\)"),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"rotary_cos": ANGLES},
            "rotary_sin is None; rotary_cos and rotary_sin must both",
        ),
        (flash_attn_with_kvcache, CACHE, {"rotary_cos": ANGLES, "rotary_sin": ANGLES}, "k is None; rotary_cos and"),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"k": tensor(2, 1, 4, 8), "v": tensor(2, 1, 4, 8), "rotary_cos": ANGLES, "rotary_sin": ANGLES[:31]},
            r"have shapes \(32, 2\) and \(31, 2\); they must have one \[positions, pairs\], at least 32",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"k": tensor(2, 1, 1, 8), "v": tensor(2, 1, 4, 8)},
            r"k has shape \(2, 1, 1, 8\); it must be \[batch, seqlen_new, nheads_k, headdim\], \(2, 1, 4, 8\) here",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"k": tensor(1, 1, 4, 8), "v": tensor(1, 1, 4, 8)},
            r"k has shape \(1, 1, 4, 8\); it must be .* \(2, 1, 4, 8\) here",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"k": tensor(2, 3, 4, 8), "v": tensor(2, 1, 4, 8)},
            r"v has shape \(2, 1, 4, 8\); it must be .* \(2, 3, 4, 8\) here",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"cache_leftpad": ints(1)},
            r"cache_leftpad has shape \(1,\) and dtype torch.int32, on cpu; it must have \(2,\)",
        ),
        (flash_attn_with_kvcache, CACHE, {"cache_leftpad": torch.ones(2)}, "cache_leftpad .* dtype torch.float32"),
        (flash_attn_with_kvcache, CACHE, {"cache_leftpad": ints(0, 1).to("meta")}, "cache_leftpad .* on meta; it must"),
        (flash_attn_with_kvcache, CACHE, {"cache_batch_idx": ints(1)}, r"cache_batch_idx has shape \(1,\)"),
        (flash_attn_with_kvcache, CACHE, {"cache_batch_idx": torch.ones(2)}, "cache_batch_idx .* torch.float32"),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"cache_seqlens": ints(4), "cache_leftpad": ints(0, 1)},
            r"cache_seqlens has shape \(1,\)",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"cache_leftpad": ints(0, 1), "block_table": ints([0], [1])},
            "cache_leftpad and block_table are both given",
        ),
        (flash_attn_with_kvcache, CACHE, {"k": tensor(2, 1, 4, 8)}, "v is None; k and v must both be given"),
        (flash_attn_with_kvcache, CACHE, {"cache_seqlens": 33}, "cache_seqlens is 33; it must be int32"),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"cache_seqlens": None, "k": tensor(2, 1, 4, 8), "v": tensor(2, 1, 4, 8)},
            "cache_seqlens is None; k and v need it",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"cache_batch_idx": ints(0, 1), "block_table": ints([0], [1])},
            "cache_batch_idx and block_table are both given",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"k_cache": tensor(2, 64, 4, 8)[:, :32]},
            r"k_cache has strides \(2048, .*\) and v_cache \(1024, .*\); their sequences must be as many rows apart",
        ),
        (
            flash_attn_with_kvcache,
            CACHE,
            {"q": tensor(3, 1, 4, 8)},
            "batch is 3; it must be at most batch_cache, 2",
        ),
        (flash_attn_with_kvcache, CACHE, {"cache_seqlens": torch.tensor([1, 2])}, "cache_seqlens .* dtype torch.int64"),
    ],
)
@FALLS_BACK
def test_wrong_arguments_are_named(call: Any, given: dict, changes: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        call(**{**given, **changes})


@FALLS_BACK
@pytest.mark.parametrize(
    "changes",
    [
        {"cache_seqlens": torch.tensor([1.0, 2.0])},
        {"softcap": -1.0},
        {"q": tensor(2, 1, 3, 8)},
        {"alibi_slopes": torch.zeros(4), "softcap": -1.0},
        {"rotary_cos": ANGLES, "rotary_sin": ANGLES, "q": tensor(2, 1, 4, 8).double()},
    ],
)
def test_a_refused_call_leaves_the_cache_as_it_was(changes: dict) -> None:
    new, cache = torch.ones(2, 1, 4, 8), {name: torch.zeros(2, 32, 4, 8) for name in ("k_cache", "v_cache")}
    with pytest.raises(InvalidArgument):
        flash_attn_with_kvcache(**{**CACHE, **cache, "k": new, "v": new, **changes})
    assert not cache["k_cache"].any()
    assert not cache["v_cache"].any()


@pytest.mark.parametrize("aligned", [False, True])
@FALLS_BACK
def test_a_misaligned_cache_is_left_as_it_was(aligned: bool) -> None:
    memory, new = torch.zeros(2 * 32 * 4 * 8 + 4), torch.ones(2, 1, 4, 8)
    cache = memory[0 if aligned else 1 :][: 2 * 32 * 4 * 8].view(2, 32, 4, 8)
    given = {**CACHE, "k_cache": cache, "v_cache": cache, "k": new, "v": new}
    if aligned:
        flash_attn_with_kvcache(**given)
    else:
        with pytest.raises(InvalidArgument, match="key_pages is misaligned"):
            flash_attn_with_kvcache(**given)
    assert bool(cache.any()) == aligned


def test_the_arguments_are_flash_attentions() -> None:
    common = ["softmax_scale", "causal", "window_size", "softcap", "alibi_slopes"]
    more = ["deterministic", "return_attn_probs"]
    descales = ["q_descale", "k_descale", "v_descale"]
    bounds = ["cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k"]
    cache = ["rotary_cos", "rotary_sin", "cache_seqlens", "cache_batch_idx", "cache_leftpad", "block_table"]
    assert {name: list(inspect.signature(getattr(flash_attn, name)).parameters) for name in flash_attn.__all__} == {
        "flash_attn_func": ["q", "k", "v", "dropout_p", *common, *more, *descales],
        "flash_attn_kvpacked_func": ["q", "kv", "dropout_p", *common, *more],
        "flash_attn_qkvpacked_func": ["qkv", "dropout_p", *common, *more],
        "flash_attn_varlen_kvpacked_func": ["q", "kv", *bounds, "dropout_p", *common, *more],
        "flash_attn_varlen_qkvpacked_func": ["qkv", "cu_seqlens", "max_seqlen", "dropout_p", *common, *more],
        "flash_attn_varlen_func": ["q", "k", "v", *bounds, "dropout_p", *common, *more, "block_table", *descales],
        "flash_attn_with_kvcache": [
            *("q", "k_cache", "v_cache", "k", "v", *cache, *common[:4]),
            *("rotary_interleaved", "alibi_slopes", "num_splits", "return_softmax_lse", *descales),
        ],
    }
