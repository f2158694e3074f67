"""attune.attention_varlen and attention_paged against fp32."""

from __future__ import annotations

import dataclasses
import random as shuffles
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu_problems import PAGED_PROBLEMS, VARLEN_PROBLEMS, tune_some

import attune
from attune import Problem

torch = pytest.importorskip("torch")

from sequences import MORE_QUERIES, bounds, check, falling, in_pages, options_of, random  # noqa: E402

from attune.torch import replace_sdpa  # noqa: E402
from attune.torch.varlen_calls import rounded_up  # noqa: E402


@pytest.fixture(autouse=True)
def no_grad(service_of_more: attune.Client) -> Iterator[None]:
    with torch.no_grad():
        yield


def launched(call: Callable, *arguments: Any, **options: Any) -> Any:
    """Calls it, and asserts that a kernel computed."""
    with replace_sdpa() as replaced:
        result = call(*arguments, **options, enable_gqa=True, return_lse=True)
    assert (replaced.stats.launched, dict(replaced.stats.fallbacks)) == (1, {})
    return result


def tokens(problem: Problem, heads: int, lengths: list[int], seed: int) -> Any:
    return random(sum(lengths), heads, problem.head_dim, dtype=problem.dtype, seed=seed)


class VarlenCase:
    def __init__(self, text: str, of_q: list[int], of_kv: list[int], seed: int = 0) -> None:
        self.problem = Problem.parse(text)
        self.of_q, self.of_kv = of_q, of_kv
        self.options = options_of(self.problem)
        self.tensors = [
            tokens(self.problem, 4, of_q, seed),
            tokens(self.problem, 2, of_kv, seed + 1),
            tokens(self.problem, 2, of_kv, seed + 2),
        ]
        self.bounds = [bounds(of_q), bounds(of_kv)]

    def arguments(self, max_seqlen_q: int = 256, max_seqlen_k: int = 256) -> tuple:
        return (*self.tensors, *self.bounds, max_seqlen_q, max_seqlen_k)

    def check(self, out: Any, lse: Any) -> None:
        q, k, v = self.tensors
        of_q, of_kv = self.of_q, self.of_kv
        parts = (q.split(of_q), k.split(of_kv), v.split(of_kv), out.split(of_q), lse.split(of_q, 1))
        check(*parts, self.options)


LENGTHS = [
    (falling(256, 5), falling(256, 5)),
    (falling(256, 5), falling(256, 5)[::-1]),
    MORE_QUERIES,
    ([1, 239, 113, 256, 0], [1, 1, 203, 3, 0]),
    ([1] * 5, [256, 17, 1, 0, 64]),
    ([256] * 5, [256] * 5),
]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("text", VARLEN_PROBLEMS)
def test_varlen_agrees_with_fp32(text: str, lengths: tuple[list[int], list[int]]) -> None:
    case = VarlenCase(text, *lengths)
    for _ in range(2):
        case.check(*launched(attune.attention_varlen, *case.arguments(), **case.options))


@pytest.mark.parametrize("lengths", [([799], [3]), ([1023], [1024]), ([113, 1], [203, 700])])
@pytest.mark.parametrize("text", VARLEN_PROBLEMS)
def test_varlen_of_other_longest_lengths_and_batches(
    service_of_more: attune.Client, text: str, lengths: tuple[list[int], list[int]]
) -> None:
    case = VarlenCase(text, *lengths)
    seq_q, seq_kv = (rounded_up(max(of)) for of in lengths)
    problem = dataclasses.replace(case.problem, batch=len(lengths[0]), seq_q=seq_q, seq_kv=seq_kv)
    tune_some(service_of_more, problem, max_trials=2)
    case.check(*launched(attune.attention_varlen, *case.arguments(*map(max, lengths)), **case.options))


def test_varlen_without_any_query_or_key() -> None:
    for lengths in (([0] * 5, [9] * 5), ([9] * 5, [0] * 5), ([0] * 5, [0] * 5)):
        case = VarlenCase(VARLEN_PROBLEMS[1], *lengths)
        case.check(*launched(attune.attention_varlen, *case.arguments(), **case.options))


def test_varlen_reads_what_is_not_contiguous_where_it_is() -> None:
    case = VarlenCase(VARLEN_PROBLEMS[0], *MORE_QUERIES)
    q, k, v = case.tensors
    apart = torch.stack([k, v], 1)
    given = (q, apart[:, 0], apart[:, 1], *case.bounds, 256, 256)
    case.check(*launched(attune.attention_varlen, *given, **case.options))


