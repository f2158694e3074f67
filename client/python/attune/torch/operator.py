"""The operators that torch.compile and torch.export keep in their graphs: attune::attention, attention_options,
attention_varlen and attention_paged. Those that may return a log-sum-exp always return two tensors, the second empty
unless it was asked for: an operator has one number of results.

Inputs that require grad are computed as attune.attention computes them: without a kernel, and differentiably."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.compiler import is_compiling

from attune.torch import direct, varlen
from attune.torch.dispatch import attend, attend_options, by_sdpa
from attune.torch.fallback import Unsuitable, current_stats
from attune.torch.options import Options
from attune.torch.problem_of_tensors import is_usual_call, new_output

_library = torch.library.Library("attune", "FRAGMENT")
T = TypeVar("T")
Both = tuple[Tensor, Tensor]
_UNSCALED = 7  # options of a call without k_scale and v_scale: torch leaves out what has its default at the end
_EMPTY: dict[torch.device, Tensor] = {}  # to be made others like it


def operator(
    fake: Callable[..., Any], again: Callable[[Callable[..., T]], Callable[..., T]] = lambda compute: compute
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Makes a function attune's operator of its name; `fake` gives what it returns without elements. As
    torch.library.custom_op does it, but for what that puts around every call: as much again as the call itself.

    `again` makes of what computes any call what torch is to call: a function that launches known calls itself. Nothing
    stands between the two, because each function of Python's adds to a call that is twice as dear as attune.attention's
    own."""

    def register(function: Callable[..., T]) -> Callable[..., T]:
        name = function.__name__
        schema = torch.library.infer_schema(function, mutates_args=())
        _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, again(_without_grad(function)), "CompositeExplicitAutograd")
        _library.impl(name, again(_with_autograd(name, function)), "Autograd")
        torch.library.register_fake(f"attune::{name}", fake, lib=_library)
        return function

    return register


def _without_grad(function: Callable[..., T]) -> Callable[..., T]:
    """For where torch records nothing: inputs that require grad are as others."""

    def compute(*given: Any) -> T:
        if not torch.is_grad_enabled():
            return function(*given)
        with torch.no_grad():
            return function(*given)

    return compute


def _with_autograd(name: str, function: Callable[..., T]) -> Callable[..., T]:
    """For where torch may record: what requires grad is computed without a kernel, which `function` sees to."""

    def compute(*given: Any) -> Any:
        tensors = [each for each in given if isinstance(each, Tensor)]
        needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if needs_grad or (is_usual_call(*tensors) and not is_compiling()):
            return function(*given)
        with torch._C._AutoDispatchBelowAutograd():  # subclasses, modes and transforms are asked next
            return getattr(torch.ops.attune, name).default(*given)

    return compute


