"""Calls of a kind that a kernel computed before: launched at once, with what the longer way launches; and which calls
are of another kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from tensors import bounds, half, ints  # noqa: E402

import attune  # noqa: E402
from attune.errors import FailedPrecondition, InvalidArgument  # noqa: E402
from attune.torch import direct, dispatch, process, varlen  # noqa: E402
from attune.torch.fallback import Stats, blocks  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


@pytest.fixture
def looked_at(service: Service, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The calls that were not launched at once."""
    calls: list[object] = []
    attend_call = dispatch.attend_call

    def noted(*given: Any) -> Any:
        calls.append(given)
        return attend_call(*given)

    monkeypatch.setattr(dispatch, "attend_call", noted)
    monkeypatch.setattr(varlen, "attend_call", noted)
    return calls


def dense(**changes: Any) -> Callable[[], Any]:
    q, k = half(2, 4, 8, 64), half(2, 4, 12, 64)
    given = {"query": q, "key": k, "value": half(2, 4, 12, 64), "softcap": 2.0, **changes}
    return lambda: attune.attention(**given)


def packed(**changes: Any) -> Callable[[], Any]:
    given = {
        "query": half(10, 4, 64),
        "key": half(14, 2, 64),
        "value": half(14, 2, 64),
        "cu_seqlens_q": bounds([3, 7]),
        "cu_seqlens_k": bounds([5, 9]),
        "max_seqlen_q": 7,
        "max_seqlen_k": 9,
        "enable_gqa": True,
        **changes,
    }
    return lambda: attune.attention_varlen(**given)


PAGES = half(8, 16, 2, 64)


def paged(**changes: Any) -> Callable[[], Any]:
    given = {
        "query": half(2, 3, 4, 64),
        "key_pages": PAGES,
        "value_pages": PAGES.clone(),
        "enable_gqa": True,
        "block_table": ints([0, 1], [2, 3]),
        "seqused_k": ints(20, 32),
        **changes,
    }
    return lambda: attune.attention_paged(**given)


def tokens(**changes: Any) -> Callable[[], Any]:
    """The same of packed queries."""
    query = {"query": half(10, 4, 64), "cu_seqlens_q": bounds([3, 7]), "max_seqlen_q": 7}
    return paged(**{**query, **changes})


KINDS = [dense, packed, paged, tokens]
SINKS = torch.tensor([0.5, 1.0, -1.0, 0.0])