def test_varlen_is_captured_and_replayed_with_other_bounds() -> None:
    case = VarlenCase(VARLEN_PROBLEMS[3], falling(256, 5), falling(256, 5))
    launched(attune.attention_varlen, *case.arguments(), **case.options)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = launched(attune.attention_varlen, *case.arguments(), **case.options)
    for seed in range(4):
        order = shuffles.Random(seed)
        order.shuffle(case.of_q)
        order.shuffle(case.of_kv)
        case.bounds[0].copy_(bounds(case.of_q))
        case.bounds[1].copy_(bounds(case.of_kv))
        graph.replay()
        case.check(out, lse)


def test_varlen_waits_for_nothing() -> None:
    case = VarlenCase(VARLEN_PROBLEMS[0], *MORE_QUERIES)
    launched(attune.attention_varlen, *case.arguments(), **case.options)
    torch.cuda.set_sync_debug_mode("error")
    try:
        result = launched(attune.attention_varlen, *case.arguments(), **case.options)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    case.check(*result)


def test_varlen_is_compiled_into_one_graph() -> None:
    torch._dynamo.reset()

    def block(q: Any, *more: Any) -> tuple[Any, Any]:
        out, lse = attune.attention_varlen(q * 1.0, *more, enable_gqa=True, return_lse=True)
        return out + 0.0, lse + 0.0

    compiled = torch.compile(block, fullgraph=True)
    for seed in range(3):
        case = VarlenCase(VARLEN_PROBLEMS[0], *MORE_QUERIES, seed=seed)
        case.check(*compiled(*case.arguments()))


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("lengths", LENGTHS)
def test_varlen_without_a_kernel_agrees_too(lengths: tuple[list[int], list[int]]) -> None:
    case = VarlenCase(VARLEN_PROBLEMS[3], *lengths)
    given = {**case.options, "scale": 0.125 * (1 + 1e-5), "enable_gqa": True, "return_lse": True}
    case.check(*attune.attention_varlen(*case.arguments(), **given))