def _attention_again(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        given = is_causal, None, None, 0.0, False, scale, enable_gqa
        stats = current_stats()
        _, known = direct.dense(stats, query, key, value, None, given)
        if known is None:
            return compute(query, key, value, is_causal, scale, enable_gqa)
        if known.__class__ is Unsuitable:
            out = by_sdpa(stats, known, query, key, value, None, 0.0, is_causal, scale, enable_gqa)
            return laid_out(out, query)
        return known

    return attention


@operator(lambda query, *others: new_output(query), _attention_again)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`attune.attention` without mask and dropout. Returns a tensor as `new_output` lays it out."""
    result = attend(current_stats(), query, key, value, None, 0.0, is_causal, scale, enable_gqa)
    # SDPA lays its result out as it likes; a graph was made for one layout.
    return laid_out(result, query)


def _fake_attention_options(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    return new_output(query), _fake_lse(query, query.shape[:-1], return_lse)


def _attention_options_again(compute: Callable[..., Both]) -> Callable[..., Both]:
    def attention_options(query: Tensor, key: Tensor, value: Tensor, *options: Any) -> Both:
        if len(options) == _UNSCALED:
            causal, window, softcap, sinks, return_lse, scale, enable_gqa = options
            given = False, causal, window, softcap, return_lse, scale, enable_gqa
            _, known = direct.dense(current_stats(), query, key, value, sinks, given)
            if known is not None and known.__class__ is not Unsuitable:
                return known if return_lse else (known, _no_lse(query))
        return compute(query, key, value, *options)

    return attention_options


@operator(_fake_attention_options, _attention_options_again)
def attention_options(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    result = attend_options(current_stats(), query, key, value, None, 0.0, options)
    out, lse = _both(result, query, return_lse)
    return laid_out(out, query), lse.contiguous()


def _fake_attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    return _fake_rows(query, value), _fake_lse(query, (query.shape[1], query.shape[0]), return_lse)


def _sequences_again(look: Callable[..., direct.Found]) -> Callable[[Callable[..., Both]], Callable[..., Both]]:
    """Of operators with three tensors and four arguments of lengths before the options: `look` is direct's."""

    def again(compute: Callable[..., Both]) -> Callable[..., Both]:
        def attention(query: Tensor, *others: Any) -> Both:
            if len(others) == 6 + _UNSCALED:
                causal, window, softcap, sinks, return_lse, scale, enable_gqa = others[6:]
                given = False, causal, window, softcap, return_lse, scale, enable_gqa
                _, known = look(current_stats(), query, *others[:2], others[2:6], sinks, given)
                if known is not None:
                    return known if return_lse else (known, _no_lse(query))
            return compute(query, *others)

        return attention

    return again


@operator(_fake_attention_varlen, _sequences_again(direct.varlen))
def attention_varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    given = query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    return _run(varlen.attention_varlen, given, options)


def _fake_attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    return _fake_rows(query, value_pages), _fake_lse(query, _paged_rows(query), return_lse)


@operator(_fake_attention_paged, _sequences_again(direct.paged))
def attention_paged(
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    return_lse: bool,
    scale: float | None,
    enable_gqa: bool,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    attend = functools.partial(varlen.attention_paged, cu_seqlens_q=cu_seqlens_q, max_seqlen_q=max_seqlen_q)
    options = Options(causal, window, softcap, sinks, return_lse, scale, enable_gqa, k_scale, v_scale)
    return _run(attend, (query, key_pages, value_pages, block_table, seqused_k), options)


def _run(attend: Callable[..., Any], given: tuple[Any, ...], options: Options) -> tuple[Tensor, Tensor]:
    out, lse = _both(attend(*given, **options._asdict()), given[0], options.return_lse)
    return out.contiguous(), lse.contiguous()


def _both(result: Any, query: Tensor, return_lse: bool) -> tuple[Tensor, Tensor]:
    """With a log-sum-exp that is empty unless it was asked for."""
    return result if return_lse else (result, _no_lse(query))


def _no_lse(query: Tensor) -> Tensor:
    """A new one: no two results may be one tensor."""
    device = query.device
    like = _EMPTY.get(device)
    if like is None:
        if query.__class__ is not Tensor or not is_usual_call(query):  # of fakes, and of no device that there is
            return query.new_empty(0, dtype=torch.float32)
        like = _EMPTY[device] = query.new_empty(0, dtype=torch.float32)
    return torch.empty_like(like)


def laid_out(out: Tensor, query: Tensor) -> Tensor:
    """`out`, as `new_output` lays it out."""
    if query.is_contiguous() and out.stride() == query.stride():  # as nearly always
        return out
    like = new_output(query)
    return out if out.stride() == like.stride() else like.copy_(out)


def _fake_rows(query: Tensor, value: Tensor) -> Tensor:
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def _fake_lse(query: Tensor, rows: Sequence[int], return_lse: bool) -> Tensor:
    return query.new_empty(rows if return_lse else (0,), dtype=torch.float32)


def _paged_rows(query: Tensor) -> tuple[int, ...]:
    """[batch, seq_q, heads, head_dim] or [total_q, heads, head_dim]: the rows of its log-sum-exp."""
    return (*query.shape[:-3], query.shape[-2], query.shape[-3])