@contextlib.contextmanager
def autocast(dtype: torch.dtype) -> Iterator[None]:
    """On GPUs, which torch does not turn on where there is none."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (torch, direct):
            patch.setattr(module, "is_autocast_enabled", lambda kind="cuda": kind == "cuda")
            patch.setattr(module, "get_autocast_dtype", lambda kind: dtype)
        yield


OPTIONS: list[dict[str, Any]] = [
    {},
    {"return_lse": True},
    {"window": 4},
    {"causal": "bottom-right", "softcap": 3.0},
    {"sinks": SINKS},
    {"sinks": torch.nn.Parameter(SINKS), "return_lse": True},
    {"scale": 0.125},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_second_call_is_launched_at_once_and_as_the_first(
    service: Service, looked_at: list[object], kind: Callable, options: dict
) -> None:
    call = kind(**options)
    with torch.no_grad(), attune.replace_sdpa() as replaced:
        results = [call() for _ in range(3)]
    assert (replaced.stats.launched, replaced.stats.fallbacks, len(looked_at)) == (3, {}, 1)
    for result, launched in zip(results, service.launches, strict=True):
        out, lse = result if "return_lse" in options else (result, None)
        assert launched[:3] == service.launches[0][:3]
        assert launched[3:6] == (out.data_ptr(), 0 if lse is None else lse.data_ptr(), 5)
        assert [*(launched[6] or 7 * (0,))] == service.launches[0][6]
        assert (out.shape, out.stride(), out.dtype) == (
            results[0][0].shape if lse is not None else results[0].shape,
            results[0][0].stride() if lse is not None else results[0].stride(),
            torch.float16,
        )
        if lse is not None:
            assert (lse.shape, lse.dtype, lse.is_contiguous()) == (results[0][1].shape, torch.float32, True)


def test_transposed_tensors_and_those_without_heads_are_launched_at_once(
    service: Service, looked_at: list[object]
) -> None:
    bshd = half(2, 8, 4, 64).transpose(1, 2)
    for q in (bshd, half(2, 8, 64)):
        for _ in range(2):
            out, lse = attune.attention(q, q, q, softcap=2.0, return_lse=True)
            assert (out.shape, out.stride(), lse.shape) == (q.shape, q.stride(), q.shape[:-1])
    assert (len(looked_at), len(service.launches)) == (2, 4)


def test_lengths_that_round_alike_and_other_totals_are_of_one_kind(service: Service, looked_at: list[object]) -> None:
    packed(max_seqlen_q=33, max_seqlen_k=33)()
    packed(query=half(12, 4, 64), cu_seqlens_q=bounds([5, 7]), max_seqlen_q=39, max_seqlen_k=34)()
    assert (len(looked_at), len(service.launches)) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *[(kind, {"softcap": 4.0}) for kind in KINDS],
        *[(kind, {"return_lse": True}) for kind in KINDS],
        *[(kind, {"window": 2}) for kind in KINDS],
        *[(kind, {"sinks": SINKS}) for kind in KINDS],
        (dense, {"query": half(2, 4, 9, 64)}),
        (dense, {"query": half(2, 4, 8, 64).transpose(1, 2).contiguous().transpose(1, 2)}),
        (packed, {"query": half(10, 2, 64)}),
        (packed, {"max_seqlen_k": 20}),
        (packed, {"cu_seqlens_q": bounds([3, 3, 4]), "cu_seqlens_k": bounds([5, 5, 4])}),
        (paged, {"query": half(2, 2, 4, 64)}),
        (paged, {"block_table": ints([0, 1, 2], [2, 3, 4])}),
        (paged, {"key_pages": half(9, 16, 2, 64), "value_pages": half(9, 16, 2, 64)}),
        (tokens, {"max_seqlen_q": 20}),
    ],
)
def test_calls_of_another_kind_are_looked_at(
    service: Service, looked_at: list[object], kind: Callable, changes: dict
) -> None:
    kind()()
    kind(**changes)()
    assert (len(looked_at), len(service.launches)) == (2, 2)


@pytest.mark.parametrize("scale", [0.5, torch.tensor(0.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_another_scale_is_launched_with_it_each_time(service: Service, kind: Callable, scale: object) -> None:
    kind()()
    for _ in range(2):
        kind(scale=scale)()
    kind()()
    assert service.scales == [0.5, 0.5]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_that_is_a_tensor_counts_by_its_value(service: Service, kind: Callable) -> None:
    scale = torch.tensor(0.125)
    call = kind(scale=scale)
    call()
    scale.fill_(0.25)
    call()
    assert service.scales == [0.25]


@FALLS_BACK
@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (packed, {"cu_seqlens_q": bounds([3, 7]).long()}, "cu_seqlens_q has dtype torch.int64; it must be torch.int32"),
        (packed, {"cu_seqlens_k": ints(0, 5, 14, 20)}, r"cu_seqlens_k has shape \(4,\)"),
        (packed, {"cu_seqlens_q": ints(0, 1, 3, 4, 10, 11)[::2]}, "cu_seqlens_q is non-contiguous"),
        (packed, {"max_seqlen_q": -1}, "max_seqlen_q is -1; it must be a non-negative integer"),
        (packed, {"max_seqlen_k": torch.tensor(9)}, "max_seqlen_k is tensor"),
        (packed, {"value": half(13, 2, 64)}, "have shapes"),
        (packed, {"query": half(10, 256)}, "have shapes"),
        (packed, {"cu_seqlens_q": [0, 3, 10]}, "cu_seqlens_q is of type list"),
        (paged, {"seqused_k": ints(20, 32).long()}, "seqused_k has dtype torch.int64"),
        (paged, {"block_table": ints([0, 5, 1, 5], [2, 5, 3, 5])[:, ::2]}, "block_table is non-contiguous"),
        (paged, {"max_seqlen_q": 3}, "max_seqlen_q is 3; it needs cu_seqlens_q"),
        (tokens, {"cu_seqlens_q": bounds([3, 7]).long()}, "cu_seqlens_q has dtype torch.int64"),
        (tokens, {"max_seqlen_q": None}, "max_seqlen_q is None"),
        (paged, {"key_pages": half(1 + 8 * 16 * 2 * 64)[1:].view(8, 16, 2, 64)}, "key_pages is misaligned"),
        *[(kind, {"sinks": torch.zeros(3)}, "sinks has shape") for kind in KINDS],
        *[(kind, {"window": [4]}, r"window is \[4\]; it must be None or a positive integer") for kind in KINDS],
    ],
)
def test_what_cannot_be_is_said_of_known_kinds_too(
    service: Service, kind: Callable, changes: dict, message: str
) -> None:
    kind()()
    if "sinks" in changes:
        kind(sinks=SINKS)()
    with pytest.raises(InvalidArgument, match=message):
        kind(**changes)()


@FALLS_BACK
@pytest.mark.parametrize("kind", KINDS)
def test_what_no_kernel_may_read_is_not_launched_at_once(service: Service, kind: Callable) -> None:
    query = kind().__closure__[0].cell_contents["query"]
    kind()()
    launches = len(service.launches)
    with attune.replace_sdpa() as replaced:
        kind(query=query.clone().requires_grad_())()
        kind(query=torch._neg_view(query))()
        with autocast(torch.bfloat16):
            kind()()
        kind(sinks=torch.nn.Parameter(SINKS))()
    assert (len(service.launches), replaced.stats.fallbacks) == (
        launches,
        {"grad": 2, "layout": 1, "autocast": 1},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_to_the_dtype_there_is_changes_nothing(
    service: Service, looked_at: list[object], kind: Callable
) -> None:
    kind()()
    with autocast(torch.float16):
        kind()()
    assert (len(looked_at), len(service.launches)) == (1, 2)


@FALLS_BACK
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_refused_is_counted_and_not_launched_again(service: Service, kind: Callable) -> None:
    kind()()
    entry, *_ = next(iter(process.direct.values()))
    entry.kernel.fails_with = FailedPrecondition("the driver is gone")
    with attune.replace_sdpa() as replaced:
        kind()()
        kind()()
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (0, {"not_launched": 2})


@pytest.mark.parametrize("kind", KINDS)
def test_refreshing_forgets(service: Service, looked_at: list[object], kind: Callable) -> None:
    kind()()
    attune.refresh()
    assert process.direct == {}
    kind()()
    assert (len(looked_at), len(service.problems)) == (2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_deterministic_calls_are_pinned(service: Service, looked_at: list[object], kind: Callable) -> None:
    kind()()
    torch.use_deterministic_algorithms(True)
    try:
        kind()()
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(looked_at) == 2
    entry, *_ = next(iter(process.direct.values()))
    assert entry.pinned
    assert len(looked_at) == 2


def tensors_of(kind: Callable) -> dict[str, torch.Tensor]:
    given = kind().__closure__[0].cell_contents
    return {name: x for name, x in given.items() if name in ("query", "key", "value", "key_pages", "value_pages")}


@pytest.mark.parametrize("kind", KINDS)
def test_strides_and_scale_of_their_own_are_launched_at_once_with_them(
    service: Service, looked_at: list[object], kind: Callable
) -> None:
    wide = {name: torch.cat([tensor] * 2, -1)[..., :64] for name, tensor in tensors_of(kind).items()}
    kind()()
    for _ in range(3):
        kind(**wide)()
        kind(scale=0.5)()
        kind(**wide, scale=0.25)()
    kind()()
    assert (len(looked_at), len(service.launches)) == (4, 11)
    assert service.scales == 3 * [0.5, 0.25]
    assert len(service.placements) == 6
    assert len(set(service.placements)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_result_is_put_decides_how_it_is_written(service: Service, kind: Callable) -> None:
    """Strides of the query's own that the result has only where it is given."""
    query = tensors_of(kind)["query"]
    wide = torch.cat([query, query], -1)[..., :64]
    out = torch.cat([query, query], -1)[..., :64]
    for _ in range(2):
        made = kind(query=wide)()
        assert kind(query=wide, out=out)() is out
    assert made.is_contiguous()
    assert service.placements == 2 * service.placements[:2]
    assert service.placements[0] != service.placements[1]