class PagedCase:
    def __init__(self, text: str, of_kv: list[int], of_q: list[int] | None = None, seed: int = 0) -> None:
        self.problem = problem = Problem.parse(text)
        self.options = options_of(problem)
        self.of_kv, self.of_q = of_kv, of_q or [problem.seq_q] * len(of_kv)
        self.query = tokens(problem, 4, self.of_q, seed)
        self.keys = tokens(problem, 2, of_kv, seed + 1).split(of_kv)
        self.values = tokens(problem, 2, of_kv, seed + 2).split(of_kv)
        width = -(-problem.seq_kv // problem.page_size)
        *self.pages, self.table = in_pages(self.keys, self.values, problem.page_size, width)
        self.seqused_k = torch.tensor(of_kv, dtype=torch.int32, device="cuda")
        self.more = {"cu_seqlens_q": bounds(self.of_q), "max_seqlen_q": problem.seq_q} if problem.varlen else {}

    def call(self) -> Any:
        query = self.query if self.problem.varlen else self.query.unflatten(0, (len(self.of_q), -1))
        given = (query, *self.pages, self.table, self.seqused_k)
        return launched(attune.attention_paged, *given, **self.more, **self.options)

    def check(self, out: Any, lse: Any) -> None:
        outs, lses = list(out), list(lse)
        if self.problem.varlen:
            outs, lses = out.split(self.of_q), lse.split(self.of_q, 1)
        check(self.query.split(self.of_q), self.keys, self.values, outs, lses, self.options)


def paged_lengths(problem: Problem) -> list[tuple[list[int], list[int] | None]]:
    longest = problem.seq_kv
    of_kv = [falling(longest, 4), [1, longest, 0, 3], [problem.page_size, problem.page_size + 1, longest - 1, 2]]
    if not problem.varlen:
        return [(lengths, None) for lengths in of_kv]
    of_q = [falling(problem.seq_q, 4), falling(problem.seq_q, 4)[::-1], [0, 113, 1, 7]]
    return list(zip(of_kv, of_q, strict=True))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("text", PAGED_PROBLEMS)
def test_paged_agrees_with_fp32_and_never_reads_behind_a_sequences_end(text: str, number: int) -> None:
    case = PagedCase(text, *paged_lengths(Problem.parse(text))[number])
    for _ in range(2):
        case.check(*case.call())


@pytest.mark.parametrize("text", [PAGED_PROBLEMS[0], PAGED_PROBLEMS[3], PAGED_PROBLEMS[7]])
def test_paged_is_captured_and_replayed_with_other_lengths_and_pages(text: str) -> None:
    cases = [PagedCase(text, *lengths, seed=10 * i) for i, lengths in enumerate(paged_lengths(Problem.parse(text)))]
    cases = [case for case in cases if len(case.query) == len(cases[0].query)]  # a graph has one total
    static = PagedCase(text, cases[0].of_kv, cases[0].of_q)
    most = max(len(case.pages[0]) for case in cases)
    static.pages = [pages.new_full((most, *pages.shape[1:]), float("nan")) for pages in static.pages]
    static.call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = static.call()
    for case in (*cases, cases[0]):
        static.query.copy_(case.query)
        static.table.copy_(case.table)
        static.seqused_k.copy_(case.seqused_k)
        for into, pages in zip(static.pages, case.pages, strict=True):
            into.fill_(float("nan"))
            into[: len(pages)] = pages
        if "cu_seqlens_q" in static.more:
            static.more["cu_seqlens_q"].copy_(case.more["cu_seqlens_q"])
        graph.replay()
        case.check(out, lse)


def test_paged_is_compiled_into_one_graph() -> None:
    torch._dynamo.reset()
    case = PagedCase(PAGED_PROBLEMS[0], falling(512, 4))

    def block(q: Any, *more: Any) -> tuple[Any, Any]:
        out, lse = attune.attention_paged(q * 1.0, *more, enable_gqa=True, return_lse=True)
        return out + 0.0, lse + 0.0

    given = (case.query.unflatten(0, (4, 1)), *case.pages, case.table, case.seqused_k)
    case.check(*torch.compile(block, fullgraph=True)(*given))


def test_kernel_objects_take_bounds_lengths_and_tables(answer: Callable) -> None:
    varlen = VarlenCase(VARLEN_PROBLEMS[0], *MORE_QUERIES)
    cu_seqlens_q, cu_seqlens_k = varlen.bounds
    made = attune.load(answer(VARLEN_PROBLEMS[0]))(
        *varlen.tensors, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k
    )
    varlen.check(*made)
    paged = PagedCase(PAGED_PROBLEMS[0], falling(512, 4))
    query = paged.query.unsqueeze(2)  # [batch, heads, 1, head_dim]
    kernel = attune.load(answer(PAGED_PROBLEMS[0]))
    out, lse = kernel(query, *paged.pages, seqused_k=paged.seqused_k, block_table=paged.table)
    paged.check(out.transpose(1, 2), lse)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cu_seqlens_q", lambda x: x.long(), "cu_seqlens_q has dtype torch.int64; it must be torch.int32"),
        ("cu_seqlens_q", lambda x: x.cpu(), "cu_seqlens_q is on cpu; query is on cuda:0"),
        ("cu_seqlens_k", lambda x: x[:-1], r"cu_seqlens_k has shape \(5,\); it must be \(6,\)"),
        ("cu_seqlens_k", lambda x: x.repeat_interleave(2)[::2], "cu_seqlens_k is non-contiguous, with strides"),
        ("sinks", lambda x: x.double(), "sinks has dtype torch.float64; it must be"),
    ],
)
def test_errors_name_argument_value_and_what_is_allowed(name: str, change: Callable, message: str) -> None:
    case = VarlenCase(VARLEN_PROBLEMS[1], *MORE_QUERIES)
    given: dict[str, Any] = dict(zip(("cu_seqlens_q", "cu_seqlens_k"), case.bounds, strict=True))
    given.update(case.options)
    given[name] = change(given[name])
    with pytest.raises(attune.InvalidArgument, match=message):
        attune.attention_varlen(*case.tensors, **given, max_seqlen_q=256, max_seqlen_k=256, enable_gqa=True)


def test_autocast_to_another_dtype_has_its_result() -> None:
    case = VarlenCase(VARLEN_PROBLEMS[0], *MORE_QUERIES)
    with torch.autocast("cuda", dtype=torch.bfloat16), pytest.warns(attune.AttuneWarning, match="autocast"):
        out = attune.attention_varlen(*case.arguments(), enable_gqa=True)
    assert out.dtype == torch.bfloat16
