"""attune.attention_varlen and attention_paged: what is asked of a kernel, and what is computed without one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from definition import attention as defined
from fake_service import Service

from attune.errors import InvalidArgument, NotFound

torch = pytest.importorskip("torch")

from tensors import bounds, half, ints, tensor  # noqa: E402

import attune.torch  # noqa: E402
from attune.torch import AttuneWarning, attention_paged, attention_varlen, replace_sdpa  # noqa: E402
from attune.torch.varlen_calls import rounded_up  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


def test_lengths_are_rounded_up_to_three_significant_bits() -> None:
    assert [rounded_up(n) for n in (0, 1, 7, 8, 9, 15, 17, 41, 48, 1000, 4096, 4097)] == [
        *(1, 1, 7, 8, 10, 16, 20, 48, 48, 1024, 4096, 5120)
    ]
    assert all(n <= rounded_up(n) < 1.25 * n + 1 for n in range(1, 5000))


def varlen(**changes: object) -> tuple[torch.Tensor, torch.Tensor]:
    given = {
        "query": half(10, 4, 64),
        "key": half(17, 2, 64),
        "value": half(17, 2, 64),
        "cu_seqlens_q": bounds([3, 0, 7]),
        "cu_seqlens_k": bounds([9, 8, 0]),
        "max_seqlen_q": 7,
        "max_seqlen_k": 9,
        "enable_gqa": True,
        **changes,
    }
    return attention_varlen(**given)


def paged(**changes: object) -> tuple[torch.Tensor, torch.Tensor]:
    given = {
        "query": half(3, 2, 4, 64),
        "key_pages": half(8, 16, 2, 64),
        "value_pages": half(8, 16, 2, 64),
        "block_table": ints([0, 1], [2, -1], [-1, -1]),
        "seqused_k": ints(17, 16, 0),
        "enable_gqa": True,
        **changes,
    }
    return attention_paged(**given)


PAGES = ("key_pages", "value_pages")
TOKENS = {"query": half(10, 4, 64), "cu_seqlens_q": bounds([3, 0, 7]), "max_seqlen_q": 7}


@pytest.mark.parametrize(
    ("call", "changes", "text"),
    [
        (varlen, {}, "b3.h4.kvh2.q7.kv10.d64.f16.varlen"),
        (varlen, {"is_causal": True}, "b3.h4.kvh2.q7.kv10.d64.f16.causal.varlen"),
        (varlen, {"max_seqlen_q": 9, "causal": "bottom-right"}, "b3.h4.kvh2.q10.d64.f16.causal-br.varlen"),
        (varlen, {"window": 5, "softcap": 2}, "b3.h4.kvh2.q7.kv10.d64.f16.window5.softcap2.varlen"),
        (varlen, {"sinks": torch.zeros(4), "return_lse": True}, "b3.h4.kvh2.q7.kv10.d64.f16.sinks.varlen.lse"),
        (paged, {}, "b3.h4.kvh2.q2.kv32.d64.f16.bshd.page16"),
        (paged, {"query": half(3, 1, 4, 64)}, "b3.h4.kvh2.q1.kv32.d64.f16.page16"),
        (paged, {"causal": "bottom-right", "return_lse": True}, "b3.h4.kvh2.q2.kv32.d64.f16.causal-br.bshd.page16.lse"),
        (paged, TOKENS, "b3.h4.kvh2.q7.kv32.d64.f16.varlen.page16"),
        (
            paged,
            {**TOKENS, "max_seqlen_q": 9, "sinks": torch.zeros(4)},
            "b3.h4.kvh2.q10.kv32.d64.f16.sinks.varlen.page16",
        ),
    ],
)
def test_a_call_becomes_the_problem(service: Service, call: Callable, changes: dict, text: str) -> None:
    call(**changes)
    assert service.problems == [text]


def test_a_varlen_launch_gets_bounds_and_sinks(service: Service) -> None:
    q, k, v, cu_seqlens_q, cu_seqlens_k = half(10, 4, 64), half(17, 2, 64), half(17, 2, 64), ints(0, 10), ints(0, 17)
    sinks = torch.zeros(4)
    given = {
        "query": q,
        "key": k,
        "value": v,
        "cu_seqlens_q": cu_seqlens_q,
        "cu_seqlens_k": cu_seqlens_k,
        "max_seqlen_q": 10,
        "max_seqlen_k": 17,
    }
    out, lse = varlen(**given, sinks=sinks, return_lse=True)
    more = [sinks.data_ptr(), cu_seqlens_q.data_ptr(), cu_seqlens_k.data_ptr(), *4 * (0,)]
    addresses = [x.data_ptr() for x in (q, k, v, out, lse)]
    assert service.launches == [(*addresses, 5, more)]
    assert (out.shape, lse.shape, lse.dtype) == ((10, 4, 64), (4, 10), torch.float32)


@pytest.mark.parametrize("tokens", [False, True])
def test_a_paged_launch_gets_table_and_lengths(service: Service, tokens: bool) -> None:
    k, v, table, lengths = half(8, 16, 2, 64), half(8, 16, 2, 64), ints([0, 1], [2, -1], [-1, -1]), ints(17, 16, 0)
    given = {"key_pages": k, "value_pages": v, "block_table": table, "seqused_k": lengths, "return_lse": True}
    given = {**given, **(TOKENS if tokens else {})}
    out, lse = paged(**given)
    cu_seqlens_q = TOKENS["cu_seqlens_q"].data_ptr() if tokens else 0
    launched = service.launches[0]
    assert launched[1:5] == tuple(x.data_ptr() for x in (k, v, out, lse))
    assert launched[6] == [0, cu_seqlens_q, 0, lengths.data_ptr(), table.data_ptr(), 0, 0]
    assert lse.shape == ((4, 10) if tokens else (3, 4, 2))


def test_other_totals_and_lengths_that_round_alike_ask_nobody(service: Service) -> None:
    varlen(max_seqlen_q=9)
    varlen(max_seqlen_q=10, query=half(9, 4, 64), cu_seqlens_q=bounds([9, 0, 0]))
    varlen(max_seqlen_q=10, key=half(3, 2, 64), value=half(3, 2, 64), cu_seqlens_k=bounds([3, 0, 0]))
    assert (len(service.problems), len(service.launches)) == (1, 3)


def test_tokens_of_a_fused_projection_are_read_in_place(service: Service) -> None:
    query, both = half(20, 4, 64)[::2], half(17, 2, 2, 64)
    key, value = both.unbind(1)
    out = varlen(query=query, key=key, value=value)
    assert service.launches[-1][:3] == (query.data_ptr(), key.data_ptr(), value.data_ptr())
    assert service.placements == [((0, 64, 512), (0, 64, 256), (0, 64, 256), (0, 64, 256))]
    assert out.is_contiguous()


def test_pages_of_any_strides_are_read_in_place(service: Service) -> None:
    key_pages, value_pages = half(8, 2, 16, 2, 64).unbind(1)
    out = paged(key_pages=key_pages, value_pages=value_pages)
    assert service.launches[-1][1:3] == (key_pages.data_ptr(), value_pages.data_ptr())
    assert service.placements[0][1:3] == ((4096, 64, 128),) * 2
    assert out.is_contiguous()


@FALLS_BACK
@pytest.mark.parametrize("call", [varlen, paged])
def test_a_query_that_no_kernel_reads_is_computed_by_torch(service: Service, call: Callable) -> None:
    misaligned = half(10 * 4 * 64 + 1)[1:].view(10, 4, 64)
    apart = half(10, 4, 128)[..., ::2]
    for query in (misaligned, apart):
        with replace_sdpa() as replaced:
            call(query=query if call is varlen else query[:6].unflatten(0, (3, 2)))
        assert replaced.stats.fallbacks == {"layout": 1}
    assert service.launches == []


def test_calls_in_a_block_are_counted(service: Service) -> None:
    with replace_sdpa() as replaced:
        varlen()
        paged()
    assert replaced.stats.launched == 2


def test_numpys_whole_numbers_are_lengths_and_windows(service: Service) -> None:
    numpy = pytest.importorskip("numpy")
    varlen(max_seqlen_q=numpy.int64(7), max_seqlen_k=numpy.int32(9), window=numpy.int64(5))
    varlen(window=5)
    paged(**{**TOKENS, "max_seqlen_q": numpy.int64(7)})
    assert service.problems == [
        "b3.h4.kvh2.q7.kv10.d64.f16.window5.varlen",
        "b3.h4.kvh2.q7.kv32.d64.f16.varlen.page16",
    ]


@FALLS_BACK
def test_what_fell_back_is_counted_by_reason(service: Service) -> None:
    with replace_sdpa() as replaced:
        varlen(scale=-0.5)
        paged(causal="top-left", window=3)
        varlen(query=half(10, 4, 64).requires_grad_())
        paged(sinks=torch.nn.Parameter(torch.zeros(4)))
        varlen(value=half(17, 2, 59))
    assert replaced.stats.fallbacks == {"scale": 1, "window": 1, "grad": 2, "shape": 1}
    assert service.problems == []


OPTIONS = [
    {},
    {"is_causal": True},
    {"causal": "bottom-right"},
    {"window": 3},
    {"causal": "top-left", "window": 3},
    {"softcap": 2.0, "causal": "bottom-right"},
    {"sinks": torch.tensor([0.5, -1.0, 2.0, 0.0])},
    {"sinks": torch.tensor([0.5, -1.0, 2.0, 0.0]), "window": 2, "softcap": 1.5},
]
LENGTHS = [([3, 0, 7, 1], [9, 8, 0, 1]), ([5, 2], [2, 5]), ([0], [0]), ([1, 1, 1], [16, 17, 32])]


def compared(queries: list, keys: list, values: list, outs: list, lses: list, options: dict) -> None:
    options = dict(options)
    if options.pop("is_causal", False):
        options["causal"] = "top-left"
    for q, k, v, out, lse in zip(queries, keys, values, outs, lses, strict=True):
        rows, of_rows = defined(q, k, v, **options)
        torch.testing.assert_close(out, rows, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(lse, of_rows, rtol=1e-4, atol=1e-4)


@FALLS_BACK
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("options", OPTIONS)
def test_varlen_without_a_kernel_is_each_sequences_attention(options: dict, lengths: tuple) -> None:
    of_q, of_kv = lengths
    q, k, v = tensor(sum(of_q), 4, 16), tensor(sum(of_kv), 2, 16, seed=2), tensor(sum(of_kv), 2, 16, seed=3)
    given = (q, k, v, bounds(of_q), bounds(of_kv), max(of_q), max(of_kv))
    out, lse = attention_varlen(*given, enable_gqa=True, return_lse=True, **options)
    parts = (q.split(of_q), k.split(of_kv), v.split(of_kv), out.split(of_q), lse.split(of_q, 1))
    compared(*parts, options)
    assert torch.equal(attention_varlen(*given, enable_gqa=True, **options), out)


@FALLS_BACK
@pytest.mark.parametrize("page_size", [1, 7, 16])
@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_paged_without_a_kernel_is_each_sequences_attention(options: dict, tokens: bool, page_size: int) -> None:
    of_q, of_kv = ([3, 0, 7, 1] if tokens else [2, 2, 2, 2]), [9, 20, 0, 1]
    keys = [tensor(n, 2, 16, seed=n) for n in of_kv]
    values = [tensor(n, 2, 16, seed=n + 50) for n in of_kv]
    key_pages, value_pages, table = in_pages(keys, values, page_size)
    q = tensor(sum(of_q), 4, 16)
    more = {"cu_seqlens_q": bounds(of_q), "max_seqlen_q": 7} if tokens else {}
    out, lse = attention_paged(
        *(q if tokens else q.unflatten(0, (4, 2)), key_pages, value_pages, table, ints(*of_kv)),
        **{"enable_gqa": True, "return_lse": True, **more, **options},
    )
    outs = out.split(of_q) if tokens else list(out)
    compared(q.split(of_q), keys, values, outs, lse.split(of_q, 1) if tokens else list(lse), options)


def in_pages(keys: list, values: list, page_size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pages in reverse order, NaN wherever no key lies; a table with -1 behind each sequence's last page."""
    used = [-(-len(key) // page_size) for key in keys]
    pages = torch.full((2, sum(used) + 1, page_size, *keys[0].shape[1:]), float("nan"))
    table = torch.full((len(keys), max(used) + 1), -1, dtype=torch.int32)
    free = iter(range(sum(used), -1, -1))
    for b, (key, value) in enumerate(zip(keys, values, strict=True)):
        for index in range(used[b]):
            page = table[b, index] = next(free)
            for into, rows in zip(pages, (key, value), strict=True):
                part = rows[index * page_size : (index + 1) * page_size]
                into[page, : len(part)] = part
    return pages[0], pages[1], table


@FALLS_BACK
@pytest.mark.parametrize("pages", [0, 8])
def test_a_table_without_pages_has_no_keys(service: Service, pages: int) -> None:
    given = {"block_table": torch.empty(3, 0, dtype=torch.int32), **dict.fromkeys(PAGES, half(pages, 16, 2, 64))}
    with replace_sdpa() as replaced:
        out, lse = paged(**given, seqused_k=ints(0, 0, 0), return_lse=True)
    assert not out.any() and (lse == -torch.inf).all()
    assert (service.problems, replaced.stats.fallbacks) == ([], {"shape": 1})
    with pytest.raises(InvalidArgument, match=r"seqused_k\[0\] is 1; block_table has room for 0 to 0"):
        paged(**given, seqused_k=ints(1, 0, 0))


@FALLS_BACK
def test_gradients_flow_through_both() -> None:
    q, k = tensor(10, 4, 16).requires_grad_(), tensor(17, 2, 16).requires_grad_()
    varlen(query=q, key=k, value=k).sum().backward()
    assert q.grad.isfinite().all() and k.grad.isfinite().all()
    pages = tensor(8, 16, 2, 16).requires_grad_()
    paged(query=tensor(3, 2, 4, 16), key_pages=pages, value_pages=pages).sum().backward()
    assert pages.grad[:3].abs().sum() > 0


@pytest.mark.parametrize("call", [varlen, paged])
def test_the_warning_is_the_callers(call: Callable) -> None:
    attune.torch.configure()
    with pytest.warns(
        AttuneWarning, match=r"runs unfused attention in torch, which synchronizes with the device \(device\)"
    ) as given:
        call()
    assert given[0].filename == __file__


@FALLS_BACK
@pytest.mark.parametrize(
    ("call", "changes", "message"),
    [
        (varlen, {"cu_seqlens_q": bounds([3, 7]).long()}, "cu_seqlens_q has dtype torch.int64; it must be torch.int32"),
        (varlen, {"cu_seqlens_q": [0, 10]}, "cu_seqlens_q is of type list; it must be a tensor"),
        (varlen, {"cu_seqlens_q": ints([0, 10])}, r"cu_seqlens_q has shape \(1, 2\); it must be \[batch \+ 1\]"),
        (varlen, {"cu_seqlens_k": ints([0, 10])}, r"cu_seqlens_k has shape \(1, 2\); it must be \[batch \+ 1\]"),
        (
            paged,
            {**TOKENS, "cu_seqlens_q": ints([0, 10])},
            r"cu_seqlens_q has shape \(1, 2\); it must be \[batch \+ 1\]",
        ),
        (paged, {"seqused_k": ints([1, 2, 3])}, r"seqused_k has shape \(1, 3\); it must be \[batch\]"),
        (varlen, {"cu_seqlens_k": bounds([9, 8])}, r"cu_seqlens_k has shape \(3,\); it must be \(4,\)"),
        (varlen, {"cu_seqlens_k": ints(*range(8))[::2]}, r"cu_seqlens_k is non-contiguous, with strides \(2,\)"),
        (varlen, {"cu_seqlens_k": bounds([9, 8, 0]).to("meta")}, "cu_seqlens_k is on meta; query is on cpu"),
        (varlen, {"max_seqlen_q": 7.0}, "max_seqlen_q is 7.0; it must be a non-negative integer"),
        (varlen, {"max_seqlen_q": torch.tensor(7)}, r"max_seqlen_q is tensor\(7\); it must be a non-negative"),
        (varlen, {"max_seqlen_q": True}, "max_seqlen_q is True; it must be a non-negative"),
        (varlen, {"max_seqlen_k": -1}, "max_seqlen_k is -1; it must be a non-negative"),
        (varlen, {"query": half(1, 10, 4, 64)}, r"shapes \(1, 10, 4, 64\), .* they must be \[total, heads, head_dim\]"),
        (varlen, {"key": half(17, 2, 32)}, "they must be .* all of one head_dim"),
        (varlen, {"value": half(16, 2, 64)}, "query, key and value have shapes"),
        (varlen, {"key": half(17, 2, 64).float()}, "have dtypes torch.float16, torch.float32, torch.float16"),
        (varlen, {"enable_gqa": False}, "query has 4 heads and key 2; they must agree, or divide with enable_gqa"),
        (varlen, {"sinks": torch.zeros(2)}, r"sinks has shape \(2,\); it must be \(4,\)"),
        (paged, {"seqused_k": ints(1, 2)}, r"seqused_k has shape \(2,\); it must be \(3,\)"),
        (paged, {"seqused_k": ints(1, 2, 3).long()}, "seqused_k has dtype torch.int64"),
        (paged, {"block_table": ints(0, 1, 2)}, r"block_table has shape \(3,\); it must be \[batch, width\]"),
        (paged, {"block_table": ints([0], [1])}, r"block_table has shape \(2, 1\); it must be \(3, 1\)"),
        (
            paged,
            {"block_table": torch.zeros(3, 4, dtype=torch.int32)[:, :2]},
            r"block_table is non-contiguous, with strides \(4, 1\)",
        ),
        (paged, {"block_table": torch.zeros(3, 2)}, "block_table has dtype torch.float32; it must be torch.int32"),
        (paged, dict.fromkeys(PAGES, half(8, 0, 2, 64)), "key_pages has page_size 0; it must be 1 to 65536"),
        (paged, dict.fromkeys(PAGES, half(1, 65537, 2, 64)), "key_pages has page_size 65537; it must be 1 to 65536"),
        (paged, {"max_seqlen_q": 2}, "max_seqlen_q is 2; it needs cu_seqlens_q, which is not given"),
        (paged, {**TOKENS, "max_seqlen_q": None}, "max_seqlen_q is None; it must be a non-negative"),
        (paged, {"query": half(3, 4, 64)}, r"they must be \[batch, seq_q, heads_q, head_dim\], and \[pages"),
        (
            paged,
            {"cu_seqlens_q": bounds([1, 2]), "max_seqlen_q": 2},
            r"must be \[total, heads_q, head_dim\], and",
        ),
    ],
)
@pytest.mark.parametrize("scale", [None, -0.5])  # with a kernel, and without
def test_errors_name_argument_value_and_what_is_allowed(
    service: Service, call: Callable, changes: dict, message: str, scale: float | None
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        call(**changes, scale=scale)


@pytest.mark.parametrize("options", [{}, {"scale": -0.5}, {"causal": "bottom-right"}])
@pytest.mark.parametrize("name", PAGES)
@FALLS_BACK
def test_pages_at_a_crooked_address_are_refused_with_and_without_a_kernel(
    service: Service, name: str, options: dict
) -> None:
    pages = half(8 * 16 * 2 * 64 + 1)[1:].view(8, 16, 2, 64)
    service.refuses_with = NotFound("no answer") if "causal" in options else None
    with pytest.raises(
        InvalidArgument, match=f"{name} is misaligned, at address 0x[0-9a-f]+; it must be a multiple of 16"
    ):
        paged(**{name: pages}, **options)
    assert service.problems == []


def test_an_address_is_looked_at_in_every_call(service: Service) -> None:
    paged()
    with pytest.raises(InvalidArgument, match="it must be a multiple of 16"):
        paged(key_pages=half(8 * 16 * 2 * 64 + 1)[1:].view(8, 16, 2, 64))
    assert len(service.launches) == 1


@FALLS_BACK
@pytest.mark.parametrize(
    ("call", "changes", "message"),
    [
        (varlen, {"cu_seqlens_q": ints(0, 3, 3, 9)}, "cu_seqlens_q goes from 0 to 9; query has the rows 0 to 10"),
        (varlen, {"cu_seqlens_q": ints(1, 3, 3, 10)}, "cu_seqlens_q goes from 1 to 10"),
        (
            varlen,
            {"cu_seqlens_q": ints(0, 5, 3, 10)},
            "cu_seqlens_q gives sequence 1 -2 tokens; max_seqlen_q allows 0 to 7",
        ),
        (varlen, {"max_seqlen_k": 8}, "cu_seqlens_k gives sequence 0 9 tokens; max_seqlen_k allows 0 to 8"),
        (paged, {"seqused_k": ints(33, 0, 0)}, r"seqused_k\[0\] is 33; block_table has room for 0 to 32"),
        (paged, {"seqused_k": ints(0, 17, 0)}, r"block_table\[1\]\[1\] is -1; it must be 0 to 7"),
    ],
)
def test_without_a_kernel_lengths_and_tables_are_checked(call: Callable, changes: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        call(**changes)