@pytest.mark.parametrize("kind", [dense, packed])
def test_what_is_padded_is_not_remembered(service: Service, kind: Callable) -> None:
    kind(**{name: tensor[..., :59].contiguous() for name, tensor in tensors_of(kind).items()})()
    assert process.direct == {}


@FALLS_BACK
def test_calls_left_to_torch_are_left_to_it_at_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    q = half(1, 2, 8, 64)
    cases = [(q[..., :32], {}), (q, {"scale": -1.0}), (q.float(), {}), (q.clone().requires_grad_(), {})]

    def call() -> dict[str, int]:
        with attune.replace_sdpa() as replaced:
            for query, options in cases:
                attune.attention(query, query, query.detach(), **options)
            value = half(1, 2, 8, 32)
            attune.attention(q, q, value)
        assert replaced.stats.launched == 0
        return replaced.stats.fallbacks

    service.refuses_with = FailedPrecondition("there is nothing")
    first = call()
    monkeypatch.setattr(dispatch, "_attend_anew", lambda *given: pytest.fail("looks"))
    assert call() == first


def test_a_kernel_that_is_there_later_is_launched(service: Service, clock: Any) -> None:
    q = half(1, 2, 8, 64)
    service.refuses_with = FailedPrecondition("there is nothing")
    with attune.replace_sdpa() as replaced, pytest.warns(attune.AttuneWarning):
        for _ in range(2):
            attune.attention(q, q, q)
    assert replaced.stats.fell_back == 2
    service.refuses_with = None
    clock.now += 31
    with attune.replace_sdpa() as replaced:
        attune.attention(q, q, q)
    assert (replaced.stats.launched, replaced.stats.fell_back) == (1, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_sum_exp_is_remembered_without_memory(service: Service, kind: Callable) -> None:
    results = [kind(return_lse=True)() for _ in range(3)]
    ((*_, lse_like),) = process.direct.values()
    assert lse_like.untyped_storage().nbytes() == 0
    assert len({lse.data_ptr() for _, lse in results}) == 3
    for _, lse in results:
        lse.zero_()


def test_log_sum_exps_of_other_totals_have_their_own_shape(service: Service, looked_at: list[object]) -> None:
    for total in (10, 12, 7, 10):
        query = half(total, 4, 64)
        _, lse = packed(query=query, cu_seqlens_q=bounds([3, total - 3]), return_lse=True)()
        assert (lse.shape, lse.is_contiguous()) == ((4, total), True)
    assert len(looked_at) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_dispatch_mode_or_a_transform_sees_everything(
    service: Service, looked_at: list[object], kind: Callable
) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    kind()()
    with FlopCounterMode(display=False), contextlib.suppress(Exception), pytest.warns(attune.AttuneWarning):
        kind()()
    assert len(looked_at) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_recorder_is_given_known_calls_too(service: Service, kind: Callable) -> None:
    class Recorder:
        calls = 0

        def attend_call(self, call: object) -> torch.Tensor:
            self.calls += 1
            return torch.zeros(1)

    kind()()
    recorder = Recorder()
    blocks.stats.append(Stats(recorder=recorder))
    try:
        kind()()
    finally:
        blocks.stats.pop()
    assert (recorder.calls, len(service.launches)) == (1, 1)


@FALLS_BACK
@pytest.mark.parametrize("causal", ["top-left", "bottom-right"])
def test_the_two_ways_to_ask_for_a_causal_mask_are_one_known_call(service: Service, causal: str) -> None:
    q = half(1, 2, 8, 64)
    expected = torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    service.refuses_with = FailedPrecondition("there is nothing")
    for _ in range(3):
        assert torch.equal(attune.attention(q, q, q, causal=causal), expected)
    service.refuses_with = None
    attune.refresh()
    for _ in range(3):
        attune.attention(q, q, q, causal=causal)
    attune.attention(q, q, q, is_causal=True)
    assert len(service.launches) == 4
    assert service.problems == ["b1.h2.q8.d64.f16.causal"] * 2
    assert len({id(entry) for entry, *_ in process.direct.values()}) == 1
    assert len(process.direct) == 2
